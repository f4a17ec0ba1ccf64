// optim.cu: AdamW (Loshchilov and Hutter 2019) and the sum of squares, for one tensor, or for many
// in one launch.
//
// A sum of squares is computed in f64, in chunks of 16384 elements. A fixed tree adds the sums of
// the threads in a chunk, and another tree adds the chunks of a tensor. The tensors are then added
// in order. So the result does not depend on the card or on the rest of the list.
#include "machine/table.h"
#include "row/lanes.h"

#include <math.h>
#include <stdlib.h>

enum { N = 4, THREADS = 256, SUM_CHUNK = 16384, STEP_CHUNK = 4096 };

namespace {
// One tensor of a list. If w is NULL, an optimizer step only zeroes g.
struct item {
    float *w, *g, *m, *v;
    uint64_t n;
    uint64_t chunk; // number of its first chunk, counted through the whole list
    float decay, step;
};
} // namespace

static uint64_t chunks_of(uint64_t n, uint64_t chunk) { return (n + chunk - 1) / chunk; }

static uint64_t list_bytes(const rlhf_tensors *t) { return (uint64_t)t->n * sizeof(item); }

// The size in bytes of the sums of n tensors and of all their chunks.
static uint64_t sums_bytes(uint64_t n, uint64_t chunks) { return (n + chunks) * sizeof(double); }

// Returns the item that contains chunk c of the list. This is the last item that starts at or
// before chunk c. (An empty item starts at the same chunk as the next one.)
static __device__ __forceinline__ uint32_t item_of(const item *list, uint32_t n, uint64_t c) {
    uint32_t low = 0, high = n;
    while (high - low > 1) {
        const uint32_t mid = low + (high - low) / 2;
        if (list[mid].chunk <= c)
            low = mid;
        else
            high = mid;
    }
    return low;
}

// ---- sums of squares ----

// Thread 0 gets the sum of v over the block. Each warp computes its sum by halving. Then the warps
// are added in order.
static __device__ __forceinline__ double block_sum(double v) {
    SHARED(double[THREADS / 32], of_warps);
    v = rlhf__warp_sum(v);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = v;
    __syncthreads();
    double sum = of_warps[0];
    for (int w = 1; w < THREADS / 32; w++)
        sum += of_warps[w];
    return sum;
}

template <bool WIDE>
static __device__ __forceinline__ double chunk_sum(const float *x, uint64_t at, uint64_t n) {
    const uint64_t end = at + SUM_CHUNK < n ? at + SUM_CHUNK : n;
    double sum = 0.0;
    float v[N];
#pragma unroll 4
    for (uint64_t i = at + threadIdx.x * N; i < end; i += THREADS * N) {
        rlhf__load<WIDE>(v, x, i, end);
        for (int j = 0; j < N; j++)
            sum += (double)v[j] * (double)v[j];
    }
    return sum;
}

static __device__ __forceinline__ double chunk_sum_of(const float *x, uint64_t at, uint64_t n) {
    return (uintptr_t)x % sizeof(float4) ? chunk_sum<false>(x, at, n) : chunk_sum<true>(x, at, n);
}

// part[b] = the sum of chunk b, for one tensor or for a list.
static __global__ void __launch_bounds__(THREADS)
    sumsq_chunks(double *part, const float *x, uint64_t n) {
    const double sum = block_sum(chunk_sum_of(x, (uint64_t)blockIdx.x * SUM_CHUNK, n));
    if (threadIdx.x == 0) part[blockIdx.x] = sum;
}
static __global__ void __launch_bounds__(THREADS)
    sumsq_list_chunks(double *part, const item *list, uint32_t items) {
    const item *const it = list + item_of(list, items, blockIdx.x);
    const uint64_t at = (blockIdx.x - it->chunk) * SUM_CHUNK;
    const double sum = block_sum(chunk_sum_of(it->g, at, it->n));
    if (threadIdx.x == 0) part[blockIdx.x] = sum;
}

// *out = the sum of n parts, for one tensor or for each tensor of a list. One block does this.
static __device__ __forceinline__ void add_parts(double *out, const double *part, uint64_t n) {
    double sum = 0.0;
    for (uint64_t i = threadIdx.x; i < n; i += THREADS)
        sum += part[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) *out = sum;
}
static __global__ void __launch_bounds__(THREADS)
    sumsq_add(double *out, const double *part, uint64_t n) {
    add_parts(out, part, n);
}
static __global__ void __launch_bounds__(THREADS)
    sumsq_list_add(double *out, const double *part, const item *list) {
    const item *const it = list + blockIdx.x;
    add_parts(out + blockIdx.x, part + it->chunk, (it->n + SUM_CHUNK - 1) / SUM_CHUNK);
}

