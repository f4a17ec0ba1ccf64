// answer.h: samples one text from a model in a dialogue, and prints the text while it grows.
#ifndef RLHF_TOOLS_PROMPT_ANSWER_H
#define RLHF_TOOLS_PROMPT_ANSWER_H

#include "sample/decode.h"

#include <stdio.h>

// How texts are sampled.
struct rlhf__answer_settings {
    double temperature, top_p, min_p;
    int64_t top_k, max_new, seed;
    int32_t greedy, ignore_eos;
};

struct rlhf__answer_request {
    const struct rlhf__model *model;
    const struct rlhf__answer_settings *settings;
    struct rlhf__response_rules *rules; // NULL: none
    const int32_t *prompt;              // [n_prompt] n_prompt >= 1
    size_t n_prompt;
    uint64_t number;                    // index of the text, for the random numbers
    FILE *out;                          // receives the text as it grows; NULL: do not print it
    const volatile sig_atomic_t *ended; // not 0: a signal ends the program
    volatile sig_atomic_t *interrupted; // not 0: Ctrl-C ends the text; the part so far is kept
};

// Zero-initialize; release with rlhf__answer_finish.
struct rlhf__answer {
    int32_t *ids; // [n]
    float *logp;  // [n] log-probs under the model itself: temperature 1, all tokens
    size_t n;
    struct rlhf__buf text;         // without special tokens, and cut before a stop text
    double seconds;                // that sampling took
    int32_t finished, interrupted; // finished: by an end token or stop text; interrupted: by Ctrl-C
};

// Sample the text. Errors: RLHF_E_INVALID if the prompt and the text exceed the context;
// RLHF_E_CANCELLED if a signal ends the program; those of the model. [main]
rlhf_status rlhf__answer_sample(const struct rlhf__answer_request *, struct rlhf__answer *,
                                struct rlhf__error *err);
void rlhf__answer_finish(struct rlhf__answer *); // accepts a zeroed one [any]

// Returns the sum of logp[n], which are log-probs of the answer's tokens under any model. [any]
double rlhf__answer_sum(const struct rlhf__answer *, const float *logp);

// Set logp[n] to the log-probs of the answer's tokens under another model with the same
// vocabulary. Errors: RLHF_E_NOMEM, those of the model. [main]
rlhf_status rlhf__answer_under(const struct rlhf__answer *, const struct rlhf__model *,
                               const int32_t *prompt, size_t n_prompt, float *logp,
                               struct rlhf__error *err);

#endif
