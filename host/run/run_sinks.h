// run_sinks.h: what a run tells its sinks (report/sinks.h), and when.
#ifndef RLHF_HOST_RUN_RUN_SINKS_H
#define RLHF_HOST_RUN_RUN_SINKS_H

#include "run/run.h"

// Tell the sinks that the run begins, and, after a resume, report the phases of earlier processes
// that they need. Call this before the first phase of this process, when the run directory is
// complete. [main]
void rlhf__run_sinks_begin(const struct rlhf__run *r);

// Report the phases up to r->count.phase to the sinks. Call this after the phase's checkpoint.
// [main]
void rlhf__run_sinks_report(const struct rlhf__run *r);

// Tell the sinks that the run has ended with status st, and write the end to events.jsonl. If the
// run failed, `err` has the message. [main]
void rlhf__run_sinks_end(const struct rlhf__run *r, rlhf_status st, const struct rlhf__error *err);

// Returns 1 if the process that ended the run's last phase died before it told the sinks about the
// end. [main]
int rlhf__run_sinks_wait(const struct rlhf__run *r);

#endif
