// subject.h: one explained number on one prompt, in one model or in two (the base and the tuned
// model).
#ifndef RLHF_TOOLS_INSPECT_SUBJECT_H
#define RLHF_TOOLS_INSPECT_SUBJECT_H

#include "base/watch.h"
#include "inspect/attention.h"
#include "inspect/next_token.h"
#include "inspect/patching.h"
#include "inspect/words.h"

#include <signal.h>

enum rlhf__explained {
    RLHF__EXPLAINED_WORDS = 0,  // logit of the good words minus logit of the bad words
    RLHF__EXPLAINED_REWARD = 1, // a reward model's reward after each token
    RLHF__EXPLAINED_VALUE = 2   // a critic's value after each token
};

// A model of a subject, opened by inspect_models.h.
struct rlhf__subject_model {
    const struct rlhf__model *model;
    double gain, bias; // of a reward model: reward = gain * score + bias
    const char *name;  // for people: the last part of its path
};

// Zero-initialize; release with rlhf__subject_finish, even after a failure. In arrays of two, [0]
// is the base and [1] the tuned model. A subject with only one model uses [0].
struct rlhf__subject {
    int32_t explained; // enum rlhf__explained
    uint32_t n_models;
    struct rlhf__subject_model of[2];
    const char *prompt;
    struct rlhf__ids ids;
    struct rlhf__words words; // with RLHF__EXPLAINED_WORDS
    struct rlhf__reading reading[2];
    struct rlhf__direction direction[2];
    struct rlhf__attribution attribution[2];
    double *measured[2];           // [n] what the model itself computes
    double error, source_error;    // largest |sum - measured|; the error of attention.h
    struct rlhf__next_tokens next; // of a pair of language models
    struct rlhf__patching patching;
    int32_t patched;
    uint32_t n_top;
    int32_t *top; // [2 * n_top] layer and number of the heads that moved or contribute most
    struct rlhf__attention attention[2]; // of these heads, or of none if the prompt is too long
};

// Attention is kept for prompts of at most this many tokens, because each head takes 16 bytes for
// each pair of tokens.
enum { RLHF__ATTENTION_TOKENS = 1024 };

// How a subject is computed.
struct rlhf__subject_how {
    int32_t patch, bos; // patch: for pairs; bos: put the BOS token in front of the prompt
    const struct rlhf__watch *watch;
    const volatile sig_atomic_t *cancelled;
};

// Compute everything. The caller has set the members `explained`, `n_models`, `of`, `prompt` and
// `words` (already split). Errors: RLHF_E_INVALID (models that do not fit together, invalid words,
// an invalid prompt), RLHF_E_UNSUPPORTED (no tap), RLHF_E_NOMEM, RLHF_E_CANCELLED. [step]
rlhf_status rlhf__subject_compute(struct rlhf__subject *, const struct rlhf__subject_how *,
                                  struct rlhf__error *err);

void rlhf__subject_finish(struct rlhf__subject *); // accepts a zeroed one [any]

#endif
