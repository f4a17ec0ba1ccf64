// advantage.c: see advantage.h.
#include "common/advantage.h"

#include "common/whiten.h"

#include <math.h>

void rlhf__gae(const double *r, const double *v, int64_t n, double gamma, double lambda,
               double *adv, double *ret) {
    double next_adv = 0, next_v = 0;
    for (int64_t t = n - 1; t >= 0; t--) {
        double delta = r[t] + gamma * next_v - v[t];
        next_adv = delta + gamma * lambda * next_adv;
        next_v = v[t];
        adv[t] = next_adv;
        ret[t] = next_adv + v[t];
    }
}

void rlhf__one_step(const double *r, const double *v, int64_t n, double *adv, double *ret) {
    for (int64_t t = 0; t < n; t++) {
        adv[t] = r[t] + (t + 1 < n ? v[t + 1] : 0.0) - v[t];
        ret[t] = adv[t] + v[t];
    }
}

static double deviation(struct rlhf__moments m, int32_t unbiased) {
    return sqrt(unbiased ? rlhf__var_unbiased(m) : rlhf__var_biased(m));
}

// Rewards are sums of f32 numbers. Sums that differ by at most this part of their size may be the
// same sum of other terms (0.6 + 0.1 and 0.7 + 0), so the difference is no spread. rlhf__rows_flat
// of the host judges alike.
#define FLOAT_NOISE 0x1p-21

static int has_spread(double low, double high) {
    return !(high - low <= FLOAT_NOISE * fmax(fabs(low), fabs(high)));
}

void rlhf__standardize(double *x, int64_t n, double eps, int32_t unbiased) {
    struct rlhf__moments m = rlhf__moments(x, n);
    double low = n ? x[0] : 0, high = low;
    for (int64_t i = 1; i < n; i++) {
        low = fmin(low, x[i]);
        high = fmax(high, x[i]);
    }
    const int spread = has_spread(low, high);
    double scale = spread ? 1.0 / (deviation(m, unbiased) + eps) : 0.0;
    for (int64_t i = 0; i < n; i++)
        x[i] = spread ? (x[i] - m.mean) * scale : 0.0;
}

// Restore the heap property of order[0..n) below node i. The root of the heap has the largest
// (group, row).
static void sift(int64_t *order, const int32_t *group, int64_t i, int64_t n) {
    for (;;) {
        int64_t top = i;
        for (int64_t c = 2 * i + 1; c < n && c <= 2 * i + 2; c++) {
            int32_t a = group[order[c]], b = group[order[top]];
            if (a > b || (a == b && order[c] > order[top])) top = c;
        }
        if (top == i) return;
        int64_t swap = order[i];
        order[i] = order[top];
        order[top] = swap;
        i = top;
    }
}

// Set order[n] to the rows, sorted by (group, row). Uses a heap sort, because that allocates
// nothing. Rows of a group keep their order.
static void sort_rows(int64_t *order, const int32_t *group, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    for (int64_t i = n / 2 - 1; i >= 0; i--)
        sift(order, group, i, n);
    for (int64_t end = n - 1; end > 0; end--) {
        int64_t swap = order[0];
        order[0] = order[end];
        order[end] = swap;
        sift(order, group, 0, end);
    }
}

// The moments of y over the rows of one group. Sets *spread to 0 if these values are all equal but
// for rounding, otherwise to 1.
static struct rlhf__moments group_moments(const double *y, const int64_t *rows, int64_t n,
                                          int *spread) {
    struct rlhf__moments m = {n, 0, 0};
    for (int64_t i = 0; i < n; i++)
        m.mean += y[rows[i]];
    m.mean /= (double)n;
    double low = y[rows[0]], high = low;
    for (int64_t i = 0; i < n; i++) {
        double d = y[rows[i]] - m.mean;
        m.m2 += d * d;
        low = fmin(low, y[rows[i]]);
        high = fmax(high, y[rows[i]]);
    }
    *spread = has_spread(low, high);
    return m;
}

struct rlhf__group_stats rlhf__group_normalize(const double *y, const int32_t *group, int64_t n,
                                               double eps, int32_t unbiased, int32_t scale,
                                               int64_t *order, double *x) {
    struct rlhf__group_stats stats = {0, 0, 0};
    sort_rows(order, group, n);
    for (int64_t begin = 0, end; begin < n; begin = end) {
        for (end = begin + 1; end < n && group[order[end]] == group[order[begin]];)
            end++;
        int spread;
        struct rlhf__moments m = group_moments(y, order + begin, end - begin, &spread);
        double std = spread ? deviation(m, unbiased) : 0.0;
        stats.groups++;
        stats.zero += !spread;
        stats.std_sum += std;
        for (int64_t i = begin; x && i < end; i++)
            x[order[i]] = spread ? (y[order[i]] - m.mean) / (scale ? std + eps : 1.0) : 0.0;
    }
    return stats;
}

void rlhf__leave_one_out(const double *y, const int32_t *group, int64_t n, int64_t *order,
                         double *x) {
    sort_rows(order, group, n);
    for (int64_t begin = 0, end; begin < n; begin = end) {
        for (end = begin + 1; end < n && group[order[end]] == group[order[begin]];)
            end++;
        int spread;
        struct rlhf__moments m = group_moments(y, order + begin, end - begin, &spread);
        for (int64_t i = begin; i < end; i++)
            x[order[i]] = spread ? (y[order[i]] - m.mean) * (double)m.n / (double)(m.n - 1) : 0.0;
    }
}

void rlhf__flat_groups(const double *x, const int32_t *group, int64_t n, int64_t *order,
                       uint8_t *flat) {
    sort_rows(order, group, n);
    for (int64_t begin = 0, end; begin < n; begin = end) {
        uint8_t all = 1;
        for (end = begin; end < n && group[order[end]] == group[order[begin]]; end++)
            all &= x[order[end]] == 0;
        for (int64_t i = begin; i < end; i++)
            flat[order[i]] = all;
    }
}
