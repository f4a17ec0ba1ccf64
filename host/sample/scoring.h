// scoring.h: turns a batch of responses into rewards, in this order:
//
// 1. cut the text to be scored (reward_rows.h)
// 2. call every plugin; rewards.on_failure decides about rows that it could not score
//    (reward_ask.h)
// 3. rewards.nan_policy decides about values that are not finite
// 4. normalize before, weighted sum, normalize after, clip (mixing.h)
// 5. penalties: no period, no stop token
//
// Normalizing is (r - mean) / (std + 1e-5) over the batch, with the biased std. Steps 3 and 4
// include the token rewards (see mixing.h).
#ifndef RLHF_HOST_SAMPLE_SCORING_H
#define RLHF_HOST_SAMPLE_SCORING_H

#include "base/watch.h"
#include "sample/reward_ask.h"
#include "sample/reward_overlap.h"

struct rlhf__team;

// The inputs of scoring; all borrowed.
struct rlhf__scorer {
    const struct rlhf__config *config;
    struct rlhf__instance *const *rewards; // [config->n_reward]
    // Receives the metrics rewards/<name>/{mean,std}, rewards/not_finite and, if there are
    // verdicts, objective/verifiable_correct_rate. NULL = these metrics are not set.
    void (*metric)(void *ctx, const char *name, double value);
    rlhf__metric_fn *reported; // receives what the rewards report; NULL = none
    void *metric_ctx;          // context of both functions
    int64_t phase;
    // 1: nan_policy and on_failure may drop all rows. 0: dropping all rows is an error
    int32_t may_drop_all;
    // 1: the prompts are held out, so rewards get no prompt index (rlhf_reward_in.source)
    int32_t held_out;
    // 1: also fill e->reward_score
    int32_t each;
    const struct rlhf__watch *watch;      // receives the name of the running reward; NULL = none
    struct rlhf__log *log;                // receives tolerated failures; NULL = none
    struct rlhf__reward_tally *tally;     // [config->n_reward], counts are added; NULL = none
    struct rlhf__reward_overlap *overlap; // answers from reward_overlap.h; NULL = none
    // [n_reward * n] receives 1 where a reward has no value for a row; NULL = none
    uint8_t *missing;
    uint8_t *unpaid;         // [n] receives 1 where no reward has a value for a row; NULL = none
    struct rlhf__team *team; // divides the rows among its ranks (reward_share.h); NULL = none
};

// Call a plugin whose scores are not trained on, such as a judge. Weights, mixing, penalties and
// nan_policy do not apply. The rows are divided among the team, which may be NULL. raw[n] receives
// the scores. For each row that the plugin could not score, failed[i] is set to 1 and raw[i] is
// NaN. Errors: those of rlhf__reward_ask. [step]
rlhf_status rlhf__score_alone(struct rlhf__team *team, const struct rlhf__reward_call *,
                              const struct rlhf__scored *, const struct rlhf__rows *e, float *raw,
                              uint8_t *failed, struct rlhf__error *err);

// Fill e->score, e->reward, e->token[RLHF__TOKEN_REWARD], the verdicts of the texts and, with
// `each`, e->reward_score.
// - keep[i] is set to 0 if nan_policy=drop or on_failure=drop removes row i, otherwise to 1.
// - `raw` is NULL or an array [n_reward * n]. It receives each plugin's reward for each row,
//   including token rewards.
//
// Errors: those of rlhf__reward_ask. RLHF_E_NUMERIC if a value is not finite and nan_policy is stop
// (the message names the plugin and the row), if every row was dropped (unless that is allowed), or
// if a sum is not finite. [step]
rlhf_status rlhf__score(const struct rlhf__scorer *, struct rlhf__scored *, struct rlhf__rows *e,
                        uint8_t *keep, float *raw, struct rlhf__error *err);

#endif
