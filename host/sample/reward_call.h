// reward_call.h: one call of a reward: score() for some rows, with its time, its metrics and marks
// for the rows that it could not score. If a call ended the reward's process, it is repeated in
// parts, so that only the rows that end the process fail. reward_ask.h decides what happens to
// failed rows.
#ifndef RLHF_HOST_REWARD_CALL_H
#define RLHF_HOST_REWARD_CALL_H

#include "base/log.h"
#include "plugin/combine.h"
#include "plugin/metric_names.h"
#include "plugin/services.h"
#include "sample/reward_rows.h"

// ---- tally ----

// Time, failed rows and repeated rows of one reward's calls.
struct rlhf__reward_tally {
    double seconds;     // spent in calls
    int64_t failures;   // rows that it could not score, counted once per try
    int64_t retries;    // rows that were scored again, counted once per try
    int64_t unscored;   // rows without a score in the end
    int64_t not_finite; // rows removed by rewards.nan_policy zero or drop
};

// Add b to *to. [any]
void rlhf__reward_tally_add(struct rlhf__reward_tally *to, const struct rlhf__reward_tally *b);

// Set the metrics <owner>/time, /failures and /retries; owner is "rewards/<name>" or "judge".
// [step]
void rlhf__reward_tally_report(const struct rlhf__reward_tally *b, const char *owner,
                               void (*metric)(void *ctx, const char *name, double value),
                               void *ctx);

// Log a line about failures and one about numbers that were not finite, if there were any: "reward
// NAME: ..." [any]
void rlhf__reward_tally_say(const struct rlhf__reward_tally *b, const char *name,
                            struct rlhf__log *log);

// ---- metrics ----

// Limit of metrics that a reward may report in a phase; further ones are ignored.
enum { RLHF__MOST_METRICS = 1024 };

// A metric that the reward reported (host->metric).
struct rlhf__reward_metric {
    char name[RLHF__METRIC_NAME];  // name in the run's metrics
    struct rlhf__combined now;     // of the current call
    struct rlhf__combined pending; // of finished calls that may not count
    struct rlhf__combined all;     // of calls that count
};

// The metrics of a reward in a phase, over one call or several. Zero-initialise; release with
// rlhf__reward_metrics_finish.
struct rlhf__reward_metrics {
    const struct rlhf__instance *reward; // of the last call
    struct rlhf__reward_metric *item;    // [n]
    size_t n, cap;
    int32_t warned;       // 1: a warning about more than RLHF__MOST_METRICS was logged
    int32_t warned_mixed; // 1: a warning was logged about a name that is combined in two ways
};

// Decide about the reports of finished calls: accept them, or drop them because their rows are
// scored again. drop returns 1 if there were any. [step]
void rlhf__reward_metrics_accept(struct rlhf__reward_metrics *m);
int rlhf__reward_metrics_drop(struct rlhf__reward_metrics *m);

// Report the accepted values, combined as the reward asks (enum rlhf_combine). metric NULL: do not.
// [step]
void rlhf__reward_metrics_flush(struct rlhf__reward_metrics *m, rlhf__metric_fn *metric, void *ctx);
void rlhf__reward_metrics_finish(struct rlhf__reward_metrics *m); // accepts a zeroed one [step]

// ---- calls ----

// A reward and the settings of its calls; all borrowed.
struct rlhf__reward_call {
    const struct rlhf__mixing_config *rules; // on_failure, retries, nan_policy
    const struct rlhf__instance *plugin;
    int64_t phase;
    int32_t trains;          // for messages; 0: it scores but does not train
    int32_t bisects;         // 1: isolate the rows that end its process
    rlhf__metric_fn *metric; // receives what the reward reports; NULL = left out
    void *metric_ctx;
    struct rlhf__log *log;            // receives a line for each tolerated failure; NULL = none
    struct rlhf__reward_tally *tally; // added to; NULL = none
};

// Number of marks that are not 0. [any]
uint32_t rlhf__marks_count(const uint8_t *marks, uint32_t n);

// 1 if rewards.on_failure keeps the scores of the other rows (zero, drop). [any]
int rlhf__reward_bisects(const struct rlhf__mixing_config *rules);

// Call the reward for r; *a must be allocated. Rows that could not be scored are marked in
// a->failed and get no scores; then *why is the reason, and *whole is 1 if the call failed instead
// of marking rows. Only the time is added to the tally. *metrics keeps what the reward reports
// until the caller accepts or drops it.
//
// With q->bisects, if the call ended the reward's process and the reward keeps no state, the call
// is repeated in parts: the row at which the process ended alone (with its group, unless
// RLHF_REWARD_ROW_ALONE), then the rows before it and those after it. If another row is the cause,
// the rows are split in halves, and so on. This stops after the process has ended sixteen times, or
// after four times rewards.timeout_s; the rows without an answer then count as failed. *why is the
// reason of the first call. Errors: RLHF_E_NOMEM and RLHF_E_CANCELLED of the reward, which do not
// count as failures of rows. [step]
rlhf_status rlhf__reward_bisect(const struct rlhf__reward_call *q,
                                struct rlhf__reward_metrics *metrics,
                                const struct rlhf__reward_rows *r, struct rlhf__reward_answer *a,
                                struct rlhf__error *why, int32_t *whole, struct rlhf__error *err);

#endif
