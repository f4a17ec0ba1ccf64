// gated_norm.cu: RMS norm of each head, times the activation of a gate, and its derivative.
//
// A warp has a head of a row. dgamma: a thread sums a column over 64 rows and their heads; parts.h
// adds these sums.
#include "machine/table.h"
#include "row/act.h"
#include "row/parts.h"

enum { WARPS = 4, CHUNK = 64 };

namespace {
struct norm_args {
    const void *x, *gate, *dout;
    void *out, *dx, *dgate;
    float *stats; // forward: NULL allowed
    const float *gamma;
    float *part;
    int64_t x_stride, gate_stride, out_stride;
    uint32_t rows, heads, dim;
    int32_t act;
    float eps;
};
} // namespace

template <class T>
static __device__ __forceinline__ float inverse_rms(const norm_args &a, const T *x) {
    float sum = 0.0f;
    for (uint32_t c = threadIdx.x % 32; c < a.dim; c += 32)
        sum = fmaf(rlhf__get(x, c), rlhf__get(x, c), sum);
    return 1.0f / sqrtf(rlhf__warp_sum(sum) / (float)a.dim + a.eps);
}

template <class T> static __global__ void __launch_bounds__(32 * WARPS) norm_heads(norm_args a) {
    const uint64_t i = (uint64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    if (i >= (uint64_t)a.rows * a.heads) return; // the whole warp returns
    const uint64_t t = i / a.heads, at = i % a.heads * a.dim;
    const T *const x = (const T *)a.x + t * a.x_stride + at;
    const T *const gate = (const T *)a.gate + t * a.gate_stride + at;
    const float rinv = inverse_rms(a, x);
    for (uint32_t c = threadIdx.x % 32; a.out && c < a.dim; c += 32)
        rlhf__put((T *)a.out + t * a.out_stride + at, c,
                  rlhf__get(x, c) * rinv * a.gamma[c] * rlhf__act_any(a.act, rlhf__get(gate, c)));
    if (a.stats && threadIdx.x % 32 == 0) a.stats[i] = rinv;
}

template <class T> static __global__ void __launch_bounds__(32 * WARPS) norm_sums(norm_args a) {
    const uint32_t c = blockIdx.y * 32 * WARPS + threadIdx.x;
    if (c >= a.dim) return;
    const uint32_t first = blockIdx.x * CHUNK,
                   end = a.rows - first < CHUNK ? a.rows : first + CHUNK;
    float sum = 0.0f;
    for (uint64_t t = first; t < end; t++)
        for (uint32_t h = 0; h < a.heads; h++) {
            const uint64_t at = (uint64_t)h * a.dim + c;
            const float xhat =
                rlhf__get((const T *)a.x, t * a.x_stride + at) * a.stats[t * a.heads + h];
            const float z = rlhf__get((const T *)a.gate, t * a.gate_stride + at);
            sum =
                fmaf(rlhf__get((const T *)a.dout, t * a.out_stride + at) * rlhf__act_any(a.act, z),
                     xhat, sum);
        }
    a.part[(uint64_t)blockIdx.x * a.dim + c] = sum;
}

template <class T>
static __global__ void __launch_bounds__(32 * WARPS) norm_bwd_heads(norm_args a) {
    const uint64_t i = (uint64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    if (i >= (uint64_t)a.rows * a.heads) return; // the whole warp returns
    const uint64_t t = i / a.heads, at = i % a.heads * a.dim;
    const T *const x = (const T *)a.x + t * a.x_stride + at;
    const T *const gate = (const T *)a.gate + t * a.gate_stride + at;
    const T *const dout = (const T *)a.dout + t * a.out_stride + at;
    const float rinv = a.stats[i];
    float sum = 0.0f;
    for (uint32_t c = threadIdx.x % 32; c < a.dim; c += 32)
        sum = fmaf(rlhf__get(dout, c) * a.gamma[c] * rlhf__act_any(a.act, rlhf__get(gate, c)),
                   rlhf__get(x, c) * rinv, sum);
    const float mean = rlhf__warp_sum(sum) / (float)a.dim;
    for (uint32_t c = threadIdx.x % 32; c < a.dim; c += 32) {
        const float xhat = rlhf__get(x, c) * rinv, z = rlhf__get(gate, c);
        const float g = rlhf__get(dout, c) * a.gamma[c];
        rlhf__put((T *)a.dx + t * a.x_stride + at, c,
                  fmaf(-xhat, mean, g * rlhf__act_any(a.act, z)) * rinv);
        rlhf__put((T *)a.dgate + t * a.gate_stride + at, c, rlhf__act_any_back(a.act, z, g * xhat));
    }
}

// ---- the table's functions ----

static rlhf_status read_norm(struct rlhf__cuda *cu, const char *op, rlhf_gated_norm *n,
                             const rlhf_gated_norm *from) {
    RLHF_TRY(rlhf__cuda_copy_in(cu, op, n, sizeof *n, from, RLHF_SIZE_TO(rlhf_gated_norm, gamma)));
    RLHF_TRY(rlhf__cuda_check_dtype(cu, op, n->dtype));
    RLHF_TRY(rlhf__cuda_check_act(cu, op, n->act));
    const int64_t width = (int64_t)n->heads * n->head_dim;
    if (n->heads < 1 || n->head_dim < 1 || n->x_stride < width || n->gate_stride < width ||
        n->out_stride < width)
        return rlhf__cuda_fail(cu, RLHF_E_INVALID,
                               "%s: %d heads of %d do not fit the strides %lld, %lld and %lld", op,
                               n->heads, n->head_dim, (long long)n->x_stride,
                               (long long)n->gate_stride, (long long)n->out_stride);
    return RLHF_OK;
}

static norm_args args_of(const rlhf_gated_norm &n, rlhf_dev x, rlhf_dev gate, uint32_t rows) {
    norm_args a = {};
    a.x = rlhf__cuda_mem(x);
    a.gate = rlhf__cuda_mem(gate);
    a.gamma = rlhf__cuda_f32(n.gamma);
    a.x_stride = n.x_stride;
    a.gate_stride = n.gate_stride;
    a.out_stride = n.out_stride;
    a.rows = rows;
    a.heads = (uint32_t)n.heads;
    a.dim = (uint32_t)n.head_dim;
    a.act = n.act;
    a.eps = (float)n.eps;
    return a;
}

static void wrote(struct rlhf__cuda *cu, const void *p, const rlhf_gated_norm &n, uint32_t rows,
                  int64_t stride) {
    const uint64_t last =
        (uint64_t)(rows - 1) * (uint64_t)stride + (uint64_t)n.heads * (uint64_t)n.head_dim;
    rlhf__cuda_wrote(cu, p, last * rlhf_dtype_size(n.dtype));
}

static dim3 heads_grid(const norm_args &a) {
    return dim3((unsigned)(((uint64_t)a.rows * a.heads + WARPS - 1) / WARPS));
}

static rlhf_status gated_norm(void *ctx, const rlhf_gated_norm *from, rlhf_dev out, rlhf_dev stats,
                              rlhf_dev x, rlhf_dev gate, uint32_t rows) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    rlhf_gated_norm n;
    RLHF_TRY(read_norm(cu, "gated_norm", &n, from));
    if (!rows) return RLHF_OK;
    norm_args a = args_of(n, x, gate, rows);
    a.out = rlhf__cuda_mem(out);
    a.stats = rlhf__cuda_f32(stats);
    wrote(cu, a.out, n, rows, n.out_stride);
    if (stats) rlhf__cuda_wrote(cu, a.stats, (uint64_t)rows * a.heads * sizeof(float));
    RUN(cu, (n.dtype == RLHF_BF16 ? norm_heads<rlhf__bf16> : norm_heads<float>), heads_grid(a),
        dim3(32 * WARPS), 0, a);
    return rlhf__cuda_done(cu);
}

static uint32_t chunks_of(uint32_t rows) { return (rows + CHUNK - 1) / CHUNK; }

static uint64_t bwd_bytes(const rlhf_gated_norm &n, uint32_t rows) {
    return ((uint64_t)rows * (uint64_t)n.heads + (uint64_t)chunks_of(rows) * (uint64_t)n.head_dim) *
           sizeof(float);
}

static rlhf_status gated_norm_bwd(void *ctx, const rlhf_gated_norm *from, rlhf_dev dx,
                                  rlhf_dev dgate, rlhf_dev dgamma, rlhf_dev dout, rlhf_dev stats,
                                  rlhf_dev x, rlhf_dev gate, uint32_t rows) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    rlhf_gated_norm n;
    void *ws = NULL;
    RLHF_TRY(read_norm(cu, "gated_norm_bwd", &n, from));
    if (!rows) return RLHF_OK;
    const bool bf16 = n.dtype == RLHF_BF16;
    norm_args a = args_of(n, x, gate, rows);
    RLHF_TRY(rlhf__cuda_workspace(cu, RLHF__CUDA_WS_PARTIAL, bwd_bytes(n, rows), &ws));
    a.stats = stats ? rlhf__cuda_f32(stats) : (float *)ws;
    a.part = (float *)ws + (uint64_t)rows * a.heads;
    if (!stats) // computed again; nothing else is written without out
        RUN(cu, (bf16 ? norm_heads<rlhf__bf16> : norm_heads<float>), heads_grid(a),
            dim3(32 * WARPS), 0, a);
    a.dout = rlhf__cuda_mem(dout);
    a.dx = rlhf__cuda_mem(dx);
    a.dgate = rlhf__cuda_mem(dgate);
    if (dgamma) // before dx is written, which may be dout
        RUN(cu, (bf16 ? norm_sums<rlhf__bf16> : norm_sums<float>),
            dim3(chunks_of(rows), (a.dim + 32 * WARPS - 1) / (32 * WARPS)), dim3(32 * WARPS), 0, a);
    wrote(cu, a.dx, n, rows, n.x_stride);
    wrote(cu, a.dgate, n, rows, n.gate_stride);
    RUN(cu, (bf16 ? norm_bwd_heads<rlhf__bf16> : norm_bwd_heads<float>), heads_grid(a),
        dim3(32 * WARPS), 0, a);
    float *const to[2] = {rlhf__cuda_f32(dgamma), NULL};
    if (dgamma) RLHF_TRY(rlhf__cuda_add_parts(cu, to, a.part, chunks_of(rows), 1, a.dim));
    return rlhf__cuda_done(cu);
}

void rlhf__cuda_needs_gated_norm(struct rlhf__cuda *cu, const rlhf_call *c,
                                 struct rlhf__cuda_needs *n) {
    rlhf_gated_norm g;
    if (c->op != RLHF_COMPUTE_OP(gated_norm_bwd) || !c->gated_norm || !c->rows) return;
    if (read_norm(cu, "workspace_bytes", &g, c->gated_norm) == RLHF_OK)
        rlhf__cuda_need(n, RLHF__CUDA_WS_PARTIAL, bwd_bytes(g, c->rows));
}

rlhf_status rlhf__cuda_supports_gated_norm(struct rlhf__cuda *cu, const char *op,
                                           const rlhf_gated_norm *from) {
    rlhf_gated_norm n;
    return read_norm(cu, op, &n, from);
}

void rlhf__cuda_fill_gated_norm(rlhf_compute *t) {
    t->gated_norm = gated_norm;
    t->gated_norm_bwd = gated_norm_bwd;
}
