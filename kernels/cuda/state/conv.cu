// conv.cu: causal convolution of each channel over the tokens of ragged rows, and its derivative.
//
// A thread has a channel. With states, it processes all rows in order, because a row may continue
// another row of the call; in the training layout, it processes one row (forward) or a part of the
// rows (backward). It keeps the last inputs in registers.
#include "machine/table.h"
#include "row/act.h"
#include "state/states.h"

enum { THREADS = 128, TAPS = 8, PARTS = 16 };

namespace {
struct conv_args {
    rlhf__cuda_states rows;
    const float *weight, *bias;
    const void *x, *dy;
    void *y, *dx;
    float *part; // backward: [PARTS, taps + 1, channels]
    int64_t x_stride, y_stride;
    uint32_t channels, each; // each: rows of a part
    int32_t taps, act;
};

// The weights of a channel and its last inputs. A convolution of fewer taps has zeros in front.
struct channel {
    float weight[TAPS], bias, before[TAPS - 1];
};
} // namespace

static __device__ __forceinline__ void read_weights(const conv_args &a, uint32_t c, channel *w) {
    const int32_t skip = TAPS - a.taps;
#pragma unroll
    for (int32_t j = 0; j < TAPS; j++)
        w->weight[j] = j >= skip ? a.weight[(uint64_t)c * a.taps + (j - skip)] : 0.0f;
    w->bias = a.bias ? a.bias[c] : 0.0f;
}

// Sets the inputs before the row's first.
template <class T>
static __device__ __forceinline__ void
read_before(const conv_args &a, const rlhf__cuda_state_row &r, uint32_t c, channel *w) {
    const int32_t tail = a.taps - 1, skip = TAPS - a.taps;
#pragma unroll
    for (int32_t j = 0; j < TAPS - 1; j++) {
        const int32_t k = j - skip; // of the state's rows
        float v = 0.0f;
        if (k >= 0 && r.from)
            v = rlhf__get((const T *)r.from, (uint64_t)k * a.channels + c);
        else if (k >= 0 && r.np + k - tail >= 0 && r.np)
            v = rlhf__get((const T *)a.x, (uint64_t)(r.p0 + r.np + k - tail) * a.x_stride + c);
        w->before[j] = v;
    }
}

static __device__ __forceinline__ float sum_of(const channel &w, float x) {
    float z = w.bias;
#pragma unroll
    for (int j = 0; j < TAPS - 1; j++)
        z = fmaf(w.weight[j], w.before[j], z);
    return fmaf(w.weight[TAPS - 1], x, z);
}

template <class T>
static __device__ __forceinline__ void
forward_row(const conv_args &a, const rlhf__cuda_state_row &r, uint32_t c, channel *w) {
    read_before<T>(a, r, c, w);
    for (int32_t t = r.t0; t < r.t0 + r.n; t++) {
        const float x = rlhf__get((const T *)a.x, (uint64_t)t * a.x_stride + c);
        rlhf__put((T *)a.y, (uint64_t)t * a.y_stride + c, rlhf__act_any(a.act, sum_of(*w, x)));
#pragma unroll
        for (int j = 0; j + 1 < TAPS - 1; j++)
            w->before[j] = w->before[j + 1];
        w->before[TAPS - 2] = x;
    }
    const int32_t skip = TAPS - a.taps;
#pragma unroll
    for (int32_t j = 0; j < TAPS - 1; j++)
        if (r.to && j >= skip)
            rlhf__put((T *)r.to, (uint64_t)(j - skip) * a.channels + c, w->before[j]);
}

template <class T> static __global__ void __launch_bounds__(THREADS) conv_rows(conv_args a) {
    const uint32_t c = blockIdx.x * THREADS + threadIdx.x;
    if (c >= a.channels) return;
    const uint32_t first = a.rows.from ? 0 : blockIdx.y, end = a.rows.from ? a.rows.n : first + 1;
    channel w;
    rlhf__cuda_state_row r;
    read_weights(a, c, &w);
    for (uint32_t i = first; i < end; i++)
        if (rlhf__cuda_state_row_check(a.rows, i, &r)) forward_row<T>(a, r, c, &w);
}

