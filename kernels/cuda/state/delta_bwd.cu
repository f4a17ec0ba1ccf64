// delta_bwd.cu: the derivative of the gated delta rule in the training layout.
//
// The formulas are those of kernels/cpu/state/hot_delta_bwd.c: C = 16 tokens are computed together,
// as products of small matrices, and states are kept every SPAN tokens. A block processes a key
// head in a part of the rows. Its matrices are in a workspace. All threads of a block call the
// functions below together; each function ends with a barrier.
#include "machine/table.h"
#include "row/act.h"
#include "state/delta.h"

enum { THREADS = 128, C = 16, SPAN = 64, PARTS = 4 };

namespace {
// The matrices of a block. K and V are the widths of keys and values, padded to multiples of 16.
struct work {
    float *q, *k, *kt;                       // [C, K], [C, K], [K, C]: normalized queries and keys
    float *v, *e, *d, *grads;                // [C, V], and [2 C, V]: dout, then dv
    float *decay, *kk;                       // [C, C]
    float *from, *b, *z, *log_g, *db, *dlog; // [C]
    float *r;                                // [4]: sums of D * S
    float *s[SPAN / C + 1];                  // [K, V]: states between chunks
    float *turned, *grad_turned;             // [V, K]
    float *big[2], *wide;                    // [C, max(K, V)], [max(K, V), 2 C]
    float *f, *dt;                           // [C, V], [V, C]
    float *small[3];                         // [C, C]
    float *grad;                             // [K, V]: D
    float *prefix, *shared; // [group, K, V]: last state of a shared row, and its gradient
    float *dqk;             // [max_q, 2, K]
    float *kept;            // [spans, K, V]
    uint32_t K, V;
};

struct bwd_args {
    rlhf__delta_args a;
    float *ws, *sums; // sums: [PARTS, heads, 2]
    uint64_t stride;  // floats of a block
    uint32_t each;    // rows of a part
};
} // namespace

#define ALL(i, n) for (uint32_t i = threadIdx.x; i < (uint32_t)(n); i += THREADS)

// The number of floats of a block; with p, also sets the pointers.
static __host__ __device__ inline uint64_t
lay_out(work *w, float *p, uint32_t key_dim, uint32_t value_dim, uint32_t group, uint32_t max_q) {
    const uint32_t K = (key_dim + C - 1) / C * C, V = (value_dim + C - 1) / C * C;
    const uint64_t most = K > V ? K : V, state = (uint64_t)K * V;
    float **const to[] = {
        &w->q,        &w->k,        &w->kt,   &w->v,      &w->e,      &w->d,
        &w->grads,    &w->decay,    &w->kk,   &w->from,   &w->b,      &w->z,
        &w->log_g,    &w->db,       &w->dlog, &w->r,      &w->turned, &w->grad_turned,
        &w->big[0],   &w->big[1],   &w->wide, &w->f,      &w->dt,     &w->small[0],
        &w->small[1], &w->small[2], &w->grad, &w->prefix, &w->shared, &w->dqk,
        &w->s[0],     &w->s[1],     &w->s[2], &w->s[3],   &w->s[4],   &w->kept};
    const uint64_t sizes[] = {C * K,
                              C * K,
                              C * K,
                              C * V,
                              C * V,
                              C * V,
                              2 * C * V,
                              C * C,
                              C * C,
                              C,
                              C,
                              C,
                              C,
                              C,
                              C,
                              C,
                              state,
                              state,
                              C * most,
                              C * most,
                              2 * C * most,
                              C * V,
                              C * V,
                              C * C,
                              C * C,
                              C * C,
                              state,
                              group * state,
                              group * state,
                              (uint64_t)max_q * 2 * K,
                              state,
                              state,
                              state,
                              state,
                              state,
                              (uint64_t)(max_q + SPAN - 1) / SPAN * state};
    uint64_t at = 0;
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        *to[i] = p + at;
        at += sizes[i];
    }
    w->K = K;
    w->V = V;
    return at;
}

