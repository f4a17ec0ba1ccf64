// metrics.h: the metrics of a run. They are written to RUN/metrics.jsonl, one object per phase.
//
// Metric names are a contract (docs/metrics.md). Nothing is measured here. For each name, metrics.c
// stores the last value that the host set in the current phase, and combines the values that
// plugins report.
#ifndef RLHF_HOST_REPORT_METRICS_H
#define RLHF_HOST_REPORT_METRICS_H

#include "base/folder.h"
#include "base/log.h"

#include <rlhf/base.h>

#define RLHF__ENTROPY_METRIC "objective/entropy_per_token"
#define RLHF__REWARD_METRIC  "objective/scores" // mean reward of the phase's responses

struct rlhf__metrics;

// Open the metrics of a new run (keep_phase < 0) or of a resumed one. On resume, the rows of phases
// > keep_phase are removed. A row that a crash cut short is removed, too. `run` is borrowed until
// close. If `run` is NULL, nothing is written, and the values are only in memory. [main]
rlhf_status rlhf__metrics_open(const struct rlhf__folder *run, int64_t keep_phase,
                               struct rlhf__log *log, struct rlhf__metrics **out,
                               struct rlhf__error *err);
void rlhf__metrics_close(struct rlhf__metrics *m); // NULL allowed; unflushed values are dropped

// Set the value of a metric in the current phase, in place of an earlier value. The name "phase" is
// reserved and ignored. [any]
rlhf_status rlhf__metrics_set(struct rlhf__metrics *m, const char *name, double value);

// Add a value that a plugin reported with host->metric. `combine` is an enum rlhf_combine. If
// `combine` differs from that of the phase's first report under this name, the value is dropped.
// The first dropped value of a run is logged. [any]
rlhf_status rlhf__metrics_report(struct rlhf__metrics *m, const char *name, double value,
                                 double weight, int32_t combine);

// This is rlhf__metrics_set as a callback. `ctx` is the struct rlhf__metrics. [any]
void rlhf__metrics_put(void *ctx, const char *name, double value);

// This is rlhf__metrics_report as a callback, for struct rlhf__services.metric. `ctx` is the struct
// rlhf__metrics. [any]
void rlhf__metrics_reported(void *ctx, const char *name, double value, double weight,
                            int32_t combine);

// These callbacks are like rlhf__metrics_put and rlhf__metrics_reported, but put a prefix before
// every name. They are used for held-out rows, whose metrics must not replace the metrics of the
// phase. `ctx` is a struct rlhf__metrics_under. [any]
struct rlhf__metrics_under {
    struct rlhf__metrics *metrics;
    const char *prefix; // "eval/"
};
void rlhf__metrics_under_put(void *ctx, const char *name, double value);
void rlhf__metrics_under_reported(void *ctx, const char *name, double value, double weight,
                                  int32_t combine);

// Returns 1 and sets *out if the metric has a value in the current phase. Otherwise returns 0 and
// leaves *out unchanged. [any]
int rlhf__metrics_get(const struct rlhf__metrics *m, const char *name, double *out);

// Call `visit` with the name of each metric that was set in the current phase. `visit` must not set
// values. [main]
void rlhf__metrics_names(const struct rlhf__metrics *m, void (*visit)(void *arg, const char *name),
                         void *arg);

// Write the phase's metrics, sorted by name, as a row of the file, and flush the row to the
// operating system. Then clear the phase's values. [main]
rlhf_status rlhf__metrics_flush(struct rlhf__metrics *m, int64_t phase, struct rlhf__error *err);

// Call fsync on the file. This is needed before a checkpoint is committed. [main]
rlhf_status rlhf__metrics_sync(struct rlhf__metrics *m, struct rlhf__error *err);

#endif
