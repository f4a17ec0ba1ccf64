// delta.cu: the gated delta rule over ragged rows, token by token.
//
// With S the state before a token, u = S^T k, d = b (v - g u), S = g S + k d^T, out = S^T q. A
// block has some columns of the state of a head. SPLIT threads share a column: thread p of them has
// the keys p, p + SPLIT, ... in registers. The order of the sums does not depend on how a row is
// divided into calls. With states, a block processes all rows in order, because a row may continue
// another row of the call; in the training layout, a row and those that share it.
#include "machine/table.h"
#include "state/delta.h"

enum { THREADS = 128, TILE = 16, EACH = 32 }; // EACH: keys of a thread

// Sum over the threads of a column.
template <int SPLIT> static __device__ __forceinline__ float column_sum(float v) {
#pragma unroll
    for (int m = SPLIT / 2; m; m >>= 1)
        v += __shfl_xor_sync(~0u, v, m);
    return v;
}

// The tokens of a row. s: the thread's part of the state.
template <class T, int SPLIT>
static __device__ __forceinline__ void
run_row(const rlhf__delta_args &a, const rlhf__cuda_state_row &r, int32_t h, float (&s)[EACH]) {
    enum { WIDTH = SPLIT * EACH };
    SHARED(float[TILE][WIDTH], q);
    SHARED(float[TILE][WIDTH], k);
    SHARED(float[2][TILE], gates);
    const int32_t part = (int32_t)threadIdx.x % SPLIT;
    const int32_t c = (int32_t)(blockIdx.x * (THREADS / SPLIT) + threadIdx.x / SPLIT);
    const int32_t kh = h / (a.heads / a.key_heads), keys = a.key_heads * a.key_dim;
    const bool has = c < a.value_dim;
    for (int32_t t0 = 0; t0 < r.n; t0 += TILE) {
        const int32_t n = r.n - t0 < TILE ? r.n - t0 : TILE;
        __syncthreads();
        for (int32_t t = (int32_t)threadIdx.x / 32; t < n; t += THREADS / 32) {
            const T *const x = (const T *)a.x + (r.t0 + t0 + t) * a.x_stride + kh * a.key_dim;
            rlhf__read_unit(q[t], x, a.key_dim, WIDTH, a.scale, a.eps);
            rlhf__read_unit(k[t], x + keys, a.key_dim, WIDTH, 1.0f, a.eps);
        }
        if ((int32_t)threadIdx.x < n) {
            const rlhf__delta_gates g =
                rlhf__delta_read_gates<T>(a, r.t0 + t0 + (int32_t)threadIdx.x, h);
            gates[0][threadIdx.x] = rlhf__expf(g.log_g);
            gates[1][threadIdx.x] = g.b;
        }
        __syncthreads();
        for (int32_t t = 0; t < n; t++) {
            const int64_t token = r.t0 + t0 + t;
            const float g = gates[0][t];
            const float v =
                has ? rlhf__get((const T *)a.x + token * a.x_stride + 2 * keys + h * a.value_dim,
                                (uint64_t)c)
                    : 0.0f;
            float u = 0.0f, o = 0.0f;
#pragma unroll
            for (int i = 0; i < EACH; i++)
                u = fmaf(s[i], k[t][i * SPLIT + part], u);
            const float d = gates[1][t] * fmaf(-g, column_sum<SPLIT>(u), v);
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                s[i] = fmaf(k[t][i * SPLIT + part], d, g * s[i]);
                o = fmaf(s[i], q[t][i * SPLIT + part], o);
            }
            o = column_sum<SPLIT>(o);
            if (has && part == 0)
                rlhf__put((T *)a.out + token * a.out_stride + h * a.value_dim, (uint64_t)c, o);
        }
    }
}

// Copies the thread's part of a state. p NULL: zeros.
template <int SPLIT>
static __device__ __forceinline__ void load_state(const rlhf__delta_args &a, const char *p,
                                                  int32_t h, float (&s)[EACH]) {
    const int32_t part = (int32_t)threadIdx.x % SPLIT;
    const int32_t c = (int32_t)(blockIdx.x * (THREADS / SPLIT) + threadIdx.x / SPLIT);
    const float *const from = (const float *)p + (int64_t)h * a.key_dim * a.value_dim;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int32_t k = i * SPLIT + part;
        s[i] = p && c < a.value_dim && k < a.key_dim ? from[(int64_t)k * a.value_dim + c] : 0.0f;
    }
}
template <int SPLIT>
static __device__ __forceinline__ void store_state(const rlhf__delta_args &a, char *p, int32_t h,
                                                   const float (&s)[EACH]) {
    const int32_t part = (int32_t)threadIdx.x % SPLIT;
    const int32_t c = (int32_t)(blockIdx.x * (THREADS / SPLIT) + threadIdx.x / SPLIT);
    float *const to = (float *)p + (int64_t)h * a.key_dim * a.value_dim;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int32_t k = i * SPLIT + part;
        if (c < a.value_dim && k < a.key_dim) to[(int64_t)k * a.value_dim + c] = s[i];
    }
}

template <class T, int SPLIT>
static __global__ void __launch_bounds__(THREADS) delta_rows(rlhf__delta_args a) {
    const int32_t h = (int32_t)blockIdx.y;
    uint32_t i = a.rows.from ? 0 : blockIdx.z;
    if (rlhf__cuda_row_shares(a.rows, i)) return; // processed with the row that it continues
    float s[EACH], prefix[EACH];
    rlhf__cuda_state_row r;
    load_state<SPLIT>(a, NULL, h, prefix);
    do {
        if (!rlhf__cuda_state_row_check(a.rows, i, &r)) continue;
        if (r.np)
            for (int e = 0; e < EACH; e++)
                s[e] = prefix[e];
        else
            load_state<SPLIT>(a, r.from, h, s);
        run_row<T, SPLIT>(a, r, h, s);
        if (r.to) store_state<SPLIT>(a, r.to, h, s);
        if (!a.rows.from && !r.np)
            for (int e = 0; e < EACH; e++)
                prefix[e] = s[e];
    } while (++i < a.rows.n && (a.rows.from || rlhf__cuda_row_shares(a.rows, i)));
}

