// scoring.h: from a batch of responses to scores: response rules, reward plugins, mixing.
//
// Order: the scored text is cut (scored.h) -> every plugin scores, and rows that it could not score
// follow rewards.on_failure (reward_ask.h) -> values that are not finite are handled
// (rewards.nan_policy) -> normalise before -> weighted sum -> normalise after -> clip -> penalties
// (no period, no stop token). Normalising is (r - mean) / (std + 1e-5) over the batch, biased std.
// What a row is paid token by token counts in all of it: see mixing.h.
#ifndef RLHF_HOST_SCORING_H
#define RLHF_HOST_SCORING_H

#include "base/watch.h"
#include "sample/ahead.h"
#include "sample/reward_ask.h"

// What scoring needs; all borrowed.
struct rlhf__scorer {
    const struct rlhf__config *config;
    struct rlhf__instance *const *rewards; // [config->n_reward]
    // Set a metric: rewards/<name>/{mean,std}, rewards/not_finite, and
    // objective/verifiable_correct_rate where there are verdicts. NULL = none.
    void (*metric)(void *ctx, const char *name, double value);
    void *metric_ctx;
    uint64_t phase;
    int32_t may_drop_all; // 1: nan_policy drop and on_failure drop may leave no row
    int32_t reserved;
    const struct rlhf__watch *watch;  // told which reward is at work; NULL = nobody
    struct rlhf__log *log;            // told what failed and is gone on from; NULL = nobody
    struct rlhf__reward_books *books; // [config->n_reward], grow; NULL = nobody counts
    struct rlhf__ahead *ahead;        // what they have said of the rows before; NULL = nothing
};

// raw[n] = what one plugin that looks on says of the rows, NaN where it says nothing: no weight, no
// mixing, no penalty, no nan_policy. failed[n] = 1 for those that it could not score, of which
// raw is NaN. Errors: rlhf__reward_ask's. [step]
rlhf_status rlhf__score_alone(const struct rlhf__reward_call *, const struct rlhf__scored *,
                              const struct rlhf__rows *e, float *raw, uint8_t *failed,
                              struct rlhf__error *err);

// Fill e->score, e->reward, e->token[RLHF__TOKEN_REWARD] and the texts' verdict. keep[n] is set to
// 0 for rows that nan_policy drop or on_failure drop leaves out, else 1. raw: NULL, or [n_reward *
// n] of what each plugin pays a row, per-token rewards included. Errors: RLHF_E_NUMERIC names
// plugin and row (nan_policy stop), or says that every row was dropped (unless they may be) or that
// a sum is not finite; rlhf__reward_ask's. [step]
rlhf_status rlhf__score(const struct rlhf__scorer *, struct rlhf__scored *, struct rlhf__rows *e,
                        uint8_t *keep, float *raw, struct rlhf__error *err);

#endif
