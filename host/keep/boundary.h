// boundary.h: the last phase boundary of a run, to which a failure of the next phase goes back:
// what a checkpoint of it holds beside the weights, and the weights as undo.h has them.
//
// It is noted after every phase and kept in memory; files are checkpoint.h's.
#ifndef RLHF_HOST_BOUNDARY_H
#define RLHF_HOST_BOUNDARY_H

#include "keep/best.h"
#include "keep/plugin_states.h"
#include "keep/undo.h"

#include <jansson.h>

// Counters that grow whenever something that undo.h copies may have changed.
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
    json_t *run; // taken over, also after a failure; NULL = there was no memory for it
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
// Errors: rlhf__undo_back's. [main]
rlhf_status rlhf__boundary_restore(struct rlhf__boundary *b, const struct rlhf__changing *what,
                                   int64_t undo_mib, struct rlhf__error *err);

void rlhf__boundary_finish(struct rlhf__boundary *b); // accepts a zeroed one [main]

#endif
