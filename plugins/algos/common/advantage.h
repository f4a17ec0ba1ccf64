// advantage.h: from rewards and values to advantages and returns.
//
// Row functions work on the n response tokens of one sequence; the value after the last token is 0.
// Group functions work on one number per sequence. KL penalties and whitening are elsewhere
// (terms.h, whiten.h).
#ifndef RLHF_ALGOS_COMMON_ADVANTAGE_H
#define RLHF_ALGOS_COMMON_ADVANTAGE_H

#include <stdint.h>

// Generalised advantage estimation (GAE; Schulman et al. 2016, eq. 16):
//   delta_t = r_t + gamma v_{t+1} - v_t;  adv_t = delta_t + gamma lambda adv_{t+1};
//   ret_t = adv_t + v_t.  All [n]. [any]
void rlhf__gae(const double *r, const double *v, int64_t n, double gamma, double lambda,
               double *adv, double *ret);

// One-step differences of the critic: adv_t = r_t + v_{t+1} - v_t, and ret = adv + v. With a single
// reward at the end the last adv is score - v_last, the others are v_{t+1} - v_t. All [n]. [any]
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

// x[n] = (x - mean_g) / (std_g + eps) within each set of rows that share group[i], or x - mean_g
// when scale is 0 (Shao et al. 2024, eq. 3; Liu et al. 2025 omit the std). A group without spread,
// including a single row, gives exactly 0. Rows of a group need not be adjacent. y[n] are the
// values; x may be NULL to compute only the statistics of y. order[n] is scratch. [any]
struct rlhf__group_stats rlhf__group_normalize(const double *y, const int32_t *group, int64_t n,
                                               double eps, int32_t unbiased, int32_t scale,
                                               int64_t *order, double *x);

// x[n] = y - mean of the others that share group[i] (Kool et al. 2019; Ahmadian et al. 2024, eq.
// 8), which is m / (m - 1) (y - mean_g) with m rows in the group. A group without spread, including
// a single row, gives exactly 0. order[n] is scratch. [any]
void rlhf__leave_one_out(const double *y, const int32_t *group, int64_t n, int64_t *order,
                         double *x);

// flat[i] = 1 if all rows that share group[i] have x 0, else 0; order[n] is scratch. [any]
void rlhf__flat_groups(const double *x, const int32_t *group, int64_t n, int64_t *order,
                       uint8_t *flat);

#endif
