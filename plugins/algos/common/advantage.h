// advantage.h: computes advantages and returns from rewards and values.
//
// Functions on rows work on the n response tokens of one sequence; the value after the last token
// is 0. Functions on groups work on one number per sequence. KL penalties and whitening are
// elsewhere (terms.h, whiten.h).
#ifndef RLHF_ALGOS_COMMON_ADVANTAGE_H
#define RLHF_ALGOS_COMMON_ADVANTAGE_H

#include <stdint.h>

// Generalized advantage estimation (GAE; Schulman et al. 2016, eq. 16):
//   delta_t = r_t + gamma v_{t+1} - v_t;  adv_t = delta_t + gamma lambda adv_{t+1};
//   ret_t = adv_t + v_t.  All [n]. [any]
void rlhf__gae(const double *r, const double *v, int64_t n, double gamma, double lambda,
               double *adv, double *ret);

// One-step differences of the critic: adv_t = r_t + v_{t+1} - v_t, ret_t = adv_t + v_t. If the only
// reward comes at the end, the last adv is score - v_last and the others are v_{t+1} - v_t. All
// arrays are [n]. [any]
void rlhf__one_step(const double *r, const double *v, int64_t n, double *adv, double *ret);

// x[n] = (x - mean) / (std + eps); exactly 0 everywhere if all x are equal. unbiased: divide the
// variance by n - 1 instead of n. [any]
void rlhf__standardize(double *x, int64_t n, double eps, int32_t unbiased);

// Statistics of rlhf__group_normalize: number of groups, number of groups without spread, and the
// sum of their standard deviations.
struct rlhf__group_stats {
    int64_t groups, zero;
    double std_sum;
};

// Normalizes y[n] within each group, that is, the rows that share group[i]: x = (y - mean_g) /
// (std_g + eps), or x = y - mean_g when scale is 0 (Shao et al. 2024, eq. 3; Liu et al. 2025 omit
// the std). If all y of a group are equal, as in a group of one row, x is exactly 0. Rows of a
// group need not be adjacent. With x NULL, only computes the statistics of y. order[n] is scratch.
// [any]
struct rlhf__group_stats rlhf__group_normalize(const double *y, const int32_t *group, int64_t n,
                                               double eps, int32_t unbiased, int32_t scale,
                                               int64_t *order, double *x);

// x[i] = y[i] minus the mean y of the other rows in its group (Kool et al. 2019; Ahmadian et al.
// 2024, eq. 8). In a group of m rows this equals m / (m - 1) (y - mean_g). If all y of a group are
// equal, as in a group of one row, x is exactly 0. order[n] is scratch. [any]
void rlhf__leave_one_out(const double *y, const int32_t *group, int64_t n, int64_t *order,
                         double *x);

// flat[i] = 1 if x is 0 in all rows that share group[i], else 0. order[n] is scratch. [any]
void rlhf__flat_groups(const double *x, const int32_t *group, int64_t n, int64_t *order,
                       uint8_t *flat);

#endif
