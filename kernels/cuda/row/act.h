// act.h: the activation functions of enum rlhf_act, and their derivatives, one number at a time.
//
// GELU tanh: f = x s, u = sqrt(2/pi) (x + 0.044715 x^3), s = (1 + tanh u) / 2 = 1 / (1 + e^-2u);
// f' = s + x s (1 - s) 2u'.
// GELU erf: f = x Phi(x); f' = Phi + x phi(x).
// SiLU: f = x s, s = 1 / (1 + e^-x); f' = s + x s (1 - s).
#ifndef RLHF_CUDA_ACT_H
#define RLHF_CUDA_ACT_H

#include "machine/context.h"
#include "machine/mathf.h"

// Returns RLHF_E_UNSUPPORTED if `kind` is not a value of enum rlhf_act. [step]
rlhf_status rlhf__cuda_check_act(struct rlhf__cuda *cu, const char *op, int32_t kind);

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

#endif
