// act.h: the activation functions of enum rlhf_act, and their derivatives, one number at a time.
//
// GELU tanh: f = x s, u = sqrt(2/pi) (x + 0.044715 x^3), s = (1 + tanh u) / 2 = 1 / (1 + e^-2u);
// f' = s + x s (1 - s) 2u'.
// GELU erf: f = x Phi(x); f' = Phi + x phi(x).
// SiLU: f = x s, s = 1 / (1 + e^-x); f' = s + x s (1 - s). Sigmoid: f = s; f' = s (1 - s).
#ifndef RLHF_CUDA_ACT_H
#define RLHF_CUDA_ACT_H

#include "machine/context.h"
#include "machine/mathf.h"

// Returns RLHF_E_UNSUPPORTED if `kind` is not a value of enum rlhf_act, or 0 if `none` is set.
// [step]
rlhf_status rlhf__cuda_check_act(struct rlhf__cuda *cu, const char *op, int32_t kind, int none = 0);

#define RLHF__TWO_SQRT_2_OVER_PI 1.5957691216f // the factor in 2u
#define RLHF__GELU_CUBIC         0.044715f

static __device__ __forceinline__ float rlhf__gelu_gate(float x, float xx) {
    const float w =
        fmaf(xx, -RLHF__TWO_SQRT_2_OVER_PI * RLHF__GELU_CUBIC, -RLHF__TWO_SQRT_2_OVER_PI);
    return 1.0f / (1.0f + rlhf__expf(w * x));
}

template <int KIND> static __device__ __forceinline__ float rlhf__act_of(float x) {
    float density; // or 1 minus the result of sigmoid
    switch (KIND) {
    case RLHF_ACT_GELU_TANH:
        return x * rlhf__gelu_gate(x, x * x);
    case RLHF_ACT_GELU_ERF:
        return x * rlhf__normal_cdf(x, &density);
    case RLHF_ACT_SILU:
        return x * rlhf__sigmoidf(x, &density);
    case RLHF_ACT_SIGMOID:
        return rlhf__sigmoidf(x, &density);
    case RLHF_ACT_RELU2:
        return x > 0.0f ? x * x : 0.0f * x;
    default:
        return x < 0.0f ? 0.0f : x;
    }
}

template <int KIND> static __device__ __forceinline__ float rlhf__act_slope(float x) {
    if (KIND == RLHF_ACT_GELU_TANH) {
        const float xx = x * x, s = rlhf__gelu_gate(x, xx);
        const float du =
            fmaf(xx, 3.0f * RLHF__TWO_SQRT_2_OVER_PI * RLHF__GELU_CUBIC, RLHF__TWO_SQRT_2_OVER_PI);
        return fmaf(x * s * (1.0f - s), du, s);
    }
    if (KIND == RLHF_ACT_SILU) {
        float rest;
        const float s = rlhf__sigmoidf(x, &rest);
        return fmaf(x * s, rest, s);
    }
    if (KIND == RLHF_ACT_SIGMOID) {
        float rest;
        const float s = rlhf__sigmoidf(x, &rest);
        return s * rest;
    }
    float density;
    const float cdf = rlhf__normal_cdf(x, &density);
    return fmaf(x, density, cdf);
}

// dy f'(x). For x <= 0, the result of ReLU and of its square is 0, even if dy is infinite or NaN.
template <int KIND> static __device__ __forceinline__ float rlhf__act_back(float x, float dy) {
    if (KIND == RLHF_ACT_RELU) return x > 0.0f ? dy : 0.0f;
    if (KIND == RLHF_ACT_RELU2) return x > 0.0f ? dy * (x + x) : 0.0f;
    return dy * rlhf__act_slope<KIND>(x);
}

// f(x) and dy f'(x) of an enum rlhf_act that the kernel gets as an argument; 0 is f(x) = x.
static __device__ __forceinline__ float rlhf__act_any(int32_t kind, float x) {
    switch (kind) {
    case 0:
        return x;
    case RLHF_ACT_GELU_TANH:
        return rlhf__act_of<RLHF_ACT_GELU_TANH>(x);
    case RLHF_ACT_GELU_ERF:
        return rlhf__act_of<RLHF_ACT_GELU_ERF>(x);
    case RLHF_ACT_SILU:
        return rlhf__act_of<RLHF_ACT_SILU>(x);
    case RLHF_ACT_RELU2:
        return rlhf__act_of<RLHF_ACT_RELU2>(x);
    case RLHF_ACT_SIGMOID:
        return rlhf__act_of<RLHF_ACT_SIGMOID>(x);
    default:
        return rlhf__act_of<RLHF_ACT_RELU>(x);
    }
}
static __device__ __forceinline__ float rlhf__act_any_back(int32_t kind, float x, float dy) {
    switch (kind) {
    case 0:
        return dy;
    case RLHF_ACT_GELU_TANH:
        return rlhf__act_back<RLHF_ACT_GELU_TANH>(x, dy);
    case RLHF_ACT_GELU_ERF:
        return rlhf__act_back<RLHF_ACT_GELU_ERF>(x, dy);
    case RLHF_ACT_SILU:
        return rlhf__act_back<RLHF_ACT_SILU>(x, dy);
    case RLHF_ACT_RELU2:
        return rlhf__act_back<RLHF_ACT_RELU2>(x, dy);
    case RLHF_ACT_SIGMOID:
        return rlhf__act_back<RLHF_ACT_SIGMOID>(x, dy);
    default:
        return rlhf__act_back<RLHF_ACT_RELU>(x, dy);
    }
}

#endif
