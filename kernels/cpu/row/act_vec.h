// act_vec.h: the activation functions and their derivatives on vectors of f32. For hot sources.
//
// Sigmoid: f = s, s = 1 / (1 + e^-x); f' = s (1 - s). SiLU: f = x s; f' = s (1 + x (1 - s)).
// GELU tanh: f = x s, s = 1 / (1 + e^-2u), u = sqrt(2/pi) (x + 0.044715 x^3), because
// (1 + tanh u) / 2 = s; f' = s + x s (1 - s) 2u'. One exp and one division, no cancellation.
// GELU erf: f = x Phi(x), Phi(x) = erfc(-x / sqrt 2) / 2; f' = Phi + x e^(-x^2 / 2) / sqrt(2 pi).
//
// f(x) is the value; f_d(x, dy) is dy f'(x).
#ifndef RLHF_KERNELS_CPU_ROW_ACT_VEC_H
#define RLHF_KERNELS_CPU_ROW_ACT_VEC_H

#include "machine/any.h"

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
static inline vf sigmoid_d(vf x, vf dy) {
    vf s = sigmoid(x);
    return vf_mul(dy, vf_mul(s, vf_sub(vf_set1(1.0f), s)));
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

// f(x) and dy f'(x) of an enum rlhf_act; 0 is f(x) = x.
static inline vf act_any(int kind, vf x) {
    switch (kind) {
    case 0:
        return x;
    case RLHF_ACT_GELU_TANH:
        return gelu_tanh(x);
    case RLHF_ACT_GELU_ERF:
        return gelu_erf(x);
    case RLHF_ACT_SILU:
        return silu(x);
    case RLHF_ACT_RELU2:
        return relu2(x);
    case RLHF_ACT_SIGMOID:
        return sigmoid(x);
    default:
        return relu(x);
    }
}
static inline vf act_any_d(int kind, vf x, vf dy) {
    switch (kind) {
    case 0:
        return dy;
    case RLHF_ACT_GELU_TANH:
        return gelu_tanh_d(x, dy);
    case RLHF_ACT_GELU_ERF:
        return gelu_erf_d(x, dy);
    case RLHF_ACT_SILU:
        return silu_d(x, dy);
    case RLHF_ACT_RELU2:
        return relu2_d(x, dy);
    case RLHF_ACT_SIGMOID:
        return sigmoid_d(x, dy);
    default:
        return relu_d(x, dy);
    }
}

#endif
