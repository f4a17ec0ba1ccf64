// hot_act.c: GELU (tanh and erf forms), ReLU, squared ReLU and SiLU with their derivatives, and
// gated units. Compiled once per instruction-set level (vec.h).
//
// SiLU: f = x s, s = 1 / (1 + e^-x); f' = s (1 + x (1 - s)).
// GELU tanh: f = x s, s = 1 / (1 + e^-2u), u = sqrt(2/pi) (x + 0.044715 x^3), because
// (1 + tanh u) / 2 = s; f' = s + x s (1 - s) 2u'. One exp and one division, no cancellation.
// GELU erf: f = x Phi(x), Phi(x) = erfc(-x / sqrt 2) / 2; f' = Phi + x e^(-x^2 / 2) / sqrt(2 pi).
#include "machine/any.h"
#include "machine/hot.h"

#include <rlhf/compute.h>

#define TWO_SQRT_2_OVER_PI 1.5957691216f // the factor in 2u
#define GELU_CUBIC         0.044715f

static inline vf relu(vf x) { return vf_gt(vf_zero(), x, vf_zero(), x); }
static inline vf relu_d(vf x, vf dy) { return vf_gt(x, vf_zero(), dy, vf_zero()); }

static inline vf relu2(vf x) {
    const vf r = relu(x);
    return vf_mul(r, r);
}
static inline vf relu2_d(vf x, vf dy) {
    return vf_gt(x, vf_zero(), vf_mul(dy, vf_add(x, x)), vf_zero());
}

static inline vf sigmoid(vf x) {
    vf e = vf_exp(vf_sub(vf_zero(), x));
    return vf_div(vf_set1(1.0f), vf_add(e, vf_set1(1.0f)));
}
static inline vf silu(vf x) { return vf_mul(x, sigmoid(x)); }
static inline vf silu_d(vf x, vf dy) {
    vf s = sigmoid(x), t = vf_mul(vf_mul(x, s), vf_sub(vf_set1(1.0f), s));
    return vf_mul(dy, vf_add(t, s));
}

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
    vf t = vf_mul(vf_mul(x, s), vf_sub(vf_set1(1.0f), s)); // 0 for large |x|
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

// The loops of one activation f in bf16 and in f32, for full vectors and the tail.
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

// Gated units: out = f(a) b; da = dy b f'(a), db = dy f(a). da may be the same array as a, and db
// the same as b.
#define GATED(f)                                                                                   \
    INLINE void f##_gate_vec(void *out, const void *a, const void *b, const int bf16, size_t i,    \
                             size_t m) {                                                           \
        store_any(out, bf16, i, vf_mul(f(load_any(a, bf16, i, m)), load_any(b, bf16, i, m)), m);   \
    }                                                                                              \
    INLINE void f##_gate_loop(void *out, const void *a, const void *b, const int bf16, size_t n) { \
        size_t i = 0;                                                                              \
        for (; i + VF_LANES <= n; i += VF_LANES)                                                   \
            f##_gate_vec(out, a, b, bf16, i, VF_LANES);                                            \
        if (i < n) f##_gate_vec(out, a, b, bf16, i, n - i);                                        \
    }                                                                                              \
    INLINE void f##_gate_vec_bwd(void *da, void *db, const void *dy, const void *a, const void *b, \
                                 const int bf16, size_t i, size_t m) {                             \
        vf x = load_any(a, bf16, i, m), d = load_any(dy, bf16, i, m);                              \
        vf dx = f##_d(x, vf_mul(d, load_any(b, bf16, i, m)));                                      \
        store_any(da, bf16, i, dx, m);                                                             \
        store_any(db, bf16, i, vf_mul(d, f(x)), m);                                                \
    }                                                                                              \
    INLINE void f##_gate_loop_bwd(void *da, void *db, const void *dy, const void *a,               \
                                  const void *b, const int bf16, size_t n) {                       \
        size_t i = 0;                                                                              \
        for (; i + VF_LANES <= n; i += VF_LANES)                                                   \
            f##_gate_vec_bwd(da, db, dy, a, b, bf16, i, VF_LANES);                                 \
        if (i < n) f##_gate_vec_bwd(da, db, dy, a, b, bf16, i, n - i);                             \
    }                                                                                              \
    static void f##_gate(void *out, const void *a, const void *b, int bf16, size_t n) {            \
        bf16 ? f##_gate_loop(out, a, b, 1, n) : f##_gate_loop(out, a, b, 0, n);                    \
    }                                                                                              \
    static void f##_gate_bwd(void *da, void *db, const void *dy, const void *a, const void *b,     \
                             int bf16, size_t n) {                                                 \
        bf16 ? f##_gate_loop_bwd(da, db, dy, a, b, 1, n)                                           \
             : f##_gate_loop_bwd(da, db, dy, a, b, 0, n);                                          \
    }

