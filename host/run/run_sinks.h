// run_sinks.h: what a run tells its sinks (report/sinks.h), and when.
#ifndef RLHF_HOST_RUN_SINKS_H
#define RLHF_HOST_RUN_SINKS_H

#include "run/run.h"

// Before the first phase of this process. The run directory is complete. [main]
void rlhf__run_sinks_begin(const struct rlhf__run *r);

// Write the row of metrics of r->count.phase phases, and then tell the sinks about it, with the
// samples that samples.jsonl got. Errors: those of rlhf__metrics_flush. [main]
rlhf_status rlhf__run_sinks_phase(const struct rlhf__run *r, struct rlhf__error *err);

// The run has ended with this status; err holds the message of a failure. [main]
void rlhf__run_sinks_end(const struct rlhf__run *r, rlhf_status st, const struct rlhf__error *err);

#endif