// out[rows, width] = keep * out + A[rows, inner] B[inner, width], with A(i, j) = a[i * row + j *
// step]. rows is a multiple of 4. The terms of an element are added in ascending order.
static __device__ void mm(float *out, uint32_t rows, uint32_t width, const float *a, uint32_t row,
                          uint32_t step, const float *b, uint32_t inner, float keep) {
    ALL(e, rows / 4 * width) {
        const uint32_t r = e / width * 4, c = e % width;
        float s[4];
        for (int j = 0; j < 4; j++)
            s[j] = keep != 0.0f ? keep * out[(uint64_t)(r + j) * width + c] : 0.0f;
        for (uint32_t i = 0; i < inner; i++) {
            const float y = b[(uint64_t)i * width + c];
            for (int j = 0; j < 4; j++)
                s[j] = fmaf(a[(uint64_t)(r + j) * row + (uint64_t)i * step], y, s[j]);
        }
        for (int j = 0; j < 4; j++)
            out[(uint64_t)(r + j) * width + c] = s[j];
    }
    __syncthreads();
}

// to[columns, rows] = the transpose of from[rows, columns]
static __device__ void turn(float *to, const float *from, uint32_t rows, uint32_t columns) {
    ALL(e, rows * columns) to[(uint64_t)(e % columns) * rows + e / columns] = from[e];
    __syncthreads();
}

// to[C, width] = sign * factor[t] * from[t, :]
static __device__ void scale_rows(float *to, const float *from, const float *factor, float sign,
                                  uint32_t width) {
    ALL(e, C * width) to[e] = from[e] * (sign * factor[e / width]);
    __syncthreads();
}

// As in hot_delta_bwd.c: x[t] -= sum of a[t, i] y[i] over the tokens before (or after) t; y = b x.
static __device__ void solve(float *x, float *y, const float *a, const float *b, bool down,
                             uint32_t width) {
    ALL(c, width) for (uint32_t n = 0; n < C; n++) {
        const uint32_t t = down ? C - 1 - n : n;
        float s = x[t * width + c];
        for (uint32_t j = 0; j < n; j++) {
            const uint32_t i = down ? C - 1 - j : j;
            s = fmaf(-a[t * C + i], y[i * width + c], s);
        }
        x[t * width + c] = s;
        y[t * width + c] = b[t] * s;
    }
    __syncthreads();
}

// The dot product of n numbers, computed by a whole warp.
static __device__ __forceinline__ float warp_dot(const float *x, const float *y, uint32_t n) {
    float s = 0.0f;
    for (uint32_t i = threadIdx.x % 32; i < n; i += 32)
        s = fmaf(x[i], y[i], s);
    return rlhf__warp_sum(s);
}

// The sum of D * S, in w.r[slot].
static __device__ void state_sum(const work &w, const float *s, uint32_t slot) {
    SHARED(float[THREADS / 32], of_warps);
    const uint32_t warp = threadIdx.x / 32, rows = w.K / (THREADS / 32);
    const float sum =
        warp_dot(w.grad + (uint64_t)warp * rows * w.V, s + (uint64_t)warp * rows * w.V, rows * w.V);
    if (threadIdx.x % 32 == 0) of_warps[warp] = sum;
    __syncthreads();
    if (threadIdx.x == 0) w.r[slot] = of_warps[0] + of_warps[1] + of_warps[2] + of_warps[3];
    __syncthreads();
}

