// scored.h: the texts of responses as they are scored: cut by the response rules
// (response.truncate; before a stop text), with their verdicts and scores.
#ifndef RLHF_HOST_SCORED_H
#define RLHF_HOST_SCORED_H

#include "batch/rows.h"
#include "config/schema.h"
#include "data/prompts.h"
#include "sample/response_rules.h"

// The scored texts of a batch.
struct rlhf__scored {
    rlhf_str *prompt, *response, *meta; // [n]; response owned, the others borrowed
    char **text;                        // [n] owned bytes of response
    int32_t *scored_len;                // [n] response tokens that are scored
    uint8_t *no_period;                 // [n] 1 = the response has no period
    uint8_t *verdict; // [n] enum rlhf_verdict of all rewards; none before rlhf__score
    float *paid;      // [n * n_rewards] each reward's score of each row; NULL: there is only one
                      // reward
    uint32_t n, n_rewards;
};

// The rules that cut the texts, and the prompts of the rows, by their source; all borrowed.
struct rlhf__scored_by {
    const struct rlhf__response_config *response;
    const struct rlhf__response_rules *rules;
    const struct rlhf__prompts *prompts;
};

// Decode and cut the responses of e. Release with rlhf__scored_finish. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__scored_init(struct rlhf__scored *, const struct rlhf__scored_by *,
                              const struct rlhf__rows *e, struct rlhf__error *err);
void rlhf__scored_finish(struct rlhf__scored *); // accepts a zeroed one [any]

// Append b's texts to a's; b is empty afterwards. Errors: RLHF_E_NOMEM, and both are unchanged.
// [any]
rlhf_status rlhf__scored_join(struct rlhf__scored *a, struct rlhf__scored *b,
                              struct rlhf__error *err);

// Keep each of several rewards' scores: raw[n_rewards * n], as rlhf__score fills it. Errors:
// RLHF_E_NOMEM. [any]
rlhf_status rlhf__scored_take_paid(struct rlhf__scored *, const float *raw, uint32_t n_rewards,
                                   struct rlhf__error *err);

// Keep only the rows pick[0..n), ascending. [any]
void rlhf__scored_pick(struct rlhf__scored *, const uint32_t *pick, uint32_t n);

// The share of right answers among the rows with keep[i] != 0 and a verdict, or NaN.
// [any]
double rlhf__scored_correct(const struct rlhf__scored *, const uint8_t *keep);

#endif
