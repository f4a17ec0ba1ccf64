// scoring.h: from a batch of responses to scores: response rules, reward plugins, mixing.
//
// Order: the scored text is cut (response.truncate; before a stop text) -> every plugin scores ->
// values that are not finite are handled (rewards.nan_policy) -> normalise before -> weighted sum
// -> normalise after -> clip -> penalties (no period, no stop token). Normalising is (r - mean) /
// (std + 1e-5) over the batch, biased std. What a row is paid token by token counts in all of it:
// see mixing.h.
#ifndef RLHF_HOST_SCORING_H
#define RLHF_HOST_SCORING_H

#include "batch/rows.h"
#include "config/schema.h"
#include "data/prompts.h"
#include "plugin/services.h"
#include "sample/response_rules.h"

// What scoring needs; all borrowed.
struct rlhf__scorer {
    const struct rlhf__config *config;
    struct rlhf__instance *const *rewards; // [config->n_reward]
    const struct rlhf__response_rules *rules;
    const struct rlhf__prompts *prompts; // which the rows respond to, by their source
    // Set a metric: rewards/<name>/{mean,std}, rewards/not_finite, and
    // objective/verifiable_correct_rate where there are verdicts. NULL = none.
    void (*metric)(void *ctx, const char *name, double value);
    void *metric_ctx;
    uint64_t phase;
    int32_t may_drop_all; // 1: nan_policy drop may leave no row
    int32_t reserved;
    const struct rlhf__watch *watch; // told which reward is at work; NULL = nobody
};

// The scored texts of a batch.
struct rlhf__scored {
    rlhf_str *prompt, *response, *meta; // [n]; response owned, the others borrowed
    char **text;                        // [n] owned bytes of response
    int32_t *scored_len;                // [n] response tokens that are scored
    uint8_t *no_period;                 // [n] 1 = the period rule found none
    uint8_t *verdict; // [n] enum rlhf_verdict of all rewards; none before rlhf__score
    uint32_t n, reserved;
};

// Decode and cut the responses of e. Release with rlhf__scored_finish. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__scored_init(struct rlhf__scored *, const struct rlhf__scorer *,
                              const struct rlhf__rows *e, struct rlhf__error *err);
void rlhf__scored_finish(struct rlhf__scored *); // accepts a zeroed one [any]

// b's texts come behind a's; b is empty afterwards. Errors: RLHF_E_NOMEM, and both are what they
// were. [any]
rlhf_status rlhf__scored_join(struct rlhf__scored *a, struct rlhf__scored *b,
                              struct rlhf__error *err);

// Only the rows pick[0..n), ascending, stay. [any]
void rlhf__scored_pick(struct rlhf__scored *, const uint32_t *pick, uint32_t n);

// The share of right ones among the rows with keep[i] != 0 and a verdict; NaN where there are none.
// [any]
double rlhf__scored_correct(const struct rlhf__scored *, const uint8_t *keep);

// The rows as plugins see them: each ends where scoring ends. e's prompt_len holds for them too.
struct rlhf__cut_rows {
    int32_t *ids, *offset; // [offset[n]], [n + 1]
    float *token;          // [offset[n]] room for per-token rewards
    uint8_t *verdict;      // [n] room for what a reward finds right
    uint8_t *failed;       // [n] room for rows that it could not score
};

// Release with rlhf__cut_rows_finish, also after a failure. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__cut_rows_init(struct rlhf__cut_rows *, const struct rlhf__scored *,
                                const struct rlhf__rows *e, struct rlhf__error *err);
void rlhf__cut_rows_finish(struct rlhf__cut_rows *); // accepts a zeroed one [any]

// raw[n] = what one plugin pays the rows, NaN where it says nothing: no weight, no mixing, no
// penalty, no nan_policy. [step]
rlhf_status rlhf__score_alone(const struct rlhf__scorer *, const struct rlhf__instance *plugin,
                              const struct rlhf__scored *, const struct rlhf__rows *e, float *raw,
                              struct rlhf__error *err);

// Fill e->score, e->reward, e->token[RLHF__TOKEN_REWARD] and the texts' verdict. keep[n] is set to
// 0 for rows that nan_policy drop leaves out, else 1. raw: NULL, or [n_reward * n] of what each
// plugin pays a row, per-token rewards included. Errors: RLHF_E_NUMERIC names plugin and row
// (nan_policy stop), or says that every row was dropped (unless they may be) or that a sum is not
// finite; what plugins say. [step]
rlhf_status rlhf__score(const struct rlhf__scorer *, struct rlhf__scored *, struct rlhf__rows *e,
                        uint8_t *keep, float *raw, struct rlhf__error *err);

#endif