// One thread adds the sums of the tensors in order, and computes the values that depend on the
// total.
static __global__ void __launch_bounds__(32)
    clip_of(rlhf_clip *clip, const double *of_tensor, uint32_t n, double max_norm, int32_t skip) {
    if (threadIdx.x) return;
    double sum = 0.0;
#pragma unroll 8
    for (uint32_t i = 0; i < n; i++)
        sum += of_tensor[i];
    const double norm = sqrt(sum);
    const bool finite = norm - norm == 0.0;
    clip->sumsq = sum;
    clip->norm = norm;
    clip->scale = max_norm > 0.0 && norm > max_norm ? max_norm / norm : 1.0;
    clip->skip = skip || !finite;
    clip->reserved = 0;
}

static rlhf_status sumsq(void *ctx, rlhf_dev x, uint64_t n, double *host_out) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    const uint64_t chunks = chunks_of(n, SUM_CHUNK);
    *host_out = 0.0;
    if (!n) return RLHF_OK;
    void *ws = NULL;
    RLHF_TRY(rlhf__cuda_workspace(cu, RLHF__CUDA_WS_PARTIAL, sums_bytes(1, chunks), &ws));
    double *const sum = (double *)ws, *const part = sum + 1;
    RUN(cu, sumsq_chunks, dim3((unsigned)chunks), dim3(THREADS), 0, part, rlhf__cuda_f32(x), n);
    RUN(cu, sumsq_add, dim3(1), dim3(THREADS), 0, sum, part, chunks);
    return cu->table.download(cu, host_out, rlhf__cuda_dev(sum), sizeof *host_out);
}

// ---- AdamW ----

namespace {
// The constants of a step, as in the CPU backend. With ci = 1 - bi^t, the step is
//   torch: lr (m / c1) / (sqrt(v / c2) + eps);  tf1: lr sqrt(c2) / c1 m / (sqrt(v) + eps).
struct adam {
    double grad_scale;
    float beta1, beta1_rest, beta2, beta2_rest, root_scale, eps;
};
} // namespace

static adam adam_of(const rlhf_adamw *a) {
    const double c2 = 1.0 - pow(a->beta2, (double)a->step);
    adam s;
    s.grad_scale = a->grad_scale;
    s.beta1 = (float)a->beta1;
    s.beta1_rest = (float)(1.0 - a->beta1);
    s.beta2 = (float)a->beta2;
    s.beta2_rest = (float)(1.0 - a->beta2);
    s.root_scale = (float)(a->epsilon == RLHF_ADAM_TF1 ? 1.0 : 1.0 / sqrt(c2));
    s.eps = (float)a->eps;
    return s;
}

static item item_with(const rlhf_adamw *a, double lr, double weight_decay) {
    const double c1 = 1.0 - pow(a->beta1, (double)a->step);
    const double c2 = 1.0 - pow(a->beta2, (double)a->step);
    item it = {};
    it.decay = (float)(1.0 - lr * weight_decay);
    it.step = (float)(a->epsilon == RLHF_ADAM_TF1 ? lr * sqrt(c2) / c1 : lr / c1);
    return it;
}

// Updates elements at .. at + STEP_CHUNK - 1 of a tensor. With ZERO, zeroes g afterwards.
template <bool WIDE, bool ZERO>
static __device__ __forceinline__ void step_chunk(const item &t, const adam &a, float grad_scale,
                                                  uint64_t at) {
    const uint64_t end = at + STEP_CHUNK < t.n ? at + STEP_CHUNK : t.n;
    const float none[N] = {0.0f, 0.0f, 0.0f, 0.0f};
    float w[N], g[N], m[N], v[N];
    for (uint64_t i = at + threadIdx.x * N; i < end; i += THREADS * N) {
        rlhf__load<WIDE>(g, t.g, i, end);
        rlhf__load<WIDE>(m, t.m, i, end);
        rlhf__load<WIDE>(v, t.v, i, end);
        rlhf__load<WIDE>(w, t.w, i, end);
        for (int j = 0; j < N; j++) {
            const float gj = g[j] * grad_scale;
            m[j] = fmaf(m[j], a.beta1, gj * a.beta1_rest);
            v[j] = fmaf(v[j], a.beta2, gj * gj * a.beta2_rest);
            w[j] = w[j] * t.decay - t.step * m[j] / fmaf(sqrtf(v[j]), a.root_scale, a.eps);
        }
        rlhf__store<WIDE>(t.m, m, i, end);
        rlhf__store<WIDE>(t.v, v, i, end);
        rlhf__store<WIDE>(t.w, w, i, end);
        if (ZERO) rlhf__store<WIDE>(t.g, none, i, end);
    }
}