// Reads the tokens t0 .. t0+n-1 of a head. The tokens after them have zeros.
template <class T>
static __device__ void read_chunk(const rlhf__delta_args &a, const work &w, int32_t h, int64_t t0,
                                  uint32_t n) {
    const uint32_t warp = threadIdx.x / 32, vd = (uint32_t)a.value_dim;
    const int32_t keys = a.key_heads * a.key_dim, kh = h / (a.heads / a.key_heads);
    for (uint32_t t = warp; t < C; t += THREADS / 32) {
        const T *const x = (const T *)a.x + (t0 + (t < n ? t : 0)) * a.x_stride + kh * a.key_dim;
        rlhf__read_unit(w.q + t * w.K, x, a.key_dim, (int32_t)w.K, t < n ? a.scale : 0.0f, a.eps);
        rlhf__read_unit(w.k + t * w.K, x + keys, a.key_dim, (int32_t)w.K, t < n ? 1.0f : 0.0f,
                        a.eps);
    }
    ALL(e, C * w.V) {
        const uint32_t t = e / w.V, c = e % w.V;
        const bool has = t < n && c < vd;
        w.v[e] =
            has ? rlhf__get((const T *)a.x + (t0 + t) * a.x_stride + 2 * keys + h * a.value_dim, c)
                : 0.0f;
        w.grads[e] =
            has ? rlhf__get((const T *)a.dout + (t0 + t) * a.out_stride + h * a.value_dim, c)
                : 0.0f;
    }
    if (threadIdx.x < C) {
        const uint32_t t = threadIdx.x;
        rlhf__delta_gates g = {0.0f, 0.0f, 0.0f};
        if (t < n) g = rlhf__delta_read_gates<T>(a, t0 + t, h);
        w.log_g[t] = g.log_g, w.b[t] = g.b, w.z[t] = g.z;
    }
    __syncthreads();
    ALL(e, C * C) {
        float sum[2] = {0.0f, 0.0f};
        for (uint32_t t = 0; t < C; t++) {
            if (t <= e / C) sum[0] += w.log_g[t];
            if (t <= e % C) sum[1] += w.log_g[t];
        }
        w.decay[e] = e % C <= e / C ? rlhf__expf(sum[0] - sum[1]) : 0.0f;
        if (e % C == 0) w.from[e / C] = rlhf__expf(sum[0]);
    }
    turn(w.kt, w.k, C, w.K);
}

// Computes e and d of a chunk; with `to`, also the state after it. `to` may be s.
static __device__ void chunk_forward(const work &w, const float *s, float *to) {
    scale_rows(w.big[0], w.k, w.from, -1.0f, w.K);
    ALL(e, C * w.V) w.e[e] = w.v[e];
    __syncthreads();
    mm(w.e, C, w.V, w.big[0], w.K, 1, s, w.K, 1.0f);
    mm(w.kk, C, C, w.k, w.K, 1, w.kt, w.K, 0.0f);
    ALL(e, C * C) w.small[0][e] = w.kk[e] * w.decay[e];
    __syncthreads();
    solve(w.e, w.d, w.small[0], w.b, false, w.V);
    if (!to) return;
    ALL(e, w.K * C) w.wide[e] = w.kt[e] * w.decay[(C - 1) * C + e % C];
    if (to != s) ALL(e, w.K * w.V) to[e] = s[e];
    __syncthreads();
    mm(to, w.K, w.V, w.wide, C, 1, w.d, C, w.from[C - 1]);
}

// Computes f and, in the second half of w.grads, dv.
static __device__ void chunk_dv(const work &w) {
    scale_rows(w.big[0], w.k, w.decay + (C - 1) * C, 1.0f, w.K);
    mm(w.f, C, w.V, w.big[0], w.K, 1, w.grad, w.K, 0.0f);
    mm(w.small[0], C, C, w.q, w.K, 1, w.kt, w.K, 0.0f);
    ALL(e, C * C) w.small[1][e % C * C + e / C] = w.small[0][e] * w.decay[e];
    __syncthreads();
    mm(w.f, C, w.V, w.small[1], C, 1, w.grads, C, 1.0f);
    ALL(e, C * C) w.small[1][e % C * C + e / C] = w.kk[e] * w.decay[e];
    __syncthreads();
    solve(w.f, w.grads + C * w.V, w.small[1], w.b, true, w.V);
}

// small[0] = decay * (dout . d); small[2] = minus decay * (dv . d) without the diagonal, plus its
// transpose.
static __device__ void chunk_scores(const work &w) {
    turn(w.dt, w.d, C, w.V);
    mm(w.small[0], C, C, w.grads, w.V, 1, w.dt, w.V, 0.0f);
    mm(w.small[1], C, C, w.grads + C * w.V, w.V, 1, w.dt, w.V, 0.0f);
    ALL(e, C * C) {
        const uint32_t t = e / C, i = e % C, high = t > i ? t : i, low = t > i ? i : t;
        w.small[0][e] *= w.decay[e];
        w.small[2][e] = t == i ? 0.0f : -(w.small[1][high * C + low] * w.decay[high * C + low]);
    }
    __syncthreads();
}

