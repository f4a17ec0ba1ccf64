// sinks.h: the sinks of a run (rlhf/sink.h): plugins that receive the run's metrics and samples. If
// a sink fails, the failure is logged and the sink gets no further phases. The run continues.
#ifndef RLHF_HOST_REPORT_SINKS_H
#define RLHF_HOST_REPORT_SINKS_H

#include "config/config.h"
#include "plugin/services.h"
#include "report/metrics.h"
#include "report/samples.h"

struct rlhf__sinks;

// Create an instance of each sink. The array `plugin` has c->n_sink entries. The plugins and the
// services are borrowed. Errors: those of create(), e.g. if the sink rejects an option;
// RLHF_E_NOMEM. [main]
rlhf_status rlhf__sinks_open(const struct rlhf__config *c, const struct rlhf__plugin *const *plugin,
                             struct rlhf__services *services, struct rlhf__log *log,
                             struct rlhf__sinks **out, struct rlhf__error *err);
void rlhf__sinks_close(struct rlhf__sinks *); // NULL allowed [main]

// Call begin() of each sink. `elapsed` is the number of seconds that the run lasted before this
// call. [main]
void rlhf__sinks_begin(struct rlhf__sinks *, const rlhf_sink_run *run, double elapsed);

// Copy the current phase's metrics. Call it before rlhf__metrics_flush, which clears them. [main]
void rlhf__sinks_take(struct rlhf__sinks *, const struct rlhf__metrics *);

// Call phase() of each sink with the metrics that rlhf__sinks_take copied, and with the n samples.
// `phase` and `steps` are as in rlhf_sink_phase. [main]
void rlhf__sinks_phase(struct rlhf__sinks *, int64_t phase, int64_t steps,
                       const struct rlhf__sample *samples, size_t n);

// Call end() of every sink whose begin() was called. [main]
void rlhf__sinks_end(struct rlhf__sinks *, enum rlhf_run_end how, const char *why);

#endif
