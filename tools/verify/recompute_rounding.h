// recompute_rounding.h: raises the limits of a phase to what rounding does to it.
//
// Some phases magnify rounding errors: a value stands on the kink of a ReLU or on a bound of a
// clip, or a gradient consists of rounding errors. To learn how far rounding moves the numbers of
// such a phase, the phase is computed again with rounding errors in norms and log-probs (the
// options `rounding` and `rounding_scale` of the backend reference). A trial is one such
// computation. Every second trial also uses its own log-probs of sampling: the recorded ones have
// the rounding errors of another backend, so a KL that is 0 in the run is not 0 when recomputed.
#ifndef RLHF_TOOLS_VERIFY_RECOMPUTE_ROUNDING_H
#define RLHF_TOOLS_VERIFY_RECOMPUTE_ROUNDING_H

#include "verify/checks.h"

// Most trials of a phase. If one value stands on a kink, each trial decides it either way, so that
// all trials agree by chance in one of 2^8 phases. A value near a kink may cross it in one
// computation of many, so the errors grow from trial to trial.
enum { RLHF__ROUNDING_TRIALS = 8 };

// `trial` compares a trial with the recomputed phase, with all limits 0. A failed check of `checks`
// passes if a trial so far moved the same number at least a quarter as far. [any]
void rlhf__rounding_allow(struct rlhf__checks *checks, const struct rlhf__checks *trial);

#endif