// ---- backward: dz = dy f'(z), dx[s] = sum_j weight[j] dz[s + taps - 1 - j] ----

// One row, last token first. later: gradients of its last tokens by the rows that share it;
// earlier: += the gradients of the tokens before it, unless NULL. sums: += dweight, dbias.
template <class T>
static __device__ __forceinline__ void
backward_row(const conv_args &a, const rlhf__cuda_state_row &r, uint32_t c, channel *w,
             const float *later, float *earlier, float (&sums)[TAPS + 1]) {
    float dz[TAPS], of_row[TAPS + 1]; // dz[j]: of the token j after the current one
#pragma unroll
    for (int j = 0; j < TAPS; j++)
        dz[j] = of_row[j] = 0.0f;
    of_row[TAPS] = 0.0f;
    read_before<T>(a, r, c, w);
    for (int32_t t = r.n - 1; t >= 1 - a.taps; t--) {
#pragma unroll
        for (int j = TAPS - 1; j > 0; j--)
            dz[j] = dz[j - 1];
        dz[0] = 0.0f;
        if (t >= 0) {
            float in[TAPS];
#pragma unroll
            for (int j = 0; j < TAPS; j++) {
                const int32_t at = t + j - (TAPS - 1);
                in[j] = 0.0f;
                if (j >= TAPS - a.taps) {
                    if (at >= 0)
                        in[j] = rlhf__get((const T *)a.x, (uint64_t)(r.t0 + at) * a.x_stride + c);
                    else
#pragma unroll
                        for (int b = 0; b < TAPS - 1; b++)
                            if (b == TAPS - 1 + at) in[j] = w->before[b];
                }
            }
            float z = w->bias;
#pragma unroll
            for (int j = 0; j < TAPS; j++)
                z = fmaf(w->weight[j], in[j], z);
            const float dy = rlhf__get((const T *)a.dy, (uint64_t)(r.t0 + t) * a.y_stride + c);
            dz[0] = rlhf__act_any_back(a.act, z, dy);
#pragma unroll
            for (int j = 0; j < TAPS; j++)
                of_row[j] = fmaf(dz[0], in[j], of_row[j]);
            of_row[TAPS] += dz[0];
        }
        float d = 0.0f;
#pragma unroll
        for (int j = 0; j < TAPS; j++)
            d = fmaf(w->weight[j], dz[TAPS - 1 - j], d);
        if (t >= 0) {
#pragma unroll
            for (int j = 0; j < TAPS - 1; j++)
                if (later && t - r.n + TAPS - 1 == j) d += later[j];
            rlhf__put((T *)a.dx, (uint64_t)(r.t0 + t) * a.x_stride + c, d);
        } else {
#pragma unroll
            for (int j = 0; j < TAPS - 1; j++)
                if (earlier && t + TAPS - 1 == j) earlier[j] += d;
        }
    }
#pragma unroll
    for (int j = 0; j <= TAPS; j++)
        sums[j] += of_row[j];
}