// Computes dq in big[0] and dk in big[1]; s is the state before the chunk.
static __device__ void chunk_dqk(const work &w, const float *s) {
    turn(w.turned, s, w.K, w.V);
    turn(w.grad_turned, w.grad, w.K, w.V);
    scale_rows(w.wide, w.grads, w.from, 1.0f, w.V);
    mm(w.big[0], C, w.K, w.wide, w.V, 1, w.turned, w.V, 0.0f);
    mm(w.big[0], C, w.K, w.small[0], C, 1, w.k, C, 1.0f);
    scale_rows(w.wide, w.d, w.decay + (C - 1) * C, 1.0f, w.V);
    mm(w.big[1], C, w.K, w.wide, w.V, 1, w.grad_turned, w.V, 0.0f);
    scale_rows(w.wide, w.grads + C * w.V, w.from, -1.0f, w.V);
    mm(w.big[1], C, w.K, w.wide, w.V, 1, w.turned, w.V, 1.0f);
    mm(w.big[1], C, w.K, w.small[0], 1, C, w.q, C, 1.0f); // its transpose
    mm(w.big[1], C, w.K, w.small[2], C, 1, w.k, C, 1.0f);
}

// w.grad becomes the gradient of the state before the chunk.
static __device__ void chunk_grad(const work &w) {
    ALL(e, w.K * 2 * C) {
        const uint32_t k = e / (2 * C), t = e % C;
        w.wide[e] =
            e % (2 * C) < C ? w.q[t * w.K + k] * w.from[t] : -(w.k[t * w.K + k] * w.from[t]);
    }
    __syncthreads();
    mm(w.grad, w.K, w.V, w.wide, 2 * C, 1, w.grads, 2 * C, w.from[C - 1]);
}

// Stores the gradients of the gates. w.r[0] and w.r[1]: the sums of D * S after and before the
// chunk; sums: += the gradients of a_log and dt_bias.
template <class T>
static __device__ void put_gates(const rlhf__delta_args &a, const work &w, int32_t h, int64_t t0,
                                 uint32_t n, float *sums) {
    const float *const dv = w.grads + C * w.V;
    for (uint32_t t = threadIdx.x / 32; t < n; t += THREADS / 32) {
        const float qq = warp_dot(w.q + t * w.K, w.big[0] + t * w.K, w.K);
        const float df = warp_dot(w.d + t * w.V, w.f + t * w.V, w.V);
        const float vv = warp_dot(dv + t * w.V, w.v + t * w.V, w.V);
        const float ve = warp_dot(dv + t * w.V, w.e + t * w.V, w.V);
        const float db = warp_dot(w.f + t * w.V, w.e + t * w.V, w.V);
        if (threadIdx.x % 32 == 0) w.db[t] = db, w.dlog[t] = qq - df - (vv - ve);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        float r = w.r[0];
        for (uint32_t t = n; t-- > 0;) {
            r += w.dlog[t];
            w.dlog[t] = t ? r : w.r[1];
        }
        for (uint32_t t = 0; t < n; t++) {
            float rest;
            const float dz = -(rlhf__expf(a.a_log[h]) * rlhf__sigmoidf(w.z[t], &rest)) * w.dlog[t];
            const uint64_t at = (uint64_t)((t0 + t) * a.gate_stride + h);
            rlhf__put((T *)a.dalpha, at, dz);
            rlhf__put((T *)a.dbeta, at, w.db[t] * (w.b[t] * (1.0f - w.b[t])));
            sums[0] += w.log_g[t] * w.dlog[t];
            sums[1] += dz;
        }
        w.r[0] = w.r[1];
    }
    __syncthreads();
}

// Stores dv, and adds dq and dk to w.dqk.
template <class T>
static __device__ void put_rows(const rlhf__delta_args &a, const work &w, int32_t h, int64_t t0,
                                uint32_t row, uint32_t n, bool first) {
    const int32_t keys = a.key_heads * a.key_dim;
    ALL(e, n * (uint32_t)a.value_dim) {
        const uint32_t t = e / (uint32_t)a.value_dim, c = e % (uint32_t)a.value_dim;
        rlhf__put((T *)a.dx + (t0 + t) * a.x_stride + 2 * keys + h * a.value_dim, c,
                  w.grads[(C + t) * w.V + c]);
    }
    ALL(e, n * w.K) {
        const uint32_t t = e / w.K, i = e % w.K;
        float *const to = w.dqk + (uint64_t)(row + t) * 2 * w.K + i;
        to[0] = first ? w.big[0][e] : to[0] + w.big[0][e];
        to[w.K] = first ? w.big[1][e] : to[w.K] + w.big[1][e];
    }
    __syncthreads();
}

