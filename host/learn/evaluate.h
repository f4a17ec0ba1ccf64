// evaluate.h: measures a model on held-out rows: bits per byte of text, accuracy of labels and of
// preferences.
#ifndef RLHF_HOST_EVALUATE_H
#define RLHF_HOST_EVALUATE_H

#include "data/dataset.h"
#include "data/preferences.h"
#include "model/reward_model.h"

#include <signal.h>

struct rlhf__text_quality {
    double nats;                 // of all scored tokens
    int64_t rows, tokens, bytes; // scored tokens; their UTF-8 bytes
};

// Score every text of ds (field TEXT) under the model. A text is BOS + its tokens, without EOS, and
// every text token is scored once. Special tokens are scored too, without bytes.
//
// A text longer than the context is covered by windows that advance by half a context. So a token
// has at least half a context before it, or everything that precedes it. Without a BOS the first
// token of a text cannot be scored; neither it nor its bytes count.
//
// Messages are rendered by the chat template, with nothing added around them. assistant_only: score
// and count only the assistant's tokens. `cancelled` is checked between microbatches
// (RLHF_E_CANCELLED); NULL = never. [main]
rlhf_status rlhf__evaluate_text(const struct rlhf__model *, const struct rlhf__dataset *ds,
                                int assistant_only, const volatile sig_atomic_t *cancelled,
                                struct rlhf__text_quality *out, struct rlhf__error *err);

// Bits per byte of a result. [any]
double rlhf__bits_per_byte(const struct rlhf__text_quality *);

struct rlhf__label_quality {
    int64_t rows, correct;
    double nats; // cross-entropy summed over the rows
};

// Compare the arg max of the score head with the labels of ds; texts are cut to max_tokens (0 = the
// context). cancelled: as above. [main]
rlhf_status rlhf__evaluate_labels(const struct rlhf__model *, const struct rlhf__dataset *ds,
                                  int32_t max_tokens, const volatile sig_atomic_t *cancelled,
                                  struct rlhf__label_quality *out, struct rlhf__error *err);

// Sums over the rows.
struct rlhf__preference_quality {
    int64_t rows, correct; // correct: only the preferred response has the highest reward
    double nats;           // -log softmax of the rewards at the preferred response
    double margin;         // its reward minus the mean of the others' rewards
    // The model's own values: of the preferred response, and their mean over the other responses.
    // They are rewards, or log-probabilities from which the reference's are not subtracted.
    double chosen, rejected;
};

// Rewards of every response of the set, gain and bias applied. `cancelled` is checked every few
// rows. [main]
rlhf_status rlhf__evaluate_preferences(const struct rlhf__reward_model *rm,
                                       const struct rlhf__preferences *set,
                                       const volatile sig_atomic_t *cancelled,
                                       struct rlhf__preference_quality *out,
                                       struct rlhf__error *err);

// The same for a policy. The reward of a response is its log-probability (the sum over its tokens,
// temperature 1) minus the reference's; reference NULL: its log-probability alone. [main]
rlhf_status rlhf__evaluate_policy_preferences(const struct rlhf__model *policy,
                                              const struct rlhf__model *reference,
                                              const struct rlhf__preferences *set,
                                              const volatile sig_atomic_t *cancelled,
                                              struct rlhf__preference_quality *out,
                                              struct rlhf__error *err);

// Number of completions by label, wanted (1) or unwanted (0), and the sum of their rewards.
struct rlhf__completion_quality {
    int64_t rows[2];
    double reward[2];
};

// Rows of one completion each (rlhf__preference_opts.completions), with a policy's rewards as
// above. These are rewards/chosen and rewards/rejected of TRL's KTOTrainer, without beta. [main]
rlhf_status rlhf__evaluate_policy_completions(const struct rlhf__model *policy,
                                              const struct rlhf__model *reference,
                                              const struct rlhf__preferences *set,
                                              const volatile sig_atomic_t *cancelled,
                                              struct rlhf__completion_quality *out,
                                              struct rlhf__error *err);

// The maximum of a row of scores, x[at] (the first if several are equal), and sum = the sum of
// exp(x - x[at]). So the softmax probability of `at` is 1 / sum, and -log p of index k is x[at] +
// log(sum) - x[k].
struct rlhf__peak {
    int32_t at, reserved;
    double sum;
};
struct rlhf__peak rlhf__peak_of(const float *x, int32_t n); // n > 0 [any]

#endif
