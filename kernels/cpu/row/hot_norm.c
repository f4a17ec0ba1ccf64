// hot_norm.c: LayerNorm over rows, and its derivative. Compiled once per instruction-set level
// (vec.h).
//
// Each lane adds up every VF_LANES-th element of the row. Then the lanes are added in halving order
// (vec.h). So the bits of a row depend only on the row.
#include "machine/any.h"
#include "machine/hot.h"

// mean and 1 / sqrt(var + eps) of x[0..d)
INLINE void moments(const float *x, float eps, size_t d, float *mean, float *rstd) {
    size_t full = d - d % VF_LANES, tail = d - full;
    vf s = vf_zero(), q = vf_zero();
    for (size_t i = 0; i < full; i += VF_LANES)
        s = vf_add(s, vf_load(x + i));
    if (tail) s = vf_add(s, vf_load_n(x + full, tail));
    *mean = vf_hsum(s) / (float)d;
    vf mu = vf_set1(*mean);
    for (size_t i = 0; i < full; i += VF_LANES) {
        vf c = vf_sub(vf_load(x + i), mu);
        q = vf_fma(c, c, q);
    }
    if (tail) { // in lanes past the row, x is the mean, so the difference is 0
        float buf[VF_LANES];
        vf_store(buf, mu);
        memcpy(buf, x + full, tail * sizeof *x);
        vf c = vf_sub(vf_load(buf), mu);
        q = vf_fma(c, c, q);
    }
    *rstd = 1.0f / __builtin_sqrtf(vf_hsum(q) / (float)d + eps);
}

INLINE void norm_rows(void *out, int bf16, float *stats, const float *x, const float *gamma,
                      const float *beta, float eps, size_t rows, size_t d) {
    for (size_t r = 0; r < rows; r++) {
        const float *xr = x + r * d;
        char *o = (char *)out + r * d * (bf16 ? 2 : 4);
        float mean, rstd;
        moments(xr, eps, d, &mean, &rstd);
        vf mu = vf_set1(mean), rs = vf_set1(rstd);
        size_t i = 0;
        for (; i + VF_LANES <= d; i += VF_LANES) {
            vf h = vf_mul(vf_sub(vf_load(xr + i), mu), rs);
            store_any(o, bf16, i, vf_fma(h, vf_load(gamma + i), vf_load(beta + i)), VF_LANES);
        }
        if (i < d) {
            size_t m = d - i;
            vf h = vf_mul(vf_sub(vf_load_n(xr + i, m), mu), rs);
            store_any(o, bf16, i, vf_fma(h, vf_load_n(gamma + i, m), vf_load_n(beta + i, m)), m);
        }
        if (stats) stats[2 * r] = mean, stats[2 * r + 1] = rstd;
    }
}

void RLHF__HOT(norm)(void *out, int bf16, float *stats, const float *x, const float *gamma,
                     const float *beta, float eps, size_t rows, size_t d) {
    if (bf16)
        norm_rows(out, 1, stats, x, gamma, beta, eps, rows, d);
    else
        norm_rows(out, 0, stats, x, gamma, beta, eps, rows, d);
}

// The first pass over a row. Computes the sum of g = dy gamma and the sum of g xhat, and adds the
// row to the gradients of gamma and beta in `part`.
INLINE void bwd_sums(float *part, const void *dy, int bf16, const float *x, const float *gamma,
                     vf mu, vf rs, size_t d, float *sum_g, float *sum_gh) {
    vf s = vf_zero(), q = vf_zero();
    for (size_t i = 0; i < d; i += VF_LANES) {
        size_t m = d - i < VF_LANES ? d - i : VF_LANES;
        vf g = load_any(dy, bf16, i, m); // 0 in lanes past the row
        vf h = vf_mul(vf_sub(load_any(x, 0, i, m), mu), rs);
        if (part) {
            vf pg = vf_fma(g, h, load_any(part, 0, i, m));
            store_any(part, 0, i, pg, m);
            store_any(part, 0, d + i, vf_add(g, load_any(part, 0, d + i, m)), m);
        }
        g = vf_mul(g, load_any(gamma, 0, i, m));
        s = vf_add(s, g);
        q = vf_fma(g, h, q);
    }
    *sum_g = vf_hsum(s);
    *sum_gh = vf_hsum(q);
}

// dx = rstd (g - mean(g) - xhat mean(g xhat))
INLINE void bwd_rows(float *dx, int accumulate, float *part, const void *dy, int bf16,
                     const float *x, const float *stats, const float *gamma, size_t rows,
                     size_t d) {
    for (size_t r = 0; r < rows; r++) {
        const float *xr = x + r * d;
        const char *dyr = (const char *)dy + r * d * (bf16 ? 2 : 4);
        float *o = dx + r * d, sg, sgh;
        vf mu = vf_set1(stats[2 * r]), rs = vf_set1(stats[2 * r + 1]);
        bwd_sums(part, dyr, bf16, xr, gamma, mu, rs, d, &sg, &sgh);
        vf c1 = vf_set1(sg / (float)d), c2 = vf_set1(sgh / (float)d);
        for (size_t i = 0; i < d; i += VF_LANES) {
            size_t m = d - i < VF_LANES ? d - i : VF_LANES;
            vf g = vf_mul(load_any(dyr, bf16, i, m), load_any(gamma, 0, i, m));
            vf h = vf_mul(vf_sub(load_any(xr, 0, i, m), mu), rs);
            vf v = vf_fnma(h, c2, vf_sub(g, c1));
            v = accumulate ? vf_fma(rs, v, load_any(o, 0, i, m)) : vf_mul(rs, v);
            store_any(o, 0, i, v, m);
        }
    }
}

void RLHF__HOT(norm_bwd)(float *dx, int accumulate, float *part, const void *dy, int bf16,
                         const float *x, const float *stats, const float *gamma, size_t rows,
                         size_t d) {
    if (bf16)
        bwd_rows(dx, accumulate, part, dy, 1, x, stats, gamma, rows, d);
    else
        bwd_rows(dx, accumulate, part, dy, 0, x, stats, gamma, rows, d);
}

// The width of the strips of columns in sum_parts, in vectors. In a strip, the chains of several
// columns run at once, and consecutive lines are read together.
enum { STRIP = 8 };

void RLHF__HOT(sum_parts)(float *dst, const float *part, size_t stride, size_t count, size_t n) {
    size_t i = 0;
    for (; i + STRIP * VF_LANES <= n; i += STRIP * VF_LANES) {
        vf s[STRIP];
#pragma GCC unroll 8
        for (size_t j = 0; j < STRIP; j++)
            s[j] = vf_load(dst + i + j * VF_LANES);
        for (size_t p = 0; p < count; p++) {
#pragma GCC unroll 8
            for (size_t j = 0; j < STRIP; j++)
                s[j] = vf_add(s[j], vf_load(part + p * stride + i + j * VF_LANES));
        }
#pragma GCC unroll 8
        for (size_t j = 0; j < STRIP; j++)
            vf_store(dst + i + j * VF_LANES, s[j]);
    }
    for (; i < n; i += VF_LANES) {
        size_t m = n - i < VF_LANES ? n - i : VF_LANES;
        vf s = load_any(dst, 0, i, m);
        for (size_t p = 0; p < count; p++)
            s = vf_add(s, load_any(part, 0, p * stride + i, m));
        store_any(dst, 0, i, s, m);
    }
}