static __device__ __forceinline__ bool item_wide(const item &t) {
    return (((uintptr_t)t.w | (uintptr_t)t.g | (uintptr_t)t.m | (uintptr_t)t.v) &
            (sizeof(float4) - 1)) == 0;
}

static __global__ void __launch_bounds__(THREADS) adamw_one(item t, adam a) {
    const uint64_t at = (uint64_t)blockIdx.x * STEP_CHUNK;
    const float scale = (float)a.grad_scale;
    if (item_wide(t))
        step_chunk<true, false>(t, a, scale, at);
    else
        step_chunk<false, false>(t, a, scale, at);
}

static __global__ void __launch_bounds__(THREADS)
    adamw_list(const item *list, uint32_t items, adam a, const rlhf_clip *clip) {
    const item t = list[item_of(list, items, blockIdx.x)];
    const uint64_t at = (blockIdx.x - t.chunk) * STEP_CHUNK;
    const float scale = (float)(clip ? a.grad_scale * clip->scale : a.grad_scale);
    if (!t.w || (clip && clip->skip)) {
        const uint64_t end = at + STEP_CHUNK < t.n ? at + STEP_CHUNK : t.n;
        for (uint64_t i = at + threadIdx.x; i < end; i += THREADS)
            t.g[i] = 0.0f;
    } else if (item_wide(t))
        step_chunk<true, true>(t, a, scale, at);
    else
        step_chunk<false, true>(t, a, scale, at);
}

static rlhf_status adamw_read(struct rlhf__cuda *cu, const char *op, rlhf_adamw *a,
                              const rlhf_adamw *how) {
    RLHF_TRY(rlhf__cuda_copy_in(cu, op, a, sizeof *a, how, RLHF_SIZE_TO(rlhf_adamw, step)));
    if (a->step < 1)
        return rlhf__cuda_fail(cu, RLHF_E_INVALID, "%s: step is %lld, the first is 1", op,
                               (long long)a->step);
    if (a->epsilon != RLHF_ADAM_TORCH && a->epsilon != RLHF_ADAM_TF1)
        return rlhf__cuda_fail(cu, RLHF_E_INVALID, "%s: epsilon form is %d, allowed are 0 and 1",
                               op, a->epsilon);
    return RLHF_OK;
}

static void item_wrote(struct rlhf__cuda *cu, const item &t, bool g) {
    const uint64_t bytes = t.n * sizeof(float);
    if (g) rlhf__cuda_wrote(cu, t.g, bytes);
    if (!t.w) return;
    rlhf__cuda_wrote(cu, t.w, bytes);
    rlhf__cuda_wrote(cu, t.m, bytes);
    rlhf__cuda_wrote(cu, t.v, bytes);
}

static rlhf_status adamw(void *ctx, rlhf_dev w, rlhf_dev g, rlhf_dev m, rlhf_dev v, uint64_t n,
                         const rlhf_adamw *how) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    rlhf_adamw a;
    RLHF_TRY(adamw_read(cu, "adamw", &a, how));
    if (!n) return RLHF_OK;
    item t = item_with(&a, a.lr, a.weight_decay);
    t.w = rlhf__cuda_f32(w), t.g = rlhf__cuda_f32(g);
    t.m = rlhf__cuda_f32(m), t.v = rlhf__cuda_f32(v);
    t.n = n;
    item_wrote(cu, t, false);
    RUN(cu, adamw_one, dim3((unsigned)chunks_of(n, STEP_CHUNK)), dim3(THREADS), 0, t, adam_of(&a));
    return rlhf__cuda_done(cu);
}

// ---- many tensors ----

// Upload the list to device memory. *chunks becomes the number of chunks of all tensors. If only
// gradients are used, `how` is NULL.
static rlhf_status list_upload(struct rlhf__cuda *cu, const rlhf_tensors *t, const rlhf_adamw *how,
                               uint64_t chunk, item **list, uint64_t *chunks) {
    void *ws = NULL;
    const uint64_t bytes = list_bytes(t);
    RLHF_TRY(rlhf__cuda_workspace(cu, RLHF__CUDA_WS_LIST, bytes, &ws));
    item *const host = (item *)calloc(t->n, sizeof *host);
    if (!host)
        return rlhf__cuda_fail(cu, RLHF_E_NOMEM, "out of host memory for a list of %u tensors",
                               t->n);
    *chunks = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        item *const it = host + i;
        if (how) {
            *it = item_with(how, how->lr * t->lr[i], how->weight_decay * t->weight_decay[i]);
            it->w = rlhf__cuda_f32(t->w[i]);
            if (it->w) it->m = rlhf__cuda_f32(t->m[i]), it->v = rlhf__cuda_f32(t->v[i]);
        }
        it->g = rlhf__cuda_f32(t->g[i]);
        it->n = t->len[i];
        it->chunk = *chunks;
        *chunks += chunks_of(it->n, chunk);
        if (how) item_wrote(cu, *it, true);
    }
    *list = (item *)ws;
    const rlhf_status st = cu->table.upload(cu, rlhf__cuda_dev(ws), host, bytes);
    free(host);
    return st;
}

