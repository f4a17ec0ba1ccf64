// checkpoints.h: compares the tensors of two checkpoints of the end of a phase, the run's and the
// recomputed one. The tensors are weights, heads and moments.
#ifndef RLHF_TOOLS_VERIFY_CHECKPOINTS_H
#define RLHF_TOOLS_VERIFY_CHECKPOINTS_H

#include "verify/checks.h"

// The directories of three checkpoints.
struct rlhf__checkpoints {
    const char *before;      // where the phase begins
    const char *run, *again; // where the phase ends: the run's, and the recomputed one
};

// Compare all weight files of two checkpoints of the same phase. Weights have two measures
// (docs/verifying.md): the length of the difference, with each element weighted by its second
// moment, and the largest difference of an element. Errors: RLHF_E_INVALID (a file that cannot be
// read), RLHF_E_NOMEM. [main]
rlhf_status rlhf__checkpoints_compare(const struct rlhf__checkpoints *,
                                      const struct rlhf__check_limits *, struct rlhf__checks *,
                                      struct rlhf__error *err);

#endif
