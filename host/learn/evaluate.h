// evaluate.h: measures a model on held-out rows: bits per byte of text, accuracy of labels and of
// preferences.
#ifndef RLHF_HOST_LEARN_EVALUATE_H
#define RLHF_HOST_LEARN_EVALUATE_H

#include "data/dataset.h"
#include "data/preferences.h"
#include "model/reward_model.h"

#include <signal.h>

struct rlhf__team;

// How rows are measured. If all members are 0, this process measures all rows and cannot be
// cancelled.
struct rlhf__evaluating {
    const volatile sig_atomic_t *cancelled; // checked between microbatches (RLHF_E_CANCELLED)
    struct rlhf__team *team;                // the ranks that divide the rows
    int64_t most;                           // measure the first rows only; 0: all rows
};

// Returns how many of n rows are measured. [any]
static inline int64_t rlhf__evaluating_rows(const struct rlhf__evaluating *how, int64_t n) {
    return how->most > 0 && how->most < n ? how->most : n;
}

struct rlhf__text_quality {
    double nats;                 // sum over all scored tokens
    int64_t rows, tokens, bytes; // tokens: scored tokens; bytes: their UTF-8 bytes
};

// Score every text of ds (field TEXT) under the model. A text consists of BOS and its tokens,
// without EOS, and each of its tokens is scored once. Special tokens are scored too, but count as 0
// bytes. Without a BOS the first token of a text cannot be scored, and its bytes are not counted.
//
// A text longer than the context is covered by windows that advance by half a context. So the model
// sees at least half a context, or the whole beginning of the text, before each scored token.
//
// Messages are rendered by the chat template, with nothing added around them. With assistant_only,
// only the assistant's tokens are scored and counted. [main]
rlhf_status rlhf__evaluate_text(const struct rlhf__model *, const struct rlhf__dataset *ds,
                                int assistant_only, const struct rlhf__evaluating *how,
                                struct rlhf__text_quality *out, struct rlhf__error *err);

// Returns the bits per byte of a result. [any]
double rlhf__bits_per_byte(const struct rlhf__text_quality *);

struct rlhf__label_quality {
    int64_t rows, correct;
    double nats; // cross-entropy summed over the rows
};

// Count the texts of ds whose label is the class that the model scores highest, and add up the
// cross-entropy. Texts are cut to max_tokens (0 = the context). [main]
rlhf_status rlhf__evaluate_labels(const struct rlhf__model *, const struct rlhf__dataset *ds,
                                  int32_t max_tokens, const struct rlhf__evaluating *how,
                                  struct rlhf__label_quality *out, struct rlhf__error *err);

// Sums over the rows.
struct rlhf__preference_quality {
    int64_t rows, correct; // correct: the preferred response alone has the highest reward
    double nats;           // -log softmax of the rewards at the preferred response
    double margin;         // the preferred response's reward minus the mean of the others
    // The value of the preferred response, and the mean value of the other responses. For a reward
    // model, the value is the response's reward. For a policy, it is the response's log-probability
    // (without subtracting the reference's).
    double chosen, rejected;
};

// Compute the reward, with gain and bias, of every response in the set. The work is not divided
// among ranks, so every rank computes all rewards. [main]
rlhf_status rlhf__evaluate_preferences(const struct rlhf__reward_model *rm,
                                       const struct rlhf__preferences *set,
                                       const struct rlhf__evaluating *how,
                                       struct rlhf__preference_quality *out,
                                       struct rlhf__error *err);

// Like rlhf__evaluate_preferences, but for a policy. A response's reward is its log-probability
// (the sum over its tokens, temperature 1) minus its log-probability under the reference. If
// `reference` is NULL, nothing is subtracted. [main]
rlhf_status rlhf__evaluate_policy_preferences(const struct rlhf__model *policy,
                                              const struct rlhf__model *reference,
                                              const struct rlhf__preferences *set,
                                              const struct rlhf__evaluating *how,
                                              struct rlhf__preference_quality *out,
                                              struct rlhf__error *err);

// For each label (0 = unwanted, 1 = wanted): the number of completions, and the sum of their
// rewards.
struct rlhf__completion_quality {
    int64_t rows[2];
    double reward[2];
};

// For rows with one completion each (rlhf__preference_opts.completions), compute a policy's rewards
// as rlhf__evaluate_policy_preferences does. These rewards equal rewards/chosen and
// rewards/rejected of TRL's KTOTrainer, without the factor beta. [main]
rlhf_status rlhf__evaluate_policy_completions(const struct rlhf__model *policy,
                                              const struct rlhf__model *reference,
                                              const struct rlhf__preferences *set,
                                              const struct rlhf__evaluating *how,
                                              struct rlhf__completion_quality *out,
                                              struct rlhf__error *err);

// x[at] is the maximum of a row of scores x. If several scores equal the maximum, `at` is the index
// of the first of them. `sum` is the sum of exp(x[k] - x[at]) over all k. The softmax probability
// of `at` is therefore 1 / sum, and -log p of index k is x[at] + log(sum) - x[k].
struct rlhf__peak {
    int32_t at;
    double sum;
};
struct rlhf__peak rlhf__peak_of(const float *x, int32_t n); // n > 0 [any]

#endif