// ---- the table's functions ----

rlhf_status rlhf__cuda_read_delta(struct rlhf__cuda *cu, const char *op, rlhf_delta *d,
                                  const rlhf_delta *from) {
    RLHF_TRY(rlhf__cuda_copy_in(cu, op, d, sizeof *d, from, RLHF_SIZE_TO(rlhf_delta, dt_bias)));
    RLHF_TRY(rlhf__cuda_check_dtype(cu, op, d->dtype));
    if (d->heads < 1 || d->key_heads < 1 || d->heads % d->key_heads)
        return rlhf__cuda_fail(cu, RLHF_E_INVALID, "%s: key_heads is %d, must divide heads (%d)",
                               op, d->key_heads, d->heads);
    if (d->key_dim < 1 || d->value_dim < 1 || d->key_dim > RLHF__DELTA_DIM_MAX ||
        d->value_dim > RLHF__DELTA_DIM_MAX)
        return rlhf__cuda_fail(cu, RLHF_E_UNSUPPORTED,
                               "%s: key_dim is %d and value_dim %d, supported are 1 to %d; the "
                               "backend 'reference' is slow but supports every width",
                               op, d->key_dim, d->value_dim, (int)RLHF__DELTA_DIM_MAX);
    const int64_t out = (int64_t)d->heads * d->value_dim;
    if (d->x_stride < 2 * (int64_t)d->key_heads * d->key_dim + out || d->gate_stride < d->heads ||
        d->out_stride < out)
        return rlhf__cuda_fail(cu, RLHF_E_INVALID,
                               "%s: %d heads (%d of keys) of %d and %d do not fit the strides "
                               "%lld, %lld (gates) and %lld (out)",
                               op, d->heads, d->key_heads, d->key_dim, d->value_dim,
                               (long long)d->x_stride, (long long)d->gate_stride,
                               (long long)d->out_stride);
    return RLHF_OK;
}

rlhf__delta_args rlhf__cuda_delta_args(const rlhf_delta &d, rlhf_dev x, rlhf_dev beta,
                                       rlhf_dev alpha) {
    rlhf__delta_args a = {};
    a.x = rlhf__cuda_mem(x);
    a.beta = rlhf__cuda_mem(beta);
    a.alpha = rlhf__cuda_mem(alpha);
    a.a_log = rlhf__cuda_f32(d.a_log);
    a.dt_bias = rlhf__cuda_f32(d.dt_bias);
    a.x_stride = d.x_stride, a.gate_stride = d.gate_stride, a.out_stride = d.out_stride;
    a.heads = d.heads, a.key_heads = d.key_heads;
    a.key_dim = d.key_dim, a.value_dim = d.value_dim;
    a.scale = (float)d.scale, a.eps = (float)d.eps;
    return a;
}

template <class T> static rlhf_status run_delta(struct rlhf__cuda *cu, const rlhf__delta_args &a) {
    const uint32_t split = a.key_dim <= EACH ? 1 : a.key_dim <= 2 * EACH ? 2 : 4;
    const uint32_t columns = THREADS / split;
    const dim3 grid(((uint32_t)a.value_dim + columns - 1) / columns, (uint32_t)a.heads,
                    a.rows.from ? 1 : a.rows.n);
    RUN(cu,
        (split == 1   ? delta_rows<T, 1>
         : split == 2 ? delta_rows<T, 2>
                      : delta_rows<T, 4>),
        grid, dim3(THREADS), 0, a);
    return rlhf__cuda_done(cu);
}

static rlhf_status delta(void *ctx, const rlhf_delta *from, const rlhf_ragged *rows,
                         const rlhf_states *states, rlhf_dev out, rlhf_dev x, rlhf_dev beta,
                         rlhf_dev alpha) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    rlhf_delta d;
    rlhf__cuda_states s;
    RLHF_TRY(rlhf__cuda_read_delta(cu, "delta", &d, from));
    RLHF_TRY(rlhf__cuda_read_states(cu, "delta", &s, rows, states,
                                    (uint64_t)d.heads * (uint64_t)d.key_dim *
                                        (uint64_t)d.value_dim * sizeof(float)));
    if (!s.n) return RLHF_OK;
    rlhf__delta_args a = rlhf__cuda_delta_args(d, x, beta, alpha);
    a.rows = s;
    a.out = rlhf__cuda_mem(out);
    if (s.total)
        rlhf__cuda_wrote(cu, a.out,
                         ((uint64_t)(s.total - 1) * (uint64_t)d.out_stride +
                          (uint64_t)d.heads * (uint64_t)d.value_dim) *
                             rlhf_dtype_size(d.dtype));
    return d.dtype == RLHF_BF16 ? run_delta<rlhf__bf16>(cu, a) : run_delta<float>(cu, a);
}

rlhf_status rlhf__cuda_supports_delta(struct rlhf__cuda *cu, const char *op,
                                      const rlhf_delta *from) {
    rlhf_delta d;
    return rlhf__cuda_read_delta(cu, op, &d, from);
}

void rlhf__cuda_fill_delta(rlhf_compute *t) { t->delta = delta; }
