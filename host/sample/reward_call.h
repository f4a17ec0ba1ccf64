// reward_call.h: one call of a reward, which scores some rows. Records the time, the reward's
// metrics, and the rows that the reward could not score. If the reward's process terminated during
// the call, the call is repeated in parts, so that only the rows that make the process terminate
// count as failed. reward_ask.h decides what happens to failed rows.
#ifndef RLHF_HOST_SAMPLE_REWARD_CALL_H
#define RLHF_HOST_SAMPLE_REWARD_CALL_H

#include "base/log.h"
#include "plugin/combine.h"
#include "plugin/metric_names.h"
#include "plugin/services.h"
#include "sample/reward_rows.h"

// ---- tally ----

// Time and counts over the calls of one reward.
struct rlhf__reward_tally {
    double seconds;     // spent in calls
    int64_t failures;   // rows that the reward could not score, counted in every try
    int64_t retries;    // rows that were scored again, counted in every try
    int64_t unscored;   // rows without a score in the end
    int64_t not_finite; // rows to which rewards.nan_policy zero or drop was applied
};

// Add the counts of *b to *to. [any]
void rlhf__reward_tally_add(struct rlhf__reward_tally *to, const struct rlhf__reward_tally *b);

// Set the metrics <owner>/time, <owner>/failures and <owner>/retries. `owner` is "rewards/<name>"
// or "judge". [step]
void rlhf__reward_tally_report(const struct rlhf__reward_tally *b, const char *owner,
                               void (*metric)(void *ctx, const char *name, double value),
                               void *ctx);

// Log "reward NAME: ..." lines: one line about failures and one about numbers that were not finite,
// each only if there were any. [any]
void rlhf__reward_tally_say(const struct rlhf__reward_tally *b, const char *name,
                            struct rlhf__log *log);

// ---- metrics ----

// Maximum number of metrics that a reward may report in a phase. Further ones are ignored.
enum { RLHF__MOST_METRICS = 1024 };

// A metric that a reward reports (host->metric).
struct rlhf__reward_metric {
    char name[RLHF__METRIC_NAME];  // name in the run's metrics
    struct rlhf__combined now;     // values of the current call
    struct rlhf__combined pending; // values of finished calls, not yet accepted
    struct rlhf__combined all;     // accepted values
};

// The metrics that a reward reports in a phase, in one call or several. Zero-initialize; release
// with rlhf__reward_metrics_finish.
struct rlhf__reward_metrics {
    const struct rlhf__instance *reward; // the reward of the last call
    struct rlhf__reward_metric *item;    // [n]
    size_t n, cap;
    int32_t warned;       // 1: a warning about more than RLHF__MOST_METRICS was logged
    int32_t warned_mixed; // 1: a warning was logged about a name that is combined in two ways
};

// rlhf__reward_metrics_accept keeps the values that were reported since the last call of one of
// these two functions. rlhf__reward_metrics_drop discards these values, because the rows are scored
// again; it returns 1 if there were any. [step]
void rlhf__reward_metrics_accept(struct rlhf__reward_metrics *m);
int rlhf__reward_metrics_drop(struct rlhf__reward_metrics *m);

// Pass the accepted values to `metric`, combined as the reward asks (enum rlhf_combine). If
// `metric` is NULL, discard them. [step]
void rlhf__reward_metrics_flush(struct rlhf__reward_metrics *m, rlhf__metric_fn *metric, void *ctx);
void rlhf__reward_metrics_finish(struct rlhf__reward_metrics *m); // accepts a zeroed struct [step]

// ---- calls ----

// A reward and the settings of its calls; all borrowed.
struct rlhf__reward_call {
    const struct rlhf__mixing_config *rules; // on_failure, retries, nan_policy
    const struct rlhf__instance *plugin;
    int64_t phase;
    int32_t trains;  // for messages: 0 if the reward's scores are not trained on
    int32_t bisects; // 1: isolate the rows that end the reward's process
    // For messages: row_from is the position of the first row of this request within the batch,
    // row_all is the number of rows of the batch. If row_all is 0, this request is the whole batch.
    uint32_t row_from, row_all;
    rlhf__metric_fn *metric; // receives the metrics that the reward reports; may be NULL
    void *metric_ctx;
    struct rlhf__log *log;            // receives one line per tolerated failure; NULL = none
    struct rlhf__reward_tally *tally; // counts are added to it; NULL = none
};

// Returns the number of marks that are not 0. [any]
uint32_t rlhf__marks_count(const uint8_t *marks, uint32_t n);

// Returns 1 if rewards.on_failure (zero, drop) keeps the scores of the rows that did not fail.
// [any]
int rlhf__reward_bisects(const struct rlhf__mixing_config *rules);

// Call the reward for r; *a must be allocated. Rows that could not be scored are marked in
// a->failed and get no scores, and *why receives the reason. *whole is 1 if the call failed as a
// whole, and 0 if the reward marked rows. The tally receives only the time. *metrics keeps the
// metrics that the reward reports until the caller accepts or drops them.
//
// The call is repeated in parts if three conditions hold: q->bisects is set, the reward's process
// terminated during the call, and the reward keeps no state. The rows that make the process
// terminate are then found as follows:
// - Row x is the row at which the process terminated. The first three calls are for the rows before
//   x, for x, and for the rows after x. Unless RLHF_REWARD_ROW_ALONE is set, x is scored with its
//   group.
// - If the call for x does not terminate the process, x was not the cause. From then on, parts that
//   terminate the process are split in halves.
// - After sixteen terminations, or after four times rewards.timeout_s, the search stops. The rows
//   that are still unanswered count as failed.
//
// If the call was repeated in parts, *why is the reason for which the first call failed. Errors:
// RLHF_E_NOMEM and RLHF_E_CANCELLED of the reward, which do not count as failures of rows. [step]
rlhf_status rlhf__reward_bisect(const struct rlhf__reward_call *q,
                                struct rlhf__reward_metrics *metrics,
                                const struct rlhf__reward_rows *r, struct rlhf__reward_answer *a,
                                struct rlhf__error *why, int32_t *whole, struct rlhf__error *err);

#endif
