// act.cu: GELU (tanh and erf forms) and ReLU, with their derivatives.
//
// GELU tanh: f = x s, s = 1 / (1 + e^-2u), u = sqrt(2/pi) (x + 0.044715 x^3), because
// (1 + tanh u) / 2 = s; f' = s + x s (1 - s) 2u'. GELU erf: f = x Phi(x); f' = Phi + x phi(x).
#include "lanes.h"
#include "mathf.h"
#include "table.h"

#define TWO_SQRT_2_OVER_PI 1.5957691216f // the factor of 2u
#define GELU_CUBIC         0.044715f

static __device__ __forceinline__ float gelu_gate(float x, float xx) {
    const float w = fmaf(xx, -TWO_SQRT_2_OVER_PI * GELU_CUBIC, -TWO_SQRT_2_OVER_PI);
    return 1.0f / (1.0f + rlhf__expf(w * x));
}

template <int KIND> static __device__ __forceinline__ float act_of(float x) {
    float density;
    switch (KIND) {
    case RLHF_ACT_GELU_TANH:
        return x * gelu_gate(x, x * x);
    case RLHF_ACT_GELU_ERF:
        return x * rlhf__normal_cdf(x, &density);
    default:
        return x < 0.0f ? 0.0f : x;
    }
}

template <int KIND> static __device__ __forceinline__ float act_slope(float x) {
    if (KIND == RLHF_ACT_GELU_TANH) {
        const float xx = x * x, s = gelu_gate(x, xx);
        const float du = fmaf(xx, 3.0f * TWO_SQRT_2_OVER_PI * GELU_CUBIC, TWO_SQRT_2_OVER_PI);
        return fmaf(x * s * (1.0f - s), du, s);
    }
    float density;
    const float cdf = rlhf__normal_cdf(x, &density);
    return fmaf(x, density, cdf);
}

// dy f'(x); at 0 and below ReLU passes nothing on, whatever dy is.
template <int KIND> static __device__ __forceinline__ float act_back(float x, float dy) {
    if (KIND == RLHF_ACT_RELU) return x > 0.0f ? dy : 0.0f;
    return dy * act_slope<KIND>(x);
}

namespace {
// N elements an access: 8 of bf16, 4 of f32.
template <class T> struct lanes_of {
    enum { N = 16 / sizeof(T), GROUPS = RLHF__FLAT_EACH / N };
};
} // namespace

// out may be x: all of a thread's elements are read before any is written.
template <class T, int KIND, bool WIDE>
static __global__ void __launch_bounds__(RLHF__FLAT_THREADS)
    act_all(T *out, const T *x, uint64_t n) {
    enum { N = lanes_of<T>::N, GROUPS = lanes_of<T>::GROUPS };
    float v[GROUPS][N];
    for (int g = 0; g < GROUPS; g++)
        rlhf__load<WIDE>(v[g], x, rlhf__flat_at<N>(g), n);
    for (int g = 0; g < GROUPS; g++) {
        for (int i = 0; i < N; i++)
            v[g][i] = act_of<KIND>(v[g][i]);
        rlhf__store<WIDE>(out, v[g], rlhf__flat_at<N>(g), n);
    }
}

template <class T, int KIND, bool WIDE>
static __global__ void __launch_bounds__(RLHF__FLAT_THREADS)
    act_bwd_all(T *dx, const T *dy, const T *x, uint64_t n) {
    enum { N = lanes_of<T>::N, GROUPS = lanes_of<T>::GROUPS };
    float v[GROUPS][N], d[GROUPS][N];
    for (int g = 0; g < GROUPS; g++) {
        rlhf__load<WIDE>(v[g], x, rlhf__flat_at<N>(g), n);
        rlhf__load<WIDE>(d[g], dy, rlhf__flat_at<N>(g), n);
    }
    for (int g = 0; g < GROUPS; g++) {
        for (int i = 0; i < N; i++)
            d[g][i] = act_back<KIND>(v[g][i], d[g][i]);
        rlhf__store<WIDE>(dx, d[g], rlhf__flat_at<N>(g), n);
    }
}

// ---- the table's functions ----

// dy NULL: forward, out = f(x); else out = dy f'(x).
template <class T, int KIND>
static rlhf_status act_as(struct rlhf__cuda *cu, T *out, const T *dy, const T *x, uint64_t n) {
    enum { N = lanes_of<T>::N };
    const dim3 grid = rlhf__flat_grid(n), block(RLHF__FLAT_THREADS);
    const bool wide = rlhf__aligned<N>(out, 0) && rlhf__aligned<N>(x, 0) && rlhf__aligned<N>(dy, 0);
    rlhf__cuda_wrote(cu, out, n * sizeof *out);
    if (dy && wide)
        RUN(cu, (act_bwd_all<T, KIND, true>), grid, block, 0, out, dy, x, n);
    else if (dy)
        RUN(cu, (act_bwd_all<T, KIND, false>), grid, block, 0, out, dy, x, n);
    else if (wide)
        RUN(cu, (act_all<T, KIND, true>), grid, block, 0, out, x, n);
    else
        RUN(cu, (act_all<T, KIND, false>), grid, block, 0, out, x, n);
    return rlhf__cuda_done(cu);
}

template <class T>
static rlhf_status act_kind(struct rlhf__cuda *cu, rlhf_dev out, rlhf_dev dy, rlhf_dev x,
                            int32_t kind, uint64_t n) {
    T *const o = rlhf__cuda_mem<T>(out);
    const T *const d = rlhf__cuda_mem<T>(dy), *const v = rlhf__cuda_mem<T>(x);
    if (kind == RLHF_ACT_GELU_TANH) return act_as<T, RLHF_ACT_GELU_TANH>(cu, o, d, v, n);
    if (kind == RLHF_ACT_GELU_ERF) return act_as<T, RLHF_ACT_GELU_ERF>(cu, o, d, v, n);
    return act_as<T, RLHF_ACT_RELU>(cu, o, d, v, n);
}

static rlhf_status act_checked(struct rlhf__cuda *cu, const char *op, rlhf_dev out, rlhf_dev dy,
                               rlhf_dev x, int32_t kind, int32_t dtype, uint64_t n) {
    if (kind < RLHF_ACT_GELU_TANH || kind > RLHF_ACT_RELU)
        return rlhf__cuda_fail(cu, RLHF_E_UNSUPPORTED,
                               "%s: kind is %d, known are gelu_tanh 1, gelu_erf 2 and relu 3", op,
                               kind);
    RLHF_TRY(rlhf__cuda_check_dtype(cu, op, dtype));
    if (!n) return RLHF_OK;
    if (dtype == RLHF_BF16) return act_kind<rlhf__bf16>(cu, out, dy, x, kind, n);
    return act_kind<float>(cu, out, dy, x, kind, n);
}

static rlhf_status act(void *ctx, rlhf_dev out, rlhf_dev x, int32_t kind, int32_t dtype,
                       uint64_t n) {
    return act_checked((struct rlhf__cuda *)ctx, "act", out, NULL, x, kind, dtype, n);
}

static rlhf_status act_bwd(void *ctx, rlhf_dev dx, rlhf_dev dy, rlhf_dev x, int32_t kind,
                           int32_t dtype, uint64_t n) {
    return act_checked((struct rlhf__cuda *)ctx, "act_bwd", dx, dy, x, kind, dtype, n);
}

void rlhf__cuda_fill_act(rlhf_compute *t) {
    t->act = act;
    t->act_bwd = act_bwd;
}
