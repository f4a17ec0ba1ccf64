// advantage.h: computes advantages and returns from rewards and values.
//
// Some functions take one row, so their arrays have a number for each of the row's n response
// tokens. The critic's value after the last token counts as 0. Other functions take the rows of all
// groups, so their arrays have a number for each row. terms.h has the KL penalty, and whiten.h the
// whitening.
//
// Values count as equal if they differ by at most a few roundings of f32, because rewards are sums
// of f32 numbers.
#ifndef RLHF_ALGOS_COMMON_ADVANTAGE_H
#define RLHF_ALGOS_COMMON_ADVANTAGE_H

#include <stdint.h>

// Computes the generalized advantage estimates (GAE; Schulman et al. 2016, eq. 16):
//   delta_t = r_t + gamma v_{t+1} - v_t;  adv_t = delta_t + gamma lambda adv_{t+1};
//   ret_t = adv_t + v_t
// All arrays are [n]. [any]
void rlhf__gae(const double *r, const double *v, int64_t n, double gamma, double lambda,
               double *adv, double *ret);

// Computes the advantages as one-step differences of the critic: adv_t = r_t + v_{t+1} - v_t, ret_t
// = adv_t + v_t. So if the only reward is a score at the end, the last advantage is score - v_last,
// and the others are v_{t+1} - v_t. All arrays are [n]. [any]
void rlhf__one_step(const double *r, const double *v, int64_t n, double *adv, double *ret);

// Set x[n] to (x - mean) / (std + eps), or to exactly 0 if all x are equal. If unbiased is 1, the
// variance is divided by n - 1 instead of n. [any]
void rlhf__standardize(double *x, int64_t n, double eps, int32_t unbiased);

// Statistics of rlhf__group_normalize: the number of groups, the number of groups whose values are
// all equal, and the sum of the groups' standard deviations.
struct rlhf__group_stats {
    int64_t groups, zero;
    double std_sum;
};

// Normalizes y[n] within each group. Rows with the same group[i] are a group; they need not be
// adjacent. x = (y - mean_g) / (std_g + eps), or x = y - mean_g if scale is 0 (Shao et al. 2024,
// eq. 3; Liu et al. 2025 omit the std). If all y of a group are equal, as in a group of one row, x
// is exactly 0. If x is NULL, only computes the statistics of y. `order` [n] is scratch memory.
// [any]
struct rlhf__group_stats rlhf__group_normalize(const double *y, const int32_t *group, int64_t n,
                                               double eps, int32_t unbiased, int32_t scale,
                                               int64_t *order, double *x);

// Set x[i] to y[i] minus the mean y of the other rows in its group (Kool et al. 2019; Ahmadian et
// al. 2024, eq. 8). In a group of m rows this equals m / (m - 1) (y - mean_g). If all y of a group
// are equal, as in a group of one row, x is exactly 0. `order` [n] is scratch memory. [any]
void rlhf__leave_one_out(const double *y, const int32_t *group, int64_t n, int64_t *order,
                         double *x);

// Set flat[i] to 1 if x is 0 in all rows of row i's group, otherwise to 0. `order` [n] is scratch
// memory. [any]
void rlhf__flat_groups(const double *x, const int32_t *group, int64_t n, int64_t *order,
                       uint8_t *flat);

#endif
