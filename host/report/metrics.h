// metrics.h: the metrics of a run: RUN/metrics.jsonl (one object per phase) and, if configured,
// TensorBoard events in RUN/tensorboard/ and RUN/metrics.csv. Each is a metrics file
// (metrics_file.h).
//
// Names are a contract (docs/metrics.md). This file does not measure: it stores the last value that
// the host set for each name in the current phase, and combines what plugins report under a name.
#ifndef RLHF_HOST_METRICS_H
#define RLHF_HOST_METRICS_H

#include "base/folder.h"
#include "base/log.h"
#include "config/schema.h"

#include <rlhf/base.h>

struct rlhf__metrics;

// Open for a new run (keep_phase < 0) or a resumed one. Rows of phases > keep_phase and rows cut
// short by a crash are dropped from every file, even from one that is no longer enabled. run is
// borrowed until close. [main]
rlhf_status rlhf__metrics_open(const struct rlhf__folder *run, const struct rlhf__log_config *want,
                               int64_t keep_phase, struct rlhf__log *log,
                               struct rlhf__metrics **out, struct rlhf__error *err);
void rlhf__metrics_close(struct rlhf__metrics *m); // NULL allowed; unflushed values are dropped

// Set a value of the current phase; a later one replaces it. The name "phase" is reserved and
// ignored. [any]
rlhf_status rlhf__metrics_set(struct rlhf__metrics *m, const char *name, double value);

// Add what a plugin reports with host->metric (enum rlhf_combine). A report that is to be combined
// in another way than the name's first one in this phase is left out, which is logged once a run.
// [any]
rlhf_status rlhf__metrics_report(struct rlhf__metrics *m, const char *name, double value,
                                 double weight, int32_t combine);

// rlhf__metrics_set as a callback: ctx is the struct rlhf__metrics. [any]
void rlhf__metrics_put(void *ctx, const char *name, double value);

// For struct rlhf__services.metric: rlhf__metrics_report; ctx as above. [any]
void rlhf__metrics_reported(void *ctx, const char *name, double value, double weight,
                            int32_t combine);

// The same two callbacks with a prefix in front of every name, e.g. for held-out rows, whose
// metrics do not replace those of the phase; ctx is a struct rlhf__metrics_under. [any]
struct rlhf__metrics_under {
    struct rlhf__metrics *metrics;
    const char *prefix; // "eval/"
};
void rlhf__metrics_under_put(void *ctx, const char *name, double value);
void rlhf__metrics_under_reported(void *ctx, const char *name, double value, double weight,
                                  int32_t combine);

// *out = the current phase's value. Returns 0 if it was not set; *out is then unchanged. [any]
int rlhf__metrics_get(const struct rlhf__metrics *m, const char *name, double *out);

// Call visit, which must not set values, with each name that the current phase has set. [main]
void rlhf__metrics_names(const struct rlhf__metrics *m, void (*visit)(void *arg, const char *name),
                         void *arg);

// Write the phase's row to every file, in the order of the names, and flush it to the operating
// system. Then clear the phase's values. [main]
rlhf_status rlhf__metrics_flush(struct rlhf__metrics *m, int64_t phase, struct rlhf__error *err);

// Write a Markdown text under a tag, for files that take texts (TensorBoard). [main]
rlhf_status rlhf__metrics_text(struct rlhf__metrics *m, int64_t phase, const char *tag,
                               rlhf_str text, struct rlhf__error *err);

// fsync every file, before a checkpoint is committed. [main]
rlhf_status rlhf__metrics_sync(struct rlhf__metrics *m, struct rlhf__error *err);

#endif
