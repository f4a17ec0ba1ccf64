// ahead.h: the batch in flight of a run with rollout.ahead, i.e. the responses of the next phase.
// While the current phase trains, a thread of this process (sample/sampler.h) or other processes
// (sample/actors.h) sample this batch with the weights from the start of the current phase. The
// batch is handed over when both training and sampling are done. So, except in the first phase, the
// rows of a phase always come from the weights at the start of the previous phase, no matter
// whether training or sampling is faster.
//
// A checkpoint contains the batch in flight in state/ahead.rows (batch/rows_file.h), because the
// weights that sampled the batch no longer exist. The checkpoint's cursor points past the prompts
// of the batch.
#ifndef RLHF_HOST_FEED_AHEAD_H
#define RLHF_HOST_FEED_AHEAD_H

#include "base/folder.h"
#include "batch/rows_file.h"
#include "sample/actors.h"
#include "sample/experience.h"
#include "sample/sampler.h"

struct rlhf__ahead; // opaque

// Takes ownership of the sampler, which may be NULL if the run has actors (rlhf__ahead_act).
// Errors: RLHF_E_NOMEM; the sampler is then destroyed. [main]
rlhf_status rlhf__ahead_open(struct rlhf__sampler *, struct rlhf__ahead **out,
                             struct rlhf__error *err);
// Let these actors sample the batches. The actors are borrowed. Call this before the first batch.
// [main]
void rlhf__ahead_act(struct rlhf__ahead *, struct rlhf__actors *);
void rlhf__ahead_close(struct rlhf__ahead *); // NULL allowed [main]

// Returns the sampler (borrowed), or NULL if actors sample the batches. [any]
struct rlhf__sampler *rlhf__ahead_sampler(const struct rlhf__ahead *);

// Begin to sample the next phase's batch; see rlhf__sampler_begin and rlhf__actors_begin. [step]
rlhf_status rlhf__ahead_begin(struct rlhf__ahead *, const struct rlhf__rollout_request *q,
                              int64_t *row, struct rlhf__error *err);

// How long each side of a phase waited for the other, in seconds.
struct rlhf__ahead_idle {
    double trainer;   // time from the end of training until the batch was complete
    double rollouter; // time without a batch to sample
    double all;       // length of the whole phase
};

// Call this at the end of a phase. Waits until the batch is complete, and sets `*idle` to the idle
// times of the phase. phase_start is the value of rlhf__seconds at the start of the phase. If no
// batch was begun, sets the times to 0 and returns at once. Errors: those of rlhf__rollout. [step]
rlhf_status rlhf__ahead_wait(struct rlhf__ahead *, double phase_start,
                             struct rlhf__ahead_idle *idle, struct rlhf__error *err);
// Returns the idle times, summed over the phases of this process. [any]
struct rlhf__ahead_idle rlhf__ahead_idle(const struct rlhf__ahead *);

// Returns 1 if there is a complete batch for the next phase. [any]
int rlhf__ahead_ready(const struct rlhf__ahead *);

// Move the complete batch to *x, which must not have rows yet. The batch's first sequence must have
// the number `first` within the run. Errors: RLHF_E_INVALID if it has a different number. [step]
rlhf_status rlhf__ahead_take(struct rlhf__ahead *, uint64_t first, struct rlhf__experience *x,
                             struct rlhf__error *err);

// ---- checkpoints ----

// Call these functions at a phase boundary. rlhf__ahead_prepare serializes the complete batch. From
// rlhf__ahead_note until the next boundary, rlhf__ahead_save writes these bytes, even if the batch
// has already been taken. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__ahead_prepare(struct rlhf__ahead *, struct rlhf__error *err);
void rlhf__ahead_note(struct rlhf__ahead *);

// rlhf__ahead_save writes the batch in flight to a checkpoint's folder; rlhf__ahead_load reads it
// from the checkpoint in `dir`. rlhf__ahead_load returns RLHF_E_INVALID if the file is missing, is
// damaged or belongs to another run. [main]
rlhf_status rlhf__ahead_save(const struct rlhf__ahead *, const struct rlhf__folder *checkpoint,
                             struct rlhf__error *err);
rlhf_status rlhf__ahead_load(struct rlhf__ahead *, const char *dir,
                             const struct rlhf__rows_fit *fit, struct rlhf__error *err);

#endif