// The rows of a part that share no prefix, each after the rows that share it.
template <class T> static __global__ void __launch_bounds__(THREADS) conv_bwd_rows(conv_args a) {
    const uint32_t c = blockIdx.x * THREADS + threadIdx.x, part = blockIdx.y;
    if (c >= a.channels) return;
    const uint32_t end = (part + 1) * a.each < a.rows.n ? (part + 1) * a.each : a.rows.n;
    channel w;
    rlhf__cuda_state_row r;
    float sums[TAPS + 1], later[TAPS - 1];
    for (int j = 0; j <= TAPS; j++)
        sums[j] = 0.0f;
    read_weights(a, c, &w);
    for (uint32_t head = part * a.each; head < end; head++) {
        if (rlhf__cuda_row_shares(a.rows, head)) continue;
        for (int j = 0; j < TAPS - 1; j++)
            later[j] = 0.0f;
        uint32_t i = head + 1;
        for (; i < a.rows.n && rlhf__cuda_row_shares(a.rows, i); i++)
            if (rlhf__cuda_state_row_check(a.rows, i, &r))
                backward_row<T>(a, r, c, &w, NULL, later, sums);
        if (rlhf__cuda_state_row_check(a.rows, head, &r))
            backward_row<T>(a, r, c, &w, i > head + 1 ? later : NULL, NULL, sums);
    }
    const uint32_t skip = (uint32_t)(TAPS - a.taps), lists = (uint32_t)a.taps + 1;
    for (uint32_t j = 0; a.part && j < lists; j++)
        a.part[((uint64_t)part * lists + j) * a.channels + c] = sums[j + skip];
}

// Adds the parts in order to dweight [channels, taps] and dbias.
static __global__ void __launch_bounds__(THREADS)
    conv_sums(float *dweight, float *dbias, const float *part, uint32_t parts, uint32_t channels,
              uint32_t taps) {
    const uint32_t c = blockIdx.x * THREADS + threadIdx.x, j = blockIdx.y;
    if (c >= channels) return;
    float *const to = j < taps ? dweight + (uint64_t)c * taps + j : dbias + c;
    if (j < taps ? !dweight : !dbias) return;
    float sum = *to;
    for (uint32_t p = 0; p < parts; p++)
        sum += part[((uint64_t)p * (taps + 1) + j) * channels + c];
    *to = sum;
}

// ---- the table's functions ----

static rlhf_status read_conv(struct rlhf__cuda *cu, const char *op, rlhf_conv *v,
                             const rlhf_conv *from) {
    RLHF_TRY(rlhf__cuda_copy_in(cu, op, v, sizeof *v, from, RLHF_SIZE_TO(rlhf_conv, bias)));
    RLHF_TRY(rlhf__cuda_check_dtype(cu, op, v->dtype));
    RLHF_TRY(rlhf__cuda_check_act(cu, op, v->act, 1));
    if (v->taps < 2 || v->taps > TAPS)
        return rlhf__cuda_fail(cu, RLHF_E_UNSUPPORTED, "%s: taps is %d, allowed are 2 to %d", op,
                               v->taps, (int)TAPS);
    if (v->channels < 1 || v->x_stride < v->channels || v->y_stride < v->channels)
        return rlhf__cuda_fail(cu, RLHF_E_INVALID,
                               "%s: %d channels do not fit the strides %lld and %lld", op,
                               v->channels, (long long)v->x_stride, (long long)v->y_stride);
    return RLHF_OK;
}

static conv_args args_of(const rlhf_conv &v, rlhf_dev x) {
    conv_args a = {};
    a.weight = rlhf__cuda_f32(v.weight);
    a.bias = rlhf__cuda_f32(v.bias);
    a.x = rlhf__cuda_mem(x);
    a.x_stride = v.x_stride;
    a.y_stride = v.y_stride;
    a.channels = (uint32_t)v.channels;
    a.taps = v.taps;
    a.act = v.act;
    return a;
}

// Announces the writes to a matrix of `rows` rows.
static void wrote(struct rlhf__cuda *cu, const void *p, uint32_t rows, int64_t stride,
                  const rlhf_conv &v) {
    const uint64_t last = (uint64_t)(rows - 1) * (uint64_t)stride + (uint64_t)v.channels;
    rlhf__cuda_wrote(cu, p, last * rlhf_dtype_size(v.dtype));
}

