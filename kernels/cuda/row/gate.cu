// gate.cu: gated units (Shazeer 2020), out = f(a) b with x = [a, b], and their derivatives.
#include "machine/table.h"
#include "row/act.h"
#include "row/lanes.h"

enum { THREADS = 256 };

namespace {
// A thread's elements of a row: N columns starting at `at`.
struct place {
    uint64_t row, at;
};
} // namespace

template <int N>
static __device__ __forceinline__ bool place_of(struct place *p, uint32_t rows, uint32_t groups) {
    const uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    p->row = i / groups;
    p->at = i % groups * N;
    return p->row < rows;
}

template <class T, int KIND, bool WIDE>
static __global__ void __launch_bounds__(THREADS)
    gate_rows(T *out, const T *x, uint32_t rows, uint32_t inner, uint32_t groups) {
    enum { N = rlhf__flat_lanes<T>::N };
    struct place p;
    if (!place_of<N>(&p, rows, groups)) return;
    const T *const line = x + p.row * 2 * inner;
    float a[N], b[N];
    rlhf__load<WIDE>(a, line, p.at, inner);
    rlhf__load<WIDE>(b, line + inner, p.at, inner);
    for (int i = 0; i < N; i++)
        a[i] = rlhf__act_of<KIND>(a[i]) * b[i];
    rlhf__store<WIDE>(out + p.row * inner, a, p.at, inner);
}

// `dx` may be `x`, because a thread reads both numbers of a pair before it writes them.
template <class T, int KIND, bool WIDE>
static __global__ void __launch_bounds__(THREADS)
    gate_bwd_rows(T *dx, const T *dy, const T *x, uint32_t rows, uint32_t inner, uint32_t groups) {
    enum { N = rlhf__flat_lanes<T>::N };
    struct place p;
    if (!place_of<N>(&p, rows, groups)) return;
    const uint64_t line = p.row * 2 * inner;
    float a[N], b[N], d[N];
    rlhf__load<WIDE>(a, x + line, p.at, inner);
    rlhf__load<WIDE>(b, x + line + inner, p.at, inner);
    rlhf__load<WIDE>(d, dy + p.row * inner, p.at, inner);
    for (int i = 0; i < N; i++) {
        b[i] = rlhf__act_back<KIND>(a[i], d[i] * b[i]);
        d[i] *= rlhf__act_of<KIND>(a[i]);
    }
    rlhf__store<WIDE>(dx + line, b, p.at, inner);
    rlhf__store<WIDE>(dx + line + inner, d, p.at, inner);
}

// ---- the table's functions ----

// If `dy` is NULL, computes the forward pass to out [rows, inner]. Otherwise computes the
// derivatives to out [rows, 2 inner].
template <class T, int KIND>
static rlhf_status gate_as(struct rlhf__cuda *cu, T *out, const T *dy, const T *x, uint32_t rows,
                           uint32_t inner) {
    enum { N = rlhf__flat_lanes<T>::N };
    const uint32_t groups = (inner + N - 1) / N;
    const dim3 grid((unsigned)(((uint64_t)rows * groups + THREADS - 1) / THREADS)), block(THREADS);
    const bool wide =
        rlhf__aligned<N>(out, inner) && rlhf__aligned<N>(x, inner) && rlhf__aligned<N>(dy, inner);
    rlhf__cuda_wrote(cu, out, (uint64_t)rows * inner * (dy ? 2 : 1) * sizeof *out);
    if (dy && wide)
        RUN(cu, (gate_bwd_rows<T, KIND, true>), grid, block, 0, out, dy, x, rows, inner, groups);
    else if (dy)
        RUN(cu, (gate_bwd_rows<T, KIND, false>), grid, block, 0, out, dy, x, rows, inner, groups);
    else if (wide)
        RUN(cu, (gate_rows<T, KIND, true>), grid, block, 0, out, x, rows, inner, groups);
    else
        RUN(cu, (gate_rows<T, KIND, false>), grid, block, 0, out, x, rows, inner, groups);
    return rlhf__cuda_done(cu);
}

template <class T>
static rlhf_status gate_kind(struct rlhf__cuda *cu, rlhf_dev out, rlhf_dev dy, rlhf_dev x,
                             int32_t kind, uint32_t rows, uint32_t inner) {
    T *const o = rlhf__cuda_mem<T>(out);
    const T *const d = rlhf__cuda_mem<T>(dy), *const v = rlhf__cuda_mem<T>(x);
    switch (kind) {
    case RLHF_ACT_GELU_TANH:
        return gate_as<T, RLHF_ACT_GELU_TANH>(cu, o, d, v, rows, inner);
    case RLHF_ACT_GELU_ERF:
        return gate_as<T, RLHF_ACT_GELU_ERF>(cu, o, d, v, rows, inner);
    case RLHF_ACT_SILU:
        return gate_as<T, RLHF_ACT_SILU>(cu, o, d, v, rows, inner);
    case RLHF_ACT_RELU2:
        return gate_as<T, RLHF_ACT_RELU2>(cu, o, d, v, rows, inner);
    case RLHF_ACT_SIGMOID:
        return gate_as<T, RLHF_ACT_SIGMOID>(cu, o, d, v, rows, inner);
    default:
        return gate_as<T, RLHF_ACT_RELU>(cu, o, d, v, rows, inner);
    }
}

static rlhf_status gate_checked(struct rlhf__cuda *cu, const char *op, rlhf_dev out, rlhf_dev dy,
                                rlhf_dev x, int32_t kind, int32_t dtype, uint32_t rows,
                                int32_t inner) {
    RLHF_TRY(rlhf__cuda_check_act(cu, op, kind));
    RLHF_TRY(rlhf__cuda_check_dtype(cu, op, dtype));
    RLHF_TRY(rlhf__cuda_check_d(cu, op, inner));
    if (!rows) return RLHF_OK;
    if (dtype == RLHF_BF16)
        return gate_kind<rlhf__bf16>(cu, out, dy, x, kind, rows, (uint32_t)inner);
    return gate_kind<float>(cu, out, dy, x, kind, rows, (uint32_t)inner);
}

static rlhf_status gate(void *ctx, rlhf_dev out, rlhf_dev x, int32_t kind, int32_t dtype,
                        uint32_t rows, int32_t inner) {
    return gate_checked((struct rlhf__cuda *)ctx, "gate", out, NULL, x, kind, dtype, rows, inner);
}

static rlhf_status gate_bwd(void *ctx, rlhf_dev dx, rlhf_dev dy, rlhf_dev x, int32_t kind,
                            int32_t dtype, uint32_t rows, int32_t inner) {
    return gate_checked((struct rlhf__cuda *)ctx, "gate_bwd", dx, dy, x, kind, dtype, rows, inner);
}

void rlhf__cuda_fill_gate(rlhf_compute *t) {
    t->gate = gate;
    t->gate_bwd = gate_bwd;
}
