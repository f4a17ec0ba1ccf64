// evaluate.h: how good a model is on held-out rows: bits per byte of text, accuracy of labels and
// of preferences.
#ifndef RLHF_HOST_EVALUATE_H
#define RLHF_HOST_EVALUATE_H

#include "data/dataset.h"
#include "data/preferences.h"
#include "model/reward_model.h"

#include <signal.h>

struct rlhf__text_quality {
    double nats;                 // of all scored tokens
    int64_t rows, tokens, bytes; // scored tokens; UTF-8 bytes of the texts
};

// Score every text of ds (field TEXT) under the model. A text is BOS + its tokens (no EOS); every
// text token is scored once. Texts over the context are covered by windows of the context that
// advance by half of it, so that a token has at least half a context before it where there is one.
// Without a BOS the first token of a text cannot be scored, and neither it nor its bytes count.
// Messages are the text that the chat template makes of them, without anything around it;
// assistant_only: score and count only the assistant's tokens. cancelled: looked at between
// microbatches (RLHF_E_CANCELLED); NULL = never. [main]
rlhf_status rlhf__evaluate_text(const struct rlhf__model *, const struct rlhf__dataset *ds,
                                int assistant_only, const volatile sig_atomic_t *cancelled,
                                struct rlhf__text_quality *out, struct rlhf__error *err);

// Bits per byte of a result. [any]
double rlhf__bits_per_byte(const struct rlhf__text_quality *);

struct rlhf__label_quality {
    int64_t rows, correct;
    double nats; // cross-entropy summed over the rows
};

// Arg max of the score head against the labels of ds, texts cut to max_tokens (0 = the context).
// cancelled: as above. [main]
rlhf_status rlhf__evaluate_labels(const struct rlhf__model *, const struct rlhf__dataset *ds,
                                  int32_t max_tokens, const volatile sig_atomic_t *cancelled,
                                  struct rlhf__label_quality *out, struct rlhf__error *err);

// Sums over the rows.
struct rlhf__preference_quality {
    int64_t rows, correct; // correct: the preferred response has the highest reward, alone
    double nats;           // -log softmax of the rewards at the preferred response
    double margin;         // its reward minus the mean of the others'
    // What the model alone gives the preferred response, and the mean of what it gives the others:
    // rewards, or log-probabilities from which no reference's are subtracted.
    double chosen, rejected;
};

// Rewards of every response of the set, gain and bias applied. cancelled: looked at every few rows.
// [main]
rlhf_status rlhf__evaluate_preferences(const struct rlhf__reward_model *rm,
                                       const struct rlhf__preferences *set,
                                       const volatile sig_atomic_t *cancelled,
                                       struct rlhf__preference_quality *out,
                                       struct rlhf__error *err);

// The same for a policy, a response's reward being its log-probability (the sum over its tokens,
// temperature 1) minus the reference's; reference NULL: its log-probability alone. [main]
rlhf_status rlhf__evaluate_policy_preferences(const struct rlhf__model *policy,
                                              const struct rlhf__model *reference,
                                              const struct rlhf__preferences *set,
                                              const volatile sig_atomic_t *cancelled,
                                              struct rlhf__preference_quality *out,
                                              struct rlhf__error *err);

// Of completions that are wanted (1) or not (0): how many, and the sum of their rewards.
struct rlhf__completion_quality {
    int64_t rows[2];
    double reward[2];
};

// Rows of one completion each (rlhf__preference_opts.completions), whose reward is that of a policy
// above: TRL's rewards/chosen and rewards/rejected of KTOTrainer, without beta. [main]
rlhf_status rlhf__evaluate_policy_completions(const struct rlhf__model *policy,
                                              const struct rlhf__model *reference,
                                              const struct rlhf__preferences *set,
                                              struct rlhf__completion_quality *out,
                                              struct rlhf__error *err);

// Where a row of scores is highest, the first of equals, and the sum of exp(x - x[at]): the softmax
// probability there is 1 / sum, and -log of that of k is x[at] + log(sum) - x[k].
struct rlhf__peak {
    int32_t at, reserved;
    double sum;
};
struct rlhf__peak rlhf__peak_of(const float *x, int32_t n); // n > 0 [any]

#endif
