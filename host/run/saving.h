// saving.h: decides when a run writes a checkpoint. It also writes the checkpoint's state/run.json
// and, after a failed phase, a checkpoint of the last boundary.
//
// keep/checkpoint.h writes the files; keep/boundary.h holds the boundary in memory.
#ifndef RLHF_HOST_RUN_SAVING_H
#define RLHF_HOST_RUN_SAVING_H

#include "base/folder.h"

struct rlhf__run;

// Restore a new run from the checkpoint r->req->dir->checkpoint. [main]
rlhf_status rlhf__saving_load(struct rlhf__run *r, struct rlhf__error *err);

// For a resumed run: point the link `best` at the checkpoint that the state names. If there are
// phases left to run, also move aside the checkpoints of phases after the one that is resumed.
// Otherwise remove the old checkpoints that the end of the run could not remove.
// [main]
rlhf_status rlhf__saving_mend(const struct rlhf__run *r, struct rlhf__error *err);

// Begin a new or resumed run. For a resumed run, r->count.phase is the phase of its checkpoint.
// [main]
void rlhf__saving_begin(struct rlhf__run *r);

// Record the current phase boundary in memory (boundary.h). Errors: those of rlhf__boundary_note.
// [main]
rlhf_status rlhf__saving_note(struct rlhf__run *r, struct rlhf__error *err);

// After a phase: wait for the other processes, if there are any. All processes then agree on the
// status `st`, on whether the run stops, and on whether it is time for a checkpoint. Errors: those
// of rlhf__team_agree. [main]
rlhf_status rlhf__saving_meet(struct rlhf__run *r, rlhf_status st, struct rlhf__error *err);

// After a phase: write a checkpoint if checkpoint.every or checkpoint.every_s demands one, or if
// SIGUSR1 was received. The clock decides only whether a file is written. Nothing else depends on
// the clock. [main]
rlhf_status rlhf__saving_phase(struct rlhf__run *r, struct rlhf__error *err);

// At the normal end: write a checkpoint, unless the last phase already has one. [main]
rlhf_status rlhf__saving_end(struct rlhf__run *r, struct rlhf__error *err);

// Write a checkpoint of the boundary to the new directory `name` of the folder `in`. Does not
// change any link and does not choose the best checkpoint. [main]
rlhf_status rlhf__saving_copy(struct rlhf__run *r, const struct rlhf__folder *in, const char *name,
                              struct rlhf__error *err);

// Call this when a phase has failed, or when a checkpoint could not be written. Restores the last
// boundary. Writes a checkpoint of it, unless one was already attempted. Logs which phases are
// saved and which are lost. Sets r->count.phase to the saved phase. [main]
void rlhf__saving_rescue(struct rlhf__run *r);

// At the end: log the command that resumes the run, unless nothing was saved or all phases are
// done. [main]
void rlhf__saving_say_next(const struct rlhf__run *r);

#endif