// dx = scale (dy - y (y . dy)) / |x|, y = x / |x|, computed by a whole warp.
template <class T>
static __device__ __forceinline__ void put_unit(T *dx, const T *x, const float *dy, int32_t n,
                                                float scale, float eps) {
    const float inv = rlhf__inverse_length(x, n, eps);
    float sum = 0.0f;
    for (int32_t i = (int32_t)threadIdx.x % 32; i < n; i += 32)
        sum = fmaf(rlhf__get(x, (uint64_t)i) * inv, dy[i], sum);
    const float along = rlhf__warp_sum(sum);
    for (int32_t i = (int32_t)threadIdx.x % 32; i < n; i += 32)
        rlhf__put(dx, (uint64_t)i,
                  scale * inv * fmaf(-(rlhf__get(x, (uint64_t)i) * inv), along, dy[i]));
}

// Head h of a row, whose first state is w.s[0] and the gradient of its last one w.grad.
template <class T>
static __device__ void row_head(const rlhf__delta_args &a, const work &w,
                                const rlhf__cuda_state_row &r, int32_t h, bool first, float *sums) {
    const uint32_t n = (uint32_t)r.n, spans = (n + SPAN - 1) / SPAN;
    const uint64_t state = (uint64_t)w.K * w.V;
    for (uint32_t t = 0; t < n; t += C) {
        if (t % SPAN == 0) {
            ALL(e, state) w.kept[t / SPAN * state + e] = w.s[0][e];
            __syncthreads();
        }
        read_chunk<T>(a, w, h, r.t0 + t, n - t < C ? n - t : (uint32_t)C);
        chunk_forward(w, w.s[0], w.s[0]);
    }
    state_sum(w, w.s[0], 0);
    for (uint32_t i = spans; i-- > 0;) {
        const uint32_t t0 = i * SPAN, m = n - t0 < SPAN ? n - t0 : (uint32_t)SPAN,
                       chunks = (m + C - 1) / C;
        ALL(e, state) w.s[0][e] = w.kept[i * state + e];
        __syncthreads();
        for (uint32_t j = 0; j + 1 < chunks; j++) {
            read_chunk<T>(a, w, h, r.t0 + t0 + j * C, C);
            chunk_forward(w, w.s[j], w.s[j + 1]);
        }
        for (uint32_t j = chunks; j-- > 0;) {
            const uint32_t t = t0 + j * C, count = n - t < C ? n - t : (uint32_t)C;
            read_chunk<T>(a, w, h, r.t0 + t, count);
            chunk_forward(w, w.s[j], NULL);
            chunk_dv(w);
            chunk_scores(w);
            chunk_dqk(w, w.s[j]);
            chunk_grad(w);
            state_sum(w, w.s[j], 1);
            put_gates<T>(a, w, h, r.t0 + t, count, sums);
            put_rows<T>(a, w, h, r.t0 + t, t, count, first);
        }
    }
}

// A row in all heads of the group. `shared`: its last states have the gradients in w.shared.
template <class T>
static __device__ void row_bwd(const rlhf__delta_args &a, const work &w,
                               const rlhf__cuda_state_row &r, int32_t kh, bool shared,
                               float *sums) {
    const int32_t group = a.heads / a.key_heads, keys = a.key_heads * a.key_dim;
    const uint64_t state = (uint64_t)w.K * w.V;
    for (int32_t j = 0; j < group; j++) {
        ALL(e, state) {
            w.s[0][e] = r.np ? w.prefix[j * state + e] : 0.0f;
            w.grad[e] = shared ? w.shared[j * state + e] : 0.0f;
        }
        __syncthreads();
        row_head<T>(a, w, r, kh * group + j, j == 0, sums + 2 * (kh * group + j));
        if (r.np) ALL(e, state) w.shared[j * state + e] += w.grad[e];
        __syncthreads();
    }
    for (int32_t t = (int32_t)threadIdx.x / 32; t < r.n; t += THREADS / 32) {
        const int64_t at = (r.t0 + t) * a.x_stride + kh * a.key_dim;
        const float *const dy = w.dqk + (uint64_t)t * 2 * w.K;
        put_unit((T *)a.dx + at, (const T *)a.x + at, dy, a.key_dim, a.scale, a.eps);
        put_unit((T *)a.dx + at + keys, (const T *)a.x + at + keys, dy + w.K, a.key_dim, 1.0f,
                 a.eps);
    }
    __syncthreads();
}