#define KIND(f) FORWARD(f) BACKWARD(f##_d) GATED(f)
KIND(relu)
KIND(relu2)
KIND(gelu_tanh)
KIND(gelu_erf)
KIND(silu)

void RLHF__HOT(act)(void *out, const void *x, int kind, int bf16, size_t n) {
    switch (kind) {
    case RLHF_ACT_GELU_TANH:
        bf16 ? gelu_tanh_bf16(out, x, n) : gelu_tanh_f32(out, x, n);
        break;
    case RLHF_ACT_GELU_ERF:
        bf16 ? gelu_erf_bf16(out, x, n) : gelu_erf_f32(out, x, n);
        break;
    case RLHF_ACT_SILU:
        bf16 ? silu_bf16(out, x, n) : silu_f32(out, x, n);
        break;
    case RLHF_ACT_RELU2:
        bf16 ? relu2_bf16(out, x, n) : relu2_f32(out, x, n);
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
    case RLHF_ACT_SILU:
        bf16 ? silu_d_bf16(dx, dy, x, n) : silu_d_f32(dx, dy, x, n);
        break;
    case RLHF_ACT_RELU2:
        bf16 ? relu2_d_bf16(dx, dy, x, n) : relu2_d_f32(dx, dy, x, n);
        break;
    default:
        bf16 ? relu_d_bf16(dx, dy, x, n) : relu_d_f32(dx, dy, x, n);
        break;
    }
}

void RLHF__HOT(gate)(void *out, const void *a, const void *b, int kind, int bf16, size_t n) {
    switch (kind) {
    case RLHF_ACT_GELU_TANH:
        gelu_tanh_gate(out, a, b, bf16, n);
        break;
    case RLHF_ACT_GELU_ERF:
        gelu_erf_gate(out, a, b, bf16, n);
        break;
    case RLHF_ACT_SILU:
        silu_gate(out, a, b, bf16, n);
        break;
    case RLHF_ACT_RELU2:
        relu2_gate(out, a, b, bf16, n);
        break;
    default:
        relu_gate(out, a, b, bf16, n);
        break;
    }
}

void RLHF__HOT(gate_bwd)(void *da, void *db, const void *dy, const void *a, const void *b, int kind,
                         int bf16, size_t n) {
    switch (kind) {
    case RLHF_ACT_GELU_TANH:
        gelu_tanh_gate_bwd(da, db, dy, a, b, bf16, n);
        break;
    case RLHF_ACT_GELU_ERF:
        gelu_erf_gate_bwd(da, db, dy, a, b, bf16, n);
        break;
    case RLHF_ACT_SILU:
        silu_gate_bwd(da, db, dy, a, b, bf16, n);
        break;
    case RLHF_ACT_RELU2:
        relu2_gate_bwd(da, db, dy, a, b, bf16, n);
        break;
    default:
        relu_gate_bwd(da, db, dy, a, b, bf16, n);
        break;
    }
}
