// kl_control.h: the coefficient of the KL penalty and its saved state. The coefficient is fixed, or
// a controller adapts it. metrics.h measures the KL; terms.h applies the penalty.
#ifndef RLHF_ALGOS_COMMON_KL_CONTROL_H
#define RLHF_ALGOS_COMMON_KL_CONTROL_H

#include "common/choices.h"
#include "common/metrics.h"

#include <rlhf/plugin.h>

// `placement`, `estimator`, `controller` and `unit` have values of the enums in choices.h and kl.h.
// `start`, `target` and `horizon` are options. `coef` is the current coefficient.
struct rlhf__kl_control {
    double coef, start, target, horizon;
    int32_t placement, estimator, controller, unit;
};

// Refuses meaningless combinations with a message, and sets `coef`. [main]
rlhf_status rlhf__kl_control_init(const rlhf_host *, struct rlhf__kl_control *);

// Returns RLHF_E_INVALID, with a message, if the horizon is so short that a phase of n sequences
// could make the KL coefficient 0 or negative. [main]
rlhf_status rlhf__kl_control_plan(const rlhf_host *, const struct rlhf__kl_control *, uint32_t n);

// Call this function after the report of a phase. If the controller is adaptive and the KL was
// measured, sets coef to the result of rlhf__kl_adapt. [step]
void rlhf__kl_control_update(struct rlhf__kl_control *, const struct rlhf__pg_rollout_sums *);

// The saved state has 12 bytes: the 4 bytes of `magic`, then coef as a little-endian double. If the
// controller is adaptive, `load` uses the saved coef. If it is fixed, `load` uses the coef of the
// configuration, even if the saved coef differs. `load` returns RLHF_E_INVALID for a wrong magic
// and for a coef that is negative or not finite. It also returns the stream's errors. [main]
enum { RLHF__KL_CONTROL_BYTES = 12 };
rlhf_status rlhf__kl_control_save(const struct rlhf__kl_control *, const char magic[4],
                                  const rlhf_ostream *);
rlhf_status rlhf__kl_control_load(const rlhf_host *, struct rlhf__kl_control *, const char magic[4],
                                  const rlhf_istream *);

#endif
