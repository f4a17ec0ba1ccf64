// boundary.h: the last phase boundary of a run, which the run returns to when the next phase fails:
// what a checkpoint of it holds beside the weights, and a copy of everything that an update changes
// (weights, moments, the reference where it moves; the reward model, its optimiser and its pairs
// where it is trained).
//
// It is noted after every phase and kept in memory; checkpoint.h writes files. The copy (`undo`)
// takes as much memory as those tensors have (AdamW: 12 bytes a trained parameter), so there is a
// limit above which none is made (checkpoint.undo_mib).
#ifndef RLHF_HOST_BOUNDARY_H
#define RLHF_HOST_BOUNDARY_H

#include "keep/best.h"
#include "keep/plugin_states.h"
#include "learn/optim.h"
#include "model/model.h"
#include "model/reward_head.h"
#include "outer/iteration.h"

#include <jansson.h>

#define RLHF__UNDO_MODELS 4
#define RLHF__UNDO_OPTIMS 3

// What an update changes; NULL where a run has no such part.
struct rlhf__changing {
    const rlhf_compute *compute;
    struct rlhf__model *model[RLHF__UNDO_MODELS];
    const struct rlhf__optim *optim[RLHF__UNDO_OPTIMS];
    struct rlhf__iteration *iteration;
};

struct rlhf__undo_item {
    rlhf_dev dev;
    uint64_t bytes;
};

// Zero-initialise; release with rlhf__undo_finish.
struct rlhf__undo {
    int32_t taken; // 1: the copy was made
    int32_t reserved;
    uint64_t bytes;               // of all items
    size_t n;                     // items, 0 = not listed yet
    struct rlhf__undo_item *item; // [n]
    char *copy;                   // [bytes], NULL when beyond the limit
    // Of a reward model in training.
    struct rlhf__reward_head head;
    struct rlhf__replay replay;
    struct rlhf__optim_count count; // of its optimiser
    uint64_t syncs;
};

// Counters that grow whenever something that the copy holds may have changed.
struct rlhf__boundary_marks {
    int64_t step[RLHF__UNDO_OPTIMS];
    uint64_t syncs, rounds, pairs;
};

// Zero-initialise; release with rlhf__boundary_finish.
struct rlhf__boundary {
    int64_t phase; // phases done there
    json_t *run;   // run.json of it, without the best checkpoint
    struct rlhf__plugin_states plugins;
    struct rlhf__best best;
    struct rlhf__boundary_marks marks;
    struct rlhf__undo undo;
};

// What there is to note.
struct rlhf__boundary_now {
    int64_t phase;
    struct rlhf__best best;
    json_t *run; // owned by the boundary from now on, also after a failure; NULL = out of memory
    const struct rlhf__cast *cast;
    struct rlhf__changing what;
    int64_t undo_mib; // limit of the copy
};

// The run is at a boundary: note it. After an error the earlier boundary is still there. Errors:
// RLHF_E_NOMEM, what a plugin's save() says, RLHF_E_DEVICE. [main]
rlhf_status rlhf__boundary_note(struct rlhf__boundary *b, const struct rlhf__boundary_now *now,
                                struct rlhf__error *err);

// A phase was left half-way: weights, moments and what else an update changes become what they were
// at the boundary. Exact before the first optimiser step of the phase; after it, by the copy.
// Errors: RLHF_E_UNSUPPORTED where there is no copy and one is needed (the message names the
// limit, undo_mib), and the device's. [main]
rlhf_status rlhf__boundary_restore(struct rlhf__boundary *b, const struct rlhf__changing *what,
                                   int64_t undo_mib, struct rlhf__error *err);

void rlhf__boundary_finish(struct rlhf__boundary *b); // accepts a zeroed one [main]

#endif