// The last states of a row that others share, of all heads of the group.
template <class T>
static __device__ void last_states(const rlhf__delta_args &a, const work &w,
                                   const rlhf__cuda_state_row &r, int32_t kh) {
    const int32_t group = a.heads / a.key_heads;
    const uint64_t state = (uint64_t)w.K * w.V;
    ALL(e, (uint64_t)group * state) w.shared[e] = w.prefix[e] = 0.0f;
    __syncthreads();
    for (int32_t j = 0; j < group; j++)
        for (int32_t t = 0; t < r.n; t += C) {
            read_chunk<T>(a, w, kh * group + j, r.t0 + t,
                          (uint32_t)(r.n - t < C ? r.n - t : (int32_t)C));
            chunk_forward(w, w.prefix + j * state, w.prefix + j * state);
        }
}

template <class T> static __global__ void __launch_bounds__(THREADS) delta_bwd_rows(bwd_args b) {
    const rlhf__delta_args &a = b.a;
    const int32_t kh = (int32_t)blockIdx.x;
    const uint32_t part = blockIdx.y,
                   end = (part + 1) * b.each < a.rows.n ? (part + 1) * b.each : a.rows.n;
    float *const sums = b.sums + (uint64_t)part * 2 * (uint32_t)a.heads;
    work w;
    rlhf__cuda_state_row r, head;
    lay_out(&w, b.ws + ((uint64_t)part * gridDim.x + blockIdx.x) * b.stride, (uint32_t)a.key_dim,
            (uint32_t)a.value_dim, (uint32_t)(a.heads / a.key_heads), a.rows.max_q);
    for (uint32_t i = part * b.each; i < end; i++) {
        if (rlhf__cuda_row_shares(a.rows, i)) continue;
        if (!rlhf__cuda_state_row_check(a.rows, i, &head)) continue;
        const bool shared = i + 1 < a.rows.n && rlhf__cuda_row_shares(a.rows, i + 1);
        if (shared) last_states<T>(a, w, head, kh);
        for (uint32_t j = i + 1; j < a.rows.n && rlhf__cuda_row_shares(a.rows, j); j++)
            if (rlhf__cuda_state_row_check(a.rows, j, &r)) row_bwd<T>(a, w, r, kh, false, sums);
        row_bwd<T>(a, w, head, kh, shared, sums);
    }
}

// Adds the parts in order.
static __global__ void __launch_bounds__(THREADS)
    delta_sums(float *da_log, float *ddt_bias, const float *sums, uint32_t parts, uint32_t heads) {
    const uint32_t h = blockIdx.x * THREADS + threadIdx.x;
    if (h >= heads) return;
    for (uint32_t p = 0; p < parts; p++) {
        if (da_log) da_log[h] += sums[2 * (p * heads + h)];
        if (ddt_bias) ddt_bias[h] += sums[2 * (p * heads + h) + 1];
    }
}

// ---- the table's function ----

static uint32_t parts_of(uint32_t rows, uint32_t *each) {
    *each = (rows + PARTS - 1) / PARTS;
    return (rows + *each - 1) / *each;
}

static uint64_t block_floats(const rlhf_delta &d, uint32_t max_q) {
    work w;
    return lay_out(&w, NULL, (uint32_t)d.key_dim, (uint32_t)d.value_dim,
                   (uint32_t)(d.heads / d.key_heads), max_q);
}

static uint64_t sums_floats(const rlhf_delta &d) { return (uint64_t)PARTS * 2 * (uint64_t)d.heads; }

