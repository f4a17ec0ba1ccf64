// records.h: the files that a run writes to in every phase: metrics, samples, distributions,
// events, rollouts and the chain.
#ifndef RLHF_HOST_RUN_RECORDS_H
#define RLHF_HOST_RUN_RECORDS_H

#include "base/folder.h"

struct rlhf__run;

// Open the files in the folder `to`, and begin the history of metrics. If keep < 0, they are the
// files of a new run. Otherwise they are those of a run that continues after phase `keep`, and the
// lines of later phases are removed. Does not open rollouts.jsonl. [main]
rlhf_status rlhf__records_open(struct rlhf__run *r, const struct rlhf__folder *to, int64_t keep,
                               struct rlhf__error *err);

// Open rollouts.jsonl, if log.rollouts is set. On resume, the rows of later phases are removed from
// an existing file, even if this process writes no rollouts. [main]
rlhf_status rlhf__records_open_rollouts(struct rlhf__run *r, int64_t keep, struct rlhf__error *err);

// For a process that writes no files: keep the metrics in memory. [main]
rlhf_status rlhf__records_open_silent(struct rlhf__run *r, struct rlhf__error *err);

// Remove the lines of all phases after `phase`: those of a phase that failed after it had written
// some of its lines. The files are closed and opened again, as a resume opens them. After an error
// some files are closed, and the run must end without another checkpoint. [main]
rlhf_status rlhf__records_go_back(struct rlhf__run *r, int64_t phase, struct rlhf__error *err);

#endif
