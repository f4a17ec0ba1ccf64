// moved.h: how far an adapter went in a phase: an adapter that stays where it is makes a run that
// teaches nothing look like one that does.
#ifndef RLHF_HOST_MOVED_H
#define RLHF_HOST_MOVED_H

#include "model/model.h"

// Zero-initialise; release with rlhf__moved_finish.
struct rlhf__moved {
    float *before; // A and B one after the other; NULL: the model has no adapter
};

// Note the adapter of m, if it has one. Errors: RLHF_E_NOMEM, those of the backend. [step]
rlhf_status rlhf__moved_begin(struct rlhf__moved *, const struct rlhf__model *m,
                              struct rlhf__error *err);

// *norm = the L2 norm, over all elements of A and B, of what they are now less what they were. An
// element that is no number counts. Errors: those of the backend. [step]
rlhf_status rlhf__moved_norm(const struct rlhf__moved *, const struct rlhf__model *m, double *norm,
                             struct rlhf__error *err);

void rlhf__moved_finish(struct rlhf__moved *); // accepts a zeroed one [any]

#endif
