// hot_rms_norm.c: RMS norm over rows, and its derivative. Compiled once per instruction-set
// level (vec.h).
//
// A row is summed in four vectors. Their lanes are then added in halving order, so the bits of a
// row depend only on the row.
#include "machine/any.h"
#include "machine/hot.h"

enum { SUMS = 4 };

// 1 / sqrt(mean(x^2) + eps) of x[0..d)
INLINE float inverse_rms(const float *x, float eps, size_t d) {
    vf q[SUMS] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
    size_t i = 0;
    for (; i + SUMS * VF_LANES <= d; i += SUMS * VF_LANES)
        for (int u = 0; u < SUMS; u++) {
            vf v = vf_load(x + i + (size_t)u * VF_LANES);
            q[u] = vf_fma(v, v, q[u]);
        }
    for (; i < d; i += VF_LANES) {
        vf v = load_any(x, 0, i, d - i < VF_LANES ? d - i : VF_LANES);
        q[0] = vf_fma(v, v, q[0]);
    }
    float sum = vf_hsum(vf_add(vf_add(q[0], q[1]), vf_add(q[2], q[3])));
    return 1.0f / __builtin_sqrtf(sum / (float)d + eps);
}

INLINE void norm_rows(void *out, const int bf16, float *stats, const float *x, const float *gamma,
                      float offset, float eps, size_t rows, size_t d) {
    for (size_t r = 0; r < rows; r++, x += d, out = (char *)out + d * (bf16 ? 2 : 4)) {
        float rinv = inverse_rms(x, eps, d);
        vf rs = vf_set1(rinv), o = vf_set1(offset);
        size_t i = 0;
        for (; i + VF_LANES <= d; i += VF_LANES)
            store_any(out, bf16, i,
                      vf_mul(vf_mul(vf_load(x + i), rs), vf_add(o, vf_load(gamma + i))), VF_LANES);
        if (i < d)
            store_any(
                out, bf16, i,
                vf_mul(vf_mul(vf_load_n(x + i, d - i), rs), vf_add(o, vf_load_n(gamma + i, d - i))),
                d - i);
        if (stats) stats[r] = rinv;
    }
}

void RLHF__HOT(rms_norm)(void *out, int bf16, float *stats, const float *x, const float *gamma,
                         float offset, float eps, size_t rows, size_t d) {
    if (bf16)
        norm_rows(out, 1, stats, x, gamma, offset, eps, rows, d);
    else
        norm_rows(out, 0, stats, x, gamma, offset, eps, rows, d);
}

// One vector of the first pass: adds gamma dy xhat to the sum, and dgamma to part.
INLINE vf bwd_sum(vf sum, float *part, const void *dy, const int bf16, const float *x,
                  const float *gamma, vf o, vf rs, size_t i, size_t m) {
    vf gh = vf_mul(load_any(dy, bf16, i, m), vf_mul(load_any(x, 0, i, m), rs)); // 0 past the row
    if (part) store_any(part, 0, i, vf_add(gh, load_any(part, 0, i, m)), m);
    return vf_fma(gh, vf_add(o, load_any(gamma, 0, i, m)), sum);
}

// One vector of the second pass: dx = rinv ((o + gamma) dy - xhat mean)
INLINE void bwd_put(float *dx, const int accumulate, const void *dy, const int bf16, const float *x,
                    const float *gamma, vf o, vf rs, vf mean, size_t i, size_t m) {
    vf g = vf_mul(load_any(dy, bf16, i, m), vf_add(o, load_any(gamma, 0, i, m)));
    vf v = vf_fnma(vf_mul(load_any(x, 0, i, m), rs), mean, g);
    v = accumulate ? vf_fma(rs, v, load_any(dx, 0, i, m)) : vf_mul(rs, v);
    store_any(dx, 0, i, v, m);
}

INLINE void bwd_row(float *dx, const int accumulate, float *part, const void *dy, const int bf16,
                    const float *x, const float *gamma, float offset, float rinv, size_t d) {
    vf rs = vf_set1(rinv), o = vf_set1(offset),
       s[SUMS] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
    size_t i = 0;
    for (; i + SUMS * VF_LANES <= d; i += SUMS * VF_LANES)
        for (int u = 0; u < SUMS; u++)
            s[u] =
                bwd_sum(s[u], part, dy, bf16, x, gamma, o, rs, i + (size_t)u * VF_LANES, VF_LANES);
    for (; i < d; i += VF_LANES)
        s[0] =
            bwd_sum(s[0], part, dy, bf16, x, gamma, o, rs, i, d - i < VF_LANES ? d - i : VF_LANES);
    vf mean = vf_set1(vf_hsum(vf_add(vf_add(s[0], s[1]), vf_add(s[2], s[3]))) / (float)d);
    for (i = 0; i + VF_LANES <= d; i += VF_LANES)
        bwd_put(dx, accumulate, dy, bf16, x, gamma, o, rs, mean, i, VF_LANES);
    if (i < d) bwd_put(dx, accumulate, dy, bf16, x, gamma, o, rs, mean, i, d - i);
}

INLINE void bwd_rows(float *dx, const int accumulate, float *part, const void *dy, const int bf16,
                     const float *x, const float *stats, const float *gamma, float offset,
                     size_t rows, size_t d) {
    for (size_t r = 0; r < rows; r++)
        bwd_row(dx + r * d, accumulate, part, (const char *)dy + r * d * (bf16 ? 2 : 4), bf16,
                x + r * d, gamma, offset, stats[r], d);
}

void RLHF__HOT(rms_norm_bwd)(float *dx, int accumulate, float *part, const void *dy, int bf16,
                             const float *x, const float *stats, const float *gamma, float offset,
                             size_t rows, size_t d) {
    if (bf16 && accumulate)
        bwd_rows(dx, 1, part, dy, 1, x, stats, gamma, offset, rows, d);
    else if (bf16)
        bwd_rows(dx, 0, part, dy, 1, x, stats, gamma, offset, rows, d);
    else if (accumulate)
        bwd_rows(dx, 1, part, dy, 0, x, stats, gamma, offset, rows, d);
    else
        bwd_rows(dx, 0, part, dy, 0, x, stats, gamma, offset, rows, d);
}
