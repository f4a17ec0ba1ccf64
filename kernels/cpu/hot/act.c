// hot/act.c: GELU (tanh and erf forms) and ReLU with their derivatives. Level source, see vec.h.
//
// GELU tanh: f = x s, s = 1 / (1 + e^-2u), u = sqrt(2/pi) (x + 0.044715 x^3), because
// (1 + tanh u) / 2 = s; f' = s + x s (1 - s) 2u'. One exp and one division, and no cancellation.
// GELU erf: f = x Phi(x), Phi(x) = erfc(-x / sqrt 2) / 2; f' = Phi + x e^(-x^2 / 2) / sqrt(2 pi).
#include "hot.h"
#include "vec.h"

#include <rlhf/compute.h>

#define TWO_SQRT_2_OVER_PI 1.5957691216f // 2 sqrt(2/pi), the factor of 2u
#define GELU_CUBIC         0.044715f

static inline vf relu(vf x) { return vf_gt(vf_zero(), x, vf_zero(), x); }
static inline vf relu_d(vf x, vf dy) { return vf_gt(x, vf_zero(), dy, vf_zero()); }

// s(2u) = 1 / (1 + e^-2u)
static inline vf gelu_gate(vf x, vf xx) {
    vf w = vf_fma(xx, vf_set1(-TWO_SQRT_2_OVER_PI * GELU_CUBIC), vf_set1(-TWO_SQRT_2_OVER_PI));
    vf e = vf_exp(vf_mul(w, x));
    return vf_div(vf_set1(1.0f), vf_add(e, vf_set1(1.0f)));
}
static inline vf gelu_tanh(vf x) { return vf_mul(x, gelu_gate(x, vf_mul(x, x))); }
static inline vf gelu_tanh_d(vf x, vf dy) {
    vf xx = vf_mul(x, x), s = gelu_gate(x, xx);
    vf du =
        vf_fma(xx, vf_set1(3.0f * TWO_SQRT_2_OVER_PI * GELU_CUBIC), vf_set1(TWO_SQRT_2_OVER_PI));
    vf t = vf_mul(vf_mul(x, s), vf_sub(vf_set1(1.0f), s)); // 0 for |x| large
    return vf_mul(dy, vf_fma(t, du, s));
}

// Phi(x) and, through *e, e^(-x^2 / 2)
static inline vf normal_cdf(vf x, vf *e) {
    vf z = vf_mul(vf_abs(x), vf_set1(0.70710678f));
    *e = vf_exp(vf_mul(vf_mul(x, x), vf_set1(-0.5f)));
    vf half = vf_mul(vf_erfc_pos(z, *e), vf_set1(0.5f));
    return vf_gt(vf_zero(), x, half, vf_sub(vf_set1(1.0f), half));
}
static inline vf gelu_erf(vf x) {
    vf e;
    return vf_mul(x, normal_cdf(x, &e));
}
static inline vf gelu_erf_d(vf x, vf dy) {
    vf e, p = normal_cdf(x, &e);
    return vf_mul(dy, vf_fma(vf_mul(x, e), vf_set1(0.39894228f), p));
}

// The loops of one kind: bf16 and f32, full vectors and the tail.
#define FORWARD(f)                                                                                 \
    static void f##_bf16(uint16_t *out, const uint16_t *x, size_t n) {                             \
        size_t i = 0;                                                                              \
        for (; i + VF_LANES <= n; i += VF_LANES)                                                   \
            vf_store_bf16(out + i, f(vf_load_bf16(x + i)));                                        \
        if (i < n) vf_store_bf16_n(out + i, f(vf_load_bf16_n(x + i, n - i)), n - i);               \
    }                                                                                              \
    static void f##_f32(float *out, const float *x, size_t n) {                                    \
        size_t i = 0;                                                                              \
        for (; i + VF_LANES <= n; i += VF_LANES)                                                   \
            vf_store(out + i, f(vf_load(x + i)));                                                  \
        if (i < n) vf_store_n(out + i, f(vf_load_n(x + i, n - i)), n - i);                         \
    }
#define BACKWARD(f)                                                                                \
    static void f##_bf16(uint16_t *dx, const uint16_t *dy, const uint16_t *x, size_t n) {          \
        size_t i = 0;                                                                              \
        for (; i + VF_LANES <= n; i += VF_LANES)                                                   \
            vf_store_bf16(dx + i, f(vf_load_bf16(x + i), vf_load_bf16(dy + i)));                   \
        size_t m = n - i;                                                                          \
        if (m) vf_store_bf16_n(dx + i, f(vf_load_bf16_n(x + i, m), vf_load_bf16_n(dy + i, m)), m); \
    }                                                                                              \
    static void f##_f32(float *dx, const float *dy, const float *x, size_t n) {                    \
        size_t i = 0;                                                                              \
        for (; i + VF_LANES <= n; i += VF_LANES)                                                   \
            vf_store(dx + i, f(vf_load(x + i), vf_load(dy + i)));                                  \
        size_t m = n - i;                                                                          \
        if (m) vf_store_n(dx + i, f(vf_load_n(x + i, m), vf_load_n(dy + i, m)), m);                \
    }

FORWARD(relu)
FORWARD(gelu_tanh)
FORWARD(gelu_erf)
BACKWARD(relu_d)
BACKWARD(gelu_tanh_d)
BACKWARD(gelu_erf_d)

void RLHF__HOT(act)(void *out, const void *x, int kind, int bf16, size_t n) {
    switch (kind) {
    case RLHF_ACT_GELU_TANH:
        bf16 ? gelu_tanh_bf16(out, x, n) : gelu_tanh_f32(out, x, n);
        break;
    case RLHF_ACT_GELU_ERF:
        bf16 ? gelu_erf_bf16(out, x, n) : gelu_erf_f32(out, x, n);
        break;
    default:
        bf16 ? relu_bf16(out, x, n) : relu_f32(out, x, n);
        break;
    }
}

void RLHF__HOT(act_bwd)(void *dx, const void *dy, const void *x, int kind, int bf16, size_t n) {
    switch (kind) {
    case RLHF_ACT_GELU_TANH:
        bf16 ? gelu_tanh_d_bf16(dx, dy, x, n) : gelu_tanh_d_f32(dx, dy, x, n);
        break;
    case RLHF_ACT_GELU_ERF:
        bf16 ? gelu_erf_d_bf16(dx, dy, x, n) : gelu_erf_d_f32(dx, dy, x, n);
        break;
    default:
        bf16 ? relu_d_bf16(dx, dy, x, n) : relu_d_f32(dx, dy, x, n);
        break;
    }
}
