// delta_vec.h: what the forward and the backward loops of the gated delta rule have in common:
// the gates of 16 tokens, and normalized queries and keys. For hot sources.
#ifndef RLHF_KERNELS_CPU_STATE_DELTA_VEC_H
#define RLHF_KERNELS_CPU_STATE_DELTA_VEC_H

#include "machine/hot.h"
#include "row/act_vec.h"

INLINE size_t lanes(size_t i, size_t n) { return n <= i ? 0 : n - i < VF_LANES ? n - i : VF_LANES; }
INLINE size_t up(size_t n, size_t to) { return (n + to - 1) / to * to; }

// log(1 + e^x) = max(x, 0) + log(1 + y), y = e^-|x|. With s = y / (2 + y), s <= 1/3, log(1 + y) is
// 2 (s + s^3/3 + s^5/5 + ...). The first term left out is below 2e-9 of the sum.
static inline vf softplus(vf x) {
    const vf y = vf_exp(vf_sub(vf_zero(), vf_abs(x)));
    const vf s = vf_div(y, vf_add(y, vf_set1(2.0f))), q = vf_mul(s, s);
    vf p = vf_set1(1.0f / 15);
    p = vf_fma(p, q, vf_set1(1.0f / 13));
    p = vf_fma(p, q, vf_set1(1.0f / 11));
    p = vf_fma(p, q, vf_set1(1.0f / 9));
    p = vf_fma(p, q, vf_set1(1.0f / 7));
    p = vf_fma(p, q, vf_set1(1.0f / 5));
    p = vf_fma(p, q, vf_set1(1.0f / 3));
    const vf half = vf_fma(vf_mul(p, q), s, s);
    return vf_add(vf_max(x, vf_zero()), vf_add(half, half));
}

// The gates of 16 tokens: log g, b, and the argument of softplus.
struct gates {
    vf log_g, b, z;
};

// Reads m gates, `stride` elements apart. Those of missing tokens are 0.
INLINE vf load_gates(const void *p, const int bf16, int64_t stride, size_t m) {
    float f[VF_LANES] = {0};
    for (size_t i = 0; i < m; i++) {
        const size_t at = i * (size_t)stride;
        if (bf16) {
            const uint32_t bits = (uint32_t)((const uint16_t *)p)[at] << 16;
            memcpy(f + i, &bits, sizeof bits);
        } else {
            f[i] = ((const float *)p)[at];
        }
    }
    return vf_load(f);
}

// The gates of the tokens t .. t+m-1. For missing tokens, log g and b are 0.
INLINE struct gates read_gates(const struct rlhf__delta_item *it, const int bf16, size_t t,
                               size_t m) {
    const size_t at = t * (size_t)it->gate_stride * (bf16 ? 2 : 4);
    struct gates g;
    g.z = vf_add(load_gates((const char *)it->alpha + at, bf16, it->gate_stride, m),
                 vf_set1(it->dt_bias));
    g.log_g = vf_mul(softplus(g.z), vf_sub(vf_zero(), vf_exp(vf_set1(it->a_log))));
    g.log_g = vf_keep_n(g.log_g, m, vf_zero());
    g.b = sigmoid(load_gates((const char *)it->beta + at, bf16, it->gate_stride, m));
    g.b = vf_keep_n(g.b, m, vf_zero());
    return g;
}

// 1 / sqrt(sum of squares + eps) of x[0..d), summed as in hot_rms_norm.c.
INLINE float inverse_length(const void *x, const int bf16, float eps, size_t d) {
    vf s[4] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
    for (size_t i = 0; i < d; i += VF_LANES) {
        const vf v = load_any(x, bf16, i, lanes(i, d));
        s[i / VF_LANES % 4] = vf_fma(v, v, s[i / VF_LANES % 4]);
    }
    return 1.0f / __builtin_sqrtf(vf_hsum(vf_add(vf_add(s[0], s[1]), vf_add(s[2], s[3]))) + eps);
}

// to[0..d) = scale * x / its length, and zeros up to a multiple of 16.
INLINE void read_unit(float *to, const void *x, const int bf16, float scale, float eps, size_t d) {
    const vf f = vf_set1(inverse_length(x, bf16, eps, d) * scale);
    for (size_t i = 0; i < d; i += VF_LANES)
        vf_store(to + i, vf_mul(load_any(x, bf16, i, lanes(i, d)), f));
}

#endif
