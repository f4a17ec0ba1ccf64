// whiten.c: see whiten.h.
#include "common/whiten.h"

#include <math.h>

struct rlhf__moments rlhf__moments(const double *x, int64_t n) {
    struct rlhf__moments m = {n, 0, 0};
    if (n <= 0) return m;
    for (int64_t i = 0; i < n; i++)
        m.mean += x[i];
    m.mean /= (double)n;
    for (int64_t i = 0; i < n; i++)
        m.m2 += (x[i] - m.mean) * (x[i] - m.mean);
    return m;
}

struct rlhf__moments rlhf__moments_merge(struct rlhf__moments a, struct rlhf__moments b) {
    if (a.n == 0) return b;
    if (b.n == 0) return a;
    double n = (double)a.n + (double)b.n, d = b.mean - a.mean;
    struct rlhf__moments m = {a.n + b.n, a.mean + d * (double)b.n / n,
                              a.m2 + b.m2 + d * d * (double)a.n * (double)b.n / n};
    return m;
}

double rlhf__var_biased(struct rlhf__moments m) { return m.n > 0 ? m.m2 / (double)m.n : 0; }

double rlhf__var_unbiased(struct rlhf__moments m) { return m.n > 1 ? m.m2 / (double)(m.n - 1) : 0; }

void rlhf__whiten(double *x, int64_t n, int32_t form, double eps, int32_t shift_mean) {
    struct rlhf__moments m = rlhf__moments(x, n);
    double scale = form == RLHF__WHITEN_RSQRT ? 1.0 / sqrt(rlhf__var_biased(m) + eps)
                                              : 1.0 / (sqrt(rlhf__var_unbiased(m)) + eps);
    double back = shift_mean ? 0 : m.mean;
    for (int64_t i = 0; i < n; i++)
        x[i] = (x[i] - m.mean) * scale + back;
}