static rlhf_status tensors_read(struct rlhf__cuda *cu, const char *op, rlhf_tensors *t,
                                const rlhf_tensors *from) {
    return rlhf__cuda_copy_in(cu, op, t, sizeof *t, from, RLHF_SIZE_TO(rlhf_tensors, weight_decay));
}

static rlhf_status sumsq_many(void *ctx, const rlhf_tensors *from, double max_norm, int32_t skip,
                              rlhf_dev clip) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    rlhf_tensors t;
    item *list = NULL;
    uint64_t chunks = 0;
    void *ws = NULL;
    RLHF_TRY(tensors_read(cu, "sumsq_many", &t, from));
    if (t.n) RLHF_TRY(list_upload(cu, &t, NULL, SUM_CHUNK, &list, &chunks));
    RLHF_TRY(rlhf__cuda_workspace(cu, RLHF__CUDA_WS_PARTIAL, sums_bytes(t.n, chunks), &ws));
    double *const of_tensor = (double *)ws, *const part = of_tensor + t.n;
    rlhf__cuda_wrote(cu, rlhf__cuda_mem(clip), sizeof(rlhf_clip));
    if (chunks)
        RUN(cu, sumsq_list_chunks, dim3((unsigned)chunks), dim3(THREADS), 0, part, list, t.n);
    if (t.n) RUN(cu, sumsq_list_add, dim3(t.n), dim3(THREADS), 0, of_tensor, part, list);
    RUN(cu, clip_of, dim3(1), dim3(32), 0, rlhf__cuda_mem<rlhf_clip>(clip), of_tensor, t.n,
        max_norm, skip);
    return rlhf__cuda_done(cu);
}

static rlhf_status adamw_many(void *ctx, const rlhf_tensors *from, const rlhf_adamw *how,
                              rlhf_dev clip) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    rlhf_tensors t;
    rlhf_adamw a;
    item *list = NULL;
    uint64_t chunks = 0;
    RLHF_TRY(tensors_read(cu, "adamw_many", &t, from));
    RLHF_TRY(adamw_read(cu, "adamw_many", &a, how));
    if (t.n) RLHF_TRY(list_upload(cu, &t, &a, STEP_CHUNK, &list, &chunks));
    if (chunks)
        RUN(cu, adamw_list, dim3((unsigned)chunks), dim3(THREADS), 0, list, t.n, adam_of(&a),
            rlhf__cuda_mem<rlhf_clip>(clip));
    return rlhf__cuda_done(cu);
}

void rlhf__cuda_needs_optim(struct rlhf__cuda *cu, const rlhf_call *c, struct rlhf__cuda_needs *n) {
    rlhf_tensors t;
    uint64_t chunks = 0;
    const int many = c->op == RLHF_COMPUTE_OP(sumsq_many);
    if (c->op == RLHF_COMPUTE_OP(sumsq) && c->n)
        rlhf__cuda_need(n, RLHF__CUDA_WS_PARTIAL, sums_bytes(1, chunks_of(c->n, SUM_CHUNK)));
    if (!many && c->op != RLHF_COMPUTE_OP(adamw_many)) return;
    if (!c->tensors || tensors_read(cu, "workspace_bytes", &t, c->tensors) < 0) return;
    rlhf__cuda_need(n, RLHF__CUDA_WS_LIST, list_bytes(&t));
    for (uint32_t i = 0; i < t.n && many; i++)
        chunks += chunks_of(t.len[i], SUM_CHUNK);
    if (many) rlhf__cuda_need(n, RLHF__CUDA_WS_PARTIAL, sums_bytes(t.n, chunks));
}

void rlhf__cuda_fill_optim(rlhf_compute *t) {
    t->sumsq = sumsq;
    t->adamw = adamw;
    t->sumsq_many = sumsq_many;
    t->adamw_many = adamw_many;
}
