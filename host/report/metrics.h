// metrics.h: the numbers of a run: RUN/metrics.jsonl (one object a phase) and, as the settings have
// it, TensorBoard events in RUN/tensorboard/ and RUN/metrics.csv. Each is a sink (sink.h).
//
// Names are a contract (docs/metrics.md). Not a timer and not an aggregator: it keeps the last
// value of each name in the current phase.
#ifndef RLHF_HOST_METRICS_H
#define RLHF_HOST_METRICS_H

#include "base/folder.h"
#include "base/log.h"
#include "config/schema.h"

#include <rlhf/base.h>

struct rlhf__metrics;

// Open for a new run (keep_phase < 0) or a resumed one: rows of phases > keep_phase are dropped
// from every file, also from one that an earlier process wrote and this one is not to; what was
// being written when a process died goes with them. run is borrowed until close. [main]
rlhf_status rlhf__metrics_open(const struct rlhf__folder *run, const struct rlhf__log_config *want,
                               int64_t keep_phase, struct rlhf__log *log,
                               struct rlhf__metrics **out, struct rlhf__error *err);
void rlhf__metrics_close(struct rlhf__metrics *m); // NULL allowed; unflushed values are dropped

// Set a value of the current phase; a later one replaces it. "phase" is the row's own and not
// set. [any]
rlhf_status rlhf__metrics_set(struct rlhf__metrics *m, const char *name, double value);

// Until the next call `prefix` stands in front of every name that is set: what plugins say of
// held-out rows is not taken for the phase's. Borrowed; NULL = nothing does. [main]
void rlhf__metrics_under(struct rlhf__metrics *m, const char *prefix);

// With on 1, until the next call, nothing is set: what is said of some rows more is no figure of
// the phase's. [main]
void rlhf__metrics_mute(struct rlhf__metrics *m, int on);

// For struct rlhf__services.metric: ctx is the struct rlhf__metrics. [any]
void rlhf__metrics_sink(void *ctx, const char *name, double value);

// *out = the current phase's value; 0 when it was not set (then *out is untouched). [any]
int rlhf__metrics_get(const struct rlhf__metrics *m, const char *name, double *out);

// Call visit with each name that the current phase has set; it must not set any. [main]
void rlhf__metrics_names(const struct rlhf__metrics *m, void (*visit)(void *arg, const char *name),
                         void *arg);

// Write the phase's row to every sink, in the order of the names; flushed to the system. Then the
// phase's values are forgotten. [main]
rlhf_status rlhf__metrics_flush(struct rlhf__metrics *m, int64_t phase, struct rlhf__error *err);

// A Markdown text under a tag, for the sinks that keep texts (TensorBoard). [main]
rlhf_status rlhf__metrics_text(struct rlhf__metrics *m, int64_t phase, const char *tag,
                               rlhf_str text, struct rlhf__error *err);

// fsync every file: before a checkpoint is committed. [main]
rlhf_status rlhf__metrics_sync(struct rlhf__metrics *m, struct rlhf__error *err);

#endif
