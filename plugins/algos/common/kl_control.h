// kl_control.h: the coefficient of the KL penalty, fixed or adapted by a controller, and its saved
// state. The KL is measured in metrics.h; the penalty is applied in terms.h.
#ifndef RLHF_ALGOS_COMMON_KL_CONTROL_H
#define RLHF_ALGOS_COMMON_KL_CONTROL_H

#include "common/choices.h"
#include "common/metrics.h"

#include <rlhf/plugin.h>

// The values of placement, estimator, controller and unit are enums of choices.h and kl.h. start,
// target and horizon come from the options; coef is the current coefficient.
struct rlhf__kl_control {
    double coef, start, target, horizon;
    int32_t placement, estimator, controller, unit;
};

// Reject meaningless combinations with a message; set coef. [main]
rlhf_status rlhf__kl_control_init(const rlhf_host *, struct rlhf__kl_control *);

// Reject a horizon that one phase of n sequences could exceed. [main]
rlhf_status rlhf__kl_control_plan(const rlhf_host *, const struct rlhf__kl_control *, uint32_t n);

// Call it after a phase's report. If the controller is adaptive and the KL was measured, updates
// coef by rlhf__kl_adapt. [step]
void rlhf__kl_control_update(struct rlhf__kl_control *, const struct rlhf__pg_rollout_sums *);

// The saved state has 12 bytes: the 4 bytes of magic, then coef as a little-endian double. load
// uses the saved coef only if the controller is adaptive. If the controller is fixed, the
// configuration decides, even if it has changed since. load returns RLHF_E_INVALID for a wrong
// magic and for a coef that is negative or not finite; it also passes on the stream's errors.
// [main]
enum { RLHF__KL_CONTROL_BYTES = 12 };
rlhf_status rlhf__kl_control_save(const struct rlhf__kl_control *, const char magic[4],
                                  const rlhf_ostream *);
rlhf_status rlhf__kl_control_load(const rlhf_host *, struct rlhf__kl_control *, const char magic[4],
                                  const rlhf_istream *);

#endif
