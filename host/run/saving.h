// saving.h: when a run writes a checkpoint, and what it keeps after a phase that failed.
//
// keep/checkpoint.h has the files, keep/boundary.h the boundary in memory.
#ifndef RLHF_HOST_SAVING_H
#define RLHF_HOST_SAVING_H

#include "base/error.h"

struct rlhf__run;

// Restore a new run from the checkpoint r->req->dir->checkpoint. [main]
rlhf_status rlhf__saving_load(struct rlhf__run *r, struct rlhf__error *err);

// For a resumed run: make the link `best` what the state says and, if phases are to be run, set
// aside checkpoints of later phases. [main]
rlhf_status rlhf__saving_mend(const struct rlhf__run *r, struct rlhf__error *err);

// The run begins (again): r->count.phase is in its checkpoint when it was resumed. [main]
void rlhf__saving_begin(struct rlhf__run *r);

// The run is at a phase boundary: note it in memory (boundary.h). Errors: rlhf__boundary_note's.
// [main]
rlhf_status rlhf__saving_note(struct rlhf__run *r, struct rlhf__error *err);

// A phase is over: write a checkpoint where one is due, by checkpoint.every, by checkpoint.every_s
// or because SIGUSR1 asked. Time decides only whether a file is written. [main]
rlhf_status rlhf__saving_phase(struct rlhf__run *r, struct rlhf__error *err);

// The run ends in order: write the checkpoint unless there is one of this phase. [main]
rlhf_status rlhf__saving_end(struct rlhf__run *r, struct rlhf__error *err);

// A phase or a checkpoint failed: go back to the last boundary, write its checkpoint if that was
// not tried, and log what is kept and what is lost. r->count.phase is what is kept. [main]
void rlhf__saving_rescue(struct rlhf__run *r);

// After the end: log the command that resumes the run, unless nothing is kept or all phases are
// done. [main]
void rlhf__saving_say_next(const struct rlhf__run *r);

#endif
