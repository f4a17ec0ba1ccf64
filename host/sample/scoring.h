// scoring.h: turns a batch of responses into rewards: response rules, reward plugins, mixing. In
// this order:
//
// 1. cut the scored text (reward_rows.h)
// 2. call every plugin; rewards.on_failure decides about rows that it could not score
// (reward_ask.h)
// 3. rewards.nan_policy decides about values that are not finite
// 4. normalise before, weighted sum, normalise after, clip (mixing.h)
// 5. penalties: no period, no stop token
//
// Normalising is (r - mean) / (std + 1e-5) over the batch, with the biased std. Token rewards count
// in every step: see mixing.h.
#ifndef RLHF_HOST_SCORING_H
#define RLHF_HOST_SCORING_H

#include "base/watch.h"
#include "sample/overlap.h"
#include "sample/reward_ask.h"

// What scoring needs; all borrowed.
struct rlhf__scorer {
    const struct rlhf__config *config;
    struct rlhf__instance *const *rewards; // [config->n_reward]
    // Sets a metric: rewards/<name>/{mean,std}, rewards/not_finite, and
    // objective/verifiable_correct_rate if there are verdicts. NULL = none.
    void (*metric)(void *ctx, const char *name, double value);
    rlhf__metric_fn *reported; // receives what the rewards report; NULL = none
    void *metric_ctx;          // of both
    int64_t phase;
    int32_t may_drop_all; // 1: nan_policy drop and on_failure drop may drop every row
    // 1: the rows respond to held-out prompts, so the rewards see no index for them
    // (rlhf_reward_in.source)
    int32_t held_out;
    const struct rlhf__watch *watch;  // receives the name of the running reward; NULL = none
    struct rlhf__log *log;            // receives tolerated failures; NULL = none
    struct rlhf__reward_tally *tally; // [config->n_reward], added to; NULL = none
    struct rlhf__overlap *overlap;    // early answers; NULL = none
};

// Let a plugin score without its score being trained on, as a judge does: no weight, mixing,
// penalties or nan_policy. raw[n] = the scores. failed[n] = 1 for rows that it could not score;
// their raw is NaN. Errors: those of rlhf__reward_ask. [step]
rlhf_status rlhf__score_alone(const struct rlhf__reward_call *, const struct rlhf__scored *,
                              const struct rlhf__rows *e, float *raw, uint8_t *failed,
                              struct rlhf__error *err);

// Fill e->score, e->reward, e->token[RLHF__TOKEN_REWARD] and the texts' verdict. keep[n] is set to
// 0 for rows that nan_policy drop or on_failure drop removes, else 1. raw: NULL, or [n_reward * n],
// each plugin's reward of each row, token rewards included. Errors: RLHF_E_NUMERIC names plugin and
// row (nan_policy stop), or says that every row was dropped (unless that is allowed) or that a sum
// is not finite; those of rlhf__reward_ask. [step]
rlhf_status rlhf__score(const struct rlhf__scorer *, struct rlhf__scored *, struct rlhf__rows *e,
                        uint8_t *keep, float *raw, struct rlhf__error *err);

#endif
