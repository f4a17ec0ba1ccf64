// act.cu: activation functions over flat arrays, and their derivatives.
#include "machine/table.h"
#include "row/act.h"
#include "row/lanes.h"

// `out` may be `x`, because a thread reads all of its elements before it writes any of them.
template <class T, int KIND, bool WIDE>
static __global__ void __launch_bounds__(RLHF__FLAT_THREADS)
    act_all(T *out, const T *x, uint64_t n) {
    enum { N = rlhf__flat_lanes<T>::N, GROUPS = rlhf__flat_lanes<T>::GROUPS };
    float v[GROUPS][N];
    for (int g = 0; g < GROUPS; g++)
        rlhf__load<WIDE>(v[g], x, rlhf__flat_at<N>(g), n);
    for (int g = 0; g < GROUPS; g++) {
        for (int i = 0; i < N; i++)
            v[g][i] = rlhf__act_of<KIND>(v[g][i]);
        rlhf__store<WIDE>(out, v[g], rlhf__flat_at<N>(g), n);
    }
}

template <class T, int KIND, bool WIDE>
static __global__ void __launch_bounds__(RLHF__FLAT_THREADS)
    act_bwd_all(T *dx, const T *dy, const T *x, uint64_t n) {
    enum { N = rlhf__flat_lanes<T>::N, GROUPS = rlhf__flat_lanes<T>::GROUPS };
    float v[GROUPS][N], d[GROUPS][N];
    for (int g = 0; g < GROUPS; g++) {
        rlhf__load<WIDE>(v[g], x, rlhf__flat_at<N>(g), n);
        rlhf__load<WIDE>(d[g], dy, rlhf__flat_at<N>(g), n);
    }
    for (int g = 0; g < GROUPS; g++) {
        for (int i = 0; i < N; i++)
            d[g][i] = rlhf__act_back<KIND>(v[g][i], d[g][i]);
        rlhf__store<WIDE>(dx, d[g], rlhf__flat_at<N>(g), n);
    }
}

// ---- the table's functions ----

rlhf_status rlhf__cuda_check_act(struct rlhf__cuda *cu, const char *op, int32_t kind, int none) {
    if (kind >= RLHF_ACT_GELU_TANH && kind <= RLHF_ACT_SIGMOID) return RLHF_OK;
    if (none && kind == 0) return RLHF_OK;
    return rlhf__cuda_fail(cu, RLHF_E_UNSUPPORTED,
                           "%s: kind is %d, known are gelu_tanh 1, gelu_erf 2, relu 3, silu 4, "
                           "relu2 5 and sigmoid 6",
                           op, kind);
}

// Computes out = f(x) if `dy` is NULL, otherwise out = dy f'(x).
template <class T, int KIND>
static rlhf_status act_as(struct rlhf__cuda *cu, T *out, const T *dy, const T *x, uint64_t n) {
    enum { N = rlhf__flat_lanes<T>::N };
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
    if (kind == RLHF_ACT_SILU) return act_as<T, RLHF_ACT_SILU>(cu, o, d, v, n);
    if (kind == RLHF_ACT_RELU2) return act_as<T, RLHF_ACT_RELU2>(cu, o, d, v, n);
    if (kind == RLHF_ACT_SIGMOID) return act_as<T, RLHF_ACT_SIGMOID>(cu, o, d, v, n);
    return act_as<T, RLHF_ACT_RELU>(cu, o, d, v, n);
}

static rlhf_status act_checked(struct rlhf__cuda *cu, const char *op, rlhf_dev out, rlhf_dev dy,
                               rlhf_dev x, int32_t kind, int32_t dtype, uint64_t n) {
    RLHF_TRY(rlhf__cuda_check_act(cu, op, kind));
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