static uint64_t bwd_bytes(const rlhf_delta &d, uint32_t rows, uint32_t max_q) {
    uint32_t each;
    return ((uint64_t)parts_of(rows, &each) * (uint64_t)d.key_heads * block_floats(d, max_q) +
            sums_floats(d)) *
           sizeof(float);
}

static rlhf_status delta_bwd(void *ctx, const rlhf_delta *from, const rlhf_ragged *rows,
                             rlhf_dev dx, rlhf_dev dbeta, rlhf_dev dalpha, rlhf_dev da_log,
                             rlhf_dev ddt_bias, rlhf_dev dout, rlhf_dev x, rlhf_dev beta,
                             rlhf_dev alpha) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    rlhf_delta d;
    rlhf__cuda_states s;
    void *ws = NULL;
    RLHF_TRY(rlhf__cuda_read_delta(cu, "delta_bwd", &d, from));
    RLHF_TRY(rlhf__cuda_read_states(cu, "delta_bwd", &s, rows, NULL, 0));
    if (!s.n || !s.total) return RLHF_OK;
    RLHF_TRY(rlhf__cuda_workspace(cu, RLHF__CUDA_WS_ATTN, bwd_bytes(d, s.n, s.max_q), &ws));
    bwd_args b = {};
    b.a = rlhf__cuda_delta_args(d, x, beta, alpha);
    b.a.rows = s;
    b.a.dout = rlhf__cuda_mem(dout);
    b.a.dx = rlhf__cuda_mem(dx);
    b.a.dbeta = rlhf__cuda_mem(dbeta);
    b.a.dalpha = rlhf__cuda_mem(dalpha);
    b.sums = (float *)ws;
    b.ws = b.sums + sums_floats(d);
    b.stride = block_floats(d, s.max_q);
    const uint32_t parts = parts_of(s.n, &b.each), heads = (uint32_t)d.heads;
    const uint64_t size = rlhf_dtype_size(d.dtype), last = s.total - 1;
    const uint64_t width =
        2 * (uint64_t)d.key_heads * (uint64_t)d.key_dim + (uint64_t)d.heads * (uint64_t)d.value_dim;
    rlhf__cuda_wrote(cu, b.a.dx, (last * (uint64_t)d.x_stride + width) * size);
    rlhf__cuda_wrote(cu, b.a.dbeta, (last * (uint64_t)d.gate_stride + heads) * size);
    rlhf__cuda_wrote(cu, b.a.dalpha, (last * (uint64_t)d.gate_stride + heads) * size);
    RLHF_TRY(rlhf__cuda_check(
        cu, "cudaMemset", cudaMemsetAsync(b.sums, 0, sums_floats(d) * sizeof(float), cu->stream)));
    RUN(cu, (d.dtype == RLHF_BF16 ? delta_bwd_rows<rlhf__bf16> : delta_bwd_rows<float>),
        dim3((uint32_t)d.key_heads, parts), dim3(THREADS), 0, b);
    float *const da = rlhf__cuda_f32(da_log), *const dt = rlhf__cuda_f32(ddt_bias);
    if (da) rlhf__cuda_wrote(cu, da, heads * sizeof *da);
    if (dt) rlhf__cuda_wrote(cu, dt, heads * sizeof *dt);
    RUN(cu, delta_sums, dim3((heads + THREADS - 1) / THREADS), dim3(THREADS), 0, da, dt, b.sums,
        parts, heads);
    return rlhf__cuda_done(cu);
}

void rlhf__cuda_needs_delta_bwd(struct rlhf__cuda *cu, const rlhf_call *c,
                                struct rlhf__cuda_needs *n) {
    rlhf_delta d;
    rlhf_ragged r;
    if (c->op != RLHF_COMPUTE_OP(delta_bwd) || !c->delta || !c->ragged) return;
    if (rlhf__cuda_read_delta(cu, "workspace_bytes", &d, c->delta) < 0) return;
    if (rlhf_copy_in(&r, sizeof r, c->ragged, RLHF_SIZE_TO(rlhf_ragged, prefix_len)) < 0) return;
    if (r.n) rlhf__cuda_need(n, RLHF__CUDA_WS_ATTN, bwd_bytes(d, r.n, r.max_q));
}

void rlhf__cuda_fill_delta_bwd(rlhf_compute *t) { t->delta_bwd = delta_bwd; }
