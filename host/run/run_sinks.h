// run_sinks.h: what a run reports to its sinks (report/sinks.h), and when.
#ifndef RLHF_HOST_RUN_RUN_SINKS_H
#define RLHF_HOST_RUN_RUN_SINKS_H

#include "run/run.h"

// Tell the sinks that the run begins. Call this before the first phase of this process, when the
// run directory is complete. [main]
void rlhf__run_sinks_begin(const struct rlhf__run *r);

// Write the metrics of phase r->count.phase. Then give them to the sinks, with the samples that
// were written to samples.jsonl. Errors: those of rlhf__metrics_flush. [main]
rlhf_status rlhf__run_sinks_phase(const struct rlhf__run *r, struct rlhf__error *err);

// Tell the sinks that the run has ended with status st, and write the end to events.jsonl. If the
// run failed, `err` has the message. [main]
void rlhf__run_sinks_end(const struct rlhf__run *r, rlhf_status st, const struct rlhf__error *err);

#endif