static rlhf_status conv(void *ctx, const rlhf_conv *from, const rlhf_ragged *rows,
                        const rlhf_states *states, rlhf_dev y, rlhf_dev x) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    rlhf_conv v;
    rlhf__cuda_states s;
    RLHF_TRY(read_conv(cu, "conv", &v, from));
    RLHF_TRY(rlhf__cuda_read_states(cu, "conv", &s, rows, states,
                                    (uint64_t)(v.taps - 1) * (uint64_t)v.channels *
                                        rlhf_dtype_size(v.dtype)));
    if (!s.n) return RLHF_OK;
    conv_args a = args_of(v, x);
    a.rows = s;
    a.y = rlhf__cuda_mem(y);
    if (s.total) wrote(cu, a.y, s.total, v.y_stride, v);
    const dim3 grid((a.channels + THREADS - 1) / THREADS, s.from ? 1 : s.n);
    RUN(cu, (v.dtype == RLHF_BF16 ? conv_rows<rlhf__bf16> : conv_rows<float>), grid, dim3(THREADS),
        0, a);
    return rlhf__cuda_done(cu);
}

static uint64_t parts_bytes(const rlhf_conv &v) {
    return (uint64_t)PARTS * (uint64_t)(v.taps + 1) * (uint64_t)v.channels * sizeof(float);
}

static rlhf_status conv_bwd(void *ctx, const rlhf_conv *from, const rlhf_ragged *rows, rlhf_dev dx,
                            rlhf_dev dweight, rlhf_dev dbias, rlhf_dev dy, rlhf_dev x) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    rlhf_conv v;
    rlhf__cuda_states s;
    void *part = NULL;
    RLHF_TRY(read_conv(cu, "conv_bwd", &v, from));
    RLHF_TRY(rlhf__cuda_read_states(cu, "conv_bwd", &s, rows, NULL, 0));
    if (!s.n) return RLHF_OK;
    if (dweight || dbias)
        RLHF_TRY(rlhf__cuda_workspace(cu, RLHF__CUDA_WS_ATTN, parts_bytes(v), &part));
    conv_args a = args_of(v, x);
    a.rows = s;
    a.dy = rlhf__cuda_mem(dy);
    a.dx = rlhf__cuda_mem(dx);
    a.part = (float *)part;
    a.each = (s.n + PARTS - 1) / PARTS;
    const uint32_t parts = (s.n + a.each - 1) / a.each;
    if (s.total) wrote(cu, a.dx, s.total, v.x_stride, v);
    const dim3 grid((a.channels + THREADS - 1) / THREADS, parts);
    RUN(cu, (v.dtype == RLHF_BF16 ? conv_bwd_rows<rlhf__bf16> : conv_bwd_rows<float>), grid,
        dim3(THREADS), 0, a);
    if (part) {
        float *const dw = rlhf__cuda_f32(dweight), *const db = rlhf__cuda_f32(dbias);
        const uint32_t taps = (uint32_t)v.taps;
        if (dw) rlhf__cuda_wrote(cu, dw, (uint64_t)a.channels * taps * sizeof *dw);
        if (db) rlhf__cuda_wrote(cu, db, a.channels * sizeof *db);
        RUN(cu, conv_sums, dim3(grid.x, taps + 1), dim3(THREADS), 0, dw, db, a.part, parts,
            a.channels, taps);
    }
    return rlhf__cuda_done(cu);
}

void rlhf__cuda_needs_conv(struct rlhf__cuda *cu, const rlhf_call *c, struct rlhf__cuda_needs *n) {
    rlhf_conv v;
    if (c->op != RLHF_COMPUTE_OP(conv_bwd) || !c->conv) return;
    if (read_conv(cu, "workspace_bytes", &v, c->conv) == RLHF_OK)
        rlhf__cuda_need(n, RLHF__CUDA_WS_ATTN, parts_bytes(v));
}

rlhf_status rlhf__cuda_supports_conv(struct rlhf__cuda *cu, const char *op, const rlhf_conv *from) {
    rlhf_conv v;
    return read_conv(cu, op, &v, from);
}

void rlhf__cuda_fill_conv(rlhf_compute *t) {
    t->conv = conv;
    t->conv_bwd = conv_bwd;
}
