// value.h: the critic's squared error, clipped on request.
#ifndef RLHF_ALGOS_PPO_VALUE_H
#define RLHF_ALGOS_PPO_VALUE_H

#include <math.h>
#include <stdint.h>

// max((v - R)^2, (clip(v, v_old - eps, v_old + eps) - R)^2), or just (v - R)^2 with eps 0. The
// caller multiplies by c1/2 and the weight. *dv = derivative by v; *clipped = 1 when the clipped
// branch was the larger (its derivative is 0: v is outside the window). [any]
static inline double rlhf__value_error(double v, double v_old, double ret, double eps, double *dv,
                                       int *clipped) {
    double e = v - ret, loss = e * e;
    *dv = 2.0 * e;
    *clipped = 0;
    if (eps <= 0) return loss;
    double c = fmin(fmax(v, v_old - eps), v_old + eps) - ret;
    if (!(c * c > loss)) return loss; // also when v is not a number: fmax would hide it
    *dv = 0;
    *clipped = 1;
    return c * c;
}

#endif
