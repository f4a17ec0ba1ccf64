// kl.h: per-token estimators of KL(policy || reference). They use two log-probs of the sampled
// token: x under the policy, f under the reference. k1, k2 and k3 follow J. Schulman,
// "Approximating KL divergence" (2020).
//
// FULL is not an estimate: the model's kl head computes the exact KL. FULL is in this enum so that
// one option covers all four kinds.
#ifndef RLHF_ALGOS_COMMON_KL_H
#define RLHF_ALGOS_COMMON_KL_H

#include <math.h>
#include <rlhf/exact.h>
#include <stdint.h>

enum rlhf__kl_kind {
    RLHF__KL_K1 = 0, // x - f: unbiased, may be negative
    RLHF__KL_K2 = 1, // (x - f)^2 / 2
    RLHF__KL_K3 = 2, // exp(f - x) - (f - x) - 1: unbiased, never negative
    RLHF__KL_FULL = 3
};

// The estimate in nats. `kind` must be K1, K2 or K3. [any]
static inline double rlhf__kl(int32_t kind, double x, double f) {
    double d = f - x;
    if (kind == RLHF__KL_K1) return -d;
    return kind == RLHF__KL_K2 ? 0.5 * d * d : rlhf_expm1(d) - d;
}

// The derivative of rlhf__kl by x. [any]
static inline double rlhf__kl_dx(int32_t kind, double x, double f) {
    double d = f - x;
    if (kind == RLHF__KL_K1) return 1.0;
    return kind == RLHF__KL_K2 ? -d : -rlhf_expm1(d);
}

// Returns the new KL coefficient after a phase of n samples with the measured KL `kl` (Ziegler et
// al. 2019, section 2.2): coef * (1 + clip(kl / target - 1, -0.2, 0.2) * n / horizon). [any]
static inline double rlhf__kl_adapt(double coef, double kl, double target, double n,
                                    double horizon) {
    double error = fmin(fmax(kl / target - 1.0, -0.2), 0.2);
    return coef * (1.0 + error * n / horizon);
}

#endif
