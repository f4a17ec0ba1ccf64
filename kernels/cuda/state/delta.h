// delta.h: what the kernels of the gated delta rule have in common.
#ifndef RLHF_CUDA_STATE_DELTA_H
#define RLHF_CUDA_STATE_DELTA_H

#include "machine/mathf.h"
#include "state/states.h"

enum { RLHF__DELTA_DIM_MAX = 128 };

// A kernel argument: the tensors of a call.
struct rlhf__delta_args {
    rlhf__cuda_states rows;
    const void *x, *beta, *alpha, *dout;
    void *out, *dx, *dbeta, *dalpha;
    const float *a_log, *dt_bias;
    int64_t x_stride, gate_stride, out_stride;
    int32_t heads, key_heads, key_dim, value_dim;
    float scale, eps;
};

// The gates of a token: log g, b, and the argument of softplus.
struct rlhf__delta_gates {
    float log_g, b, z;
};

// log(1 + e^x) = max(x, 0) + log(1 + y), y = e^-|x|. With s = y / (2 + y), log(1 + y) is 2 (s +
// s^3/3 + s^5/5 + ...). The first term left out is below 2e-9 of the sum.
static __device__ __forceinline__ float rlhf__softplusf(float x) {
    const float y = rlhf__expf(-fabsf(x)), s = y / (y + 2.0f), q = s * s;
    float p = 1.0f / 15;
    p = fmaf(p, q, 1.0f / 13);
    p = fmaf(p, q, 1.0f / 11);
    p = fmaf(p, q, 1.0f / 9);
    p = fmaf(p, q, 1.0f / 7);
    p = fmaf(p, q, 1.0f / 5);
    p = fmaf(p, q, 1.0f / 3);
    const float half = fmaf(p * q, s, s);
    return (x > 0.0f ? x : x < 0.0f ? 0.0f : x) + (half + half); // NaN stays
}

template <class T>
static __device__ __forceinline__ rlhf__delta_gates
rlhf__delta_read_gates(const rlhf__delta_args &a, int64_t token, int32_t h) {
    const uint64_t at = (uint64_t)(token * a.gate_stride + h);
    float rest;
    rlhf__delta_gates g;
    g.z = rlhf__get((const T *)a.alpha, at) + a.dt_bias[h];
    g.log_g = -(rlhf__expf(a.a_log[h]) * rlhf__softplusf(g.z));
    g.b = rlhf__sigmoidf(rlhf__get((const T *)a.beta, at), &rest);
    return g;
}

// 1 / sqrt(sum of squares + eps) of x[0 .. n-1], computed by a whole warp.
template <class T>
static __device__ __forceinline__ float rlhf__inverse_length(const T *x, int32_t n, float eps) {
    float sum = 0.0f;
    for (int32_t i = (int32_t)threadIdx.x % 32; i < n; i += 32)
        sum = fmaf(rlhf__get(x, (uint64_t)i), rlhf__get(x, (uint64_t)i), sum);
    return 1.0f / sqrtf(rlhf__warp_sum(sum) + eps);
}

// to[0 .. width-1] = scale * x / its length, with zeros from n on, computed by a whole warp.
template <class T>
static __device__ __forceinline__ void rlhf__read_unit(float *to, const T *x, int32_t n,
                                                       int32_t width, float scale, float eps) {
    const float f = rlhf__inverse_length(x, n, eps) * scale;
    for (int32_t i = (int32_t)threadIdx.x % 32; i < width; i += 32)
        to[i] = i < n ? rlhf__get(x, (uint64_t)i) * f : 0.0f;
}

// Copies the caller's struct, and sets the arguments that it has. [step]
rlhf_status rlhf__cuda_read_delta(struct rlhf__cuda *cu, const char *op, rlhf_delta *d,
                                  const rlhf_delta *from);
rlhf__delta_args rlhf__cuda_delta_args(const rlhf_delta &d, rlhf_dev x, rlhf_dev beta,
                                       rlhf_dev alpha);

#endif
