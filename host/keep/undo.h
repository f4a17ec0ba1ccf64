// undo.h: a copy in memory of everything that an update changes: weights, moments, the reference
// where it moves, and the reward model, its optimiser and its pairs where it is trained. It lets a
// run go back to the phase boundary at which it was taken.
//
// It costs as much memory as those tensors have (AdamW: 12 bytes a trained parameter), so there is
// a limit beyond which there is no copy (checkpoint.undo_mib). Counters and cursors of the run are
// boundary.h's.
#ifndef RLHF_HOST_UNDO_H
#define RLHF_HOST_UNDO_H

#include "learn/optim.h"
#include "model/model.h"
#include "model/reward_head.h"
#include "outer/iteration.h"

#define RLHF__UNDO_MODELS 4
#define RLHF__UNDO_OPTIMS 3

// What an update changes; NULL where there is none.
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
    int32_t taken; // 1: there is a copy
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

// Copy what is there now if it takes less than max_mib; u->taken says whether there was room.
// Errors: RLHF_E_NOMEM (of small things; a copy that does not fit into memory is one beyond the
// limit), RLHF_E_DEVICE. [main]
rlhf_status rlhf__undo_take(struct rlhf__undo *u, const struct rlhf__changing *what,
                            int64_t max_mib, struct rlhf__error *err);

// Put the copy back and refresh the models. Errors: RLHF_E_UNSUPPORTED (there is none; the message
// names the limit, max_mib), and the device's. [main]
rlhf_status rlhf__undo_back(struct rlhf__undo *u, const struct rlhf__changing *what,
                            int64_t max_mib, struct rlhf__error *err);

void rlhf__undo_finish(struct rlhf__undo *u); // accepts a zeroed one [any]

#endif
