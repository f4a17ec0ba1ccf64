// reward_call.h: a call of a reward: score() of some rows, timed, with its metrics kept and the
// rows that it could not score marked. A call that ended the reward's process is repeated in parts,
// so that only the rows that end it fail. reward_ask.h decides what becomes of failed rows.
#ifndef RLHF_HOST_REWARD_CALL_H
#define RLHF_HOST_REWARD_CALL_H

#include "base/log.h"
#include "plugin/metric_names.h"
#include "plugin/services.h"
#include "sample/reward_rows.h"

// ---- books ----

// Time, failed rows and repeated rows of the calls of one reward.
struct rlhf__reward_books {
    double seconds;     // in its calls
    int64_t failures;   // rows that it could not score, once for each try
    int64_t retries;    // rows that it was asked about again, once for each try
    int64_t unscored;   // rows that stayed without a score
    int64_t not_finite; // rows that rewards.nan_policy zero or drop removed
};

// Add b to *to. [any]
void rlhf__reward_books_add(struct rlhf__reward_books *to, const struct rlhf__reward_books *b);

// Set the metrics <owner>/time, /failures and /retries; owner is "rewards/<name>" or "judge".
// [step]
void rlhf__reward_books_report(const struct rlhf__reward_books *b, const char *owner,
                               void (*metric)(void *ctx, const char *name, double value),
                               void *ctx);

// Log a line of failures and one of numbers that were not finite, where there were any: "reward
// NAME:
// ..." [any]
void rlhf__reward_books_say(const struct rlhf__reward_books *b, const char *name,
                            struct rlhf__log *log);

// ---- metrics ----

// Metrics that a reward may report in a phase; more are left out.
enum { RLHF__MOST_METRICS = 1024 };

// A metric that the reward reported (host->metric).
struct rlhf__reward_metric {
    char name[RLHF__METRIC_NAME]; // as the run knows it
    double value, last;           // of the current call; of the last finished one
    double sum, weight;           // of finished calls
    int32_t calls;                // finished calls that reported it
    int32_t now;                  // 1: the current call reported it
};

// The metrics of a reward in a phase, over one call or several. Zero-initialise; release with
// rlhf__reward_metrics_finish.
struct rlhf__reward_metrics {
    const struct rlhf__instance *reward;
    struct rlhf__reward_metric *item; // [n]
    size_t n, cap;
    int32_t warned; // 1: a warning about more than RLHF__MOST_METRICS was logged
    int32_t reserved;
};

// Report the metrics to the run: the value itself where one call reported it, else the mean over
// the calls, weighted by their rows. [step]
void rlhf__reward_metrics_flush(struct rlhf__reward_metrics *m);
void rlhf__reward_metrics_finish(struct rlhf__reward_metrics *m); // accepts a zeroed one [step]

// ---- calls ----

// A reward and the circumstances of its calls; all borrowed.
struct rlhf__reward_call {
    const struct rlhf__mixing_config *rules; // on_failure, retries, nan_policy
    const struct rlhf__instance *plugin;
    uint64_t phase;
    int32_t pays;                     // for messages; 0: it scores but does not train
    int32_t narrows;                  // 1: find the rows that end its process
    struct rlhf__log *log;            // gets a line for each tolerated failure; NULL = none
    struct rlhf__reward_books *books; // grow; NULL = none
};

// Marks that are not 0. [any]
uint32_t rlhf__marks_count(const uint8_t *marks, uint32_t n);

// 1 where rewards.on_failure keeps the scores of the other rows (zero, drop). [any]
int rlhf__reward_narrows(const struct rlhf__mixing_config *rules);

// Call the reward about r; *a has room for the answer. Rows that could not be scored are marked in
// a->failed and have no scores; then *why is the reason, and *whole is 1 where the call failed
// instead of marking rows. Only its time goes to the books.
//
// With q->narrows, where the call ended the reward's process and the reward keeps no state, the
// call is repeated in parts: the row at which the process ended alone (with its group, unless
// RLHF_REWARD_ROW_ALONE), the rows before and after it without it; where another row is the cause,
// halves, and so on. It stops when the process ended sixteen times, or after four times
// rewards.timeout_s: the rows without an answer have failed then. *why is the reason of the first
// call. Errors: RLHF_E_NOMEM and RLHF_E_CANCELLED of the reward, which are not failures of rows.
// [step]
rlhf_status rlhf__reward_narrow(const struct rlhf__reward_call *q,
                                struct rlhf__reward_metrics *metrics,
                                const struct rlhf__reward_rows *r, struct rlhf__reward_answer *a,
                                struct rlhf__error *why, int32_t *whole, struct rlhf__error *err);

#endif
