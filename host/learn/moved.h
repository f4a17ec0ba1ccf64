// moved.h: how far an adapter moved in a phase. A run whose adapter does not move trains nothing,
// but would otherwise look like any other run.
#ifndef RLHF_HOST_MOVED_H
#define RLHF_HOST_MOVED_H

#include "model/model.h"

// Zero-initialise; release with rlhf__moved_finish.
struct rlhf__moved {
    float *before; // A and B concatenated; NULL: the model has no adapter
};

// Copy the adapter of m, if it has one. Errors: RLHF_E_NOMEM, those of the backend. [step]
rlhf_status rlhf__moved_begin(struct rlhf__moved *, const struct rlhf__model *m,
                              struct rlhf__error *err);

// *norm = the L2 norm of the change since then, over all elements of A and B. A NaN element counts
// as a change. Errors: those of the backend. [step]
rlhf_status rlhf__moved_norm(const struct rlhf__moved *, const struct rlhf__model *m, double *norm,
                             struct rlhf__error *err);

void rlhf__moved_finish(struct rlhf__moved *); // accepts a zeroed one [any]

#endif
