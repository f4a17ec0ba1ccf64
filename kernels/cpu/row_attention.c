// row_attention.c: attention over ragged rows, forward and backward: checks, scratch, and one hot
// call per (row, head).
//
// A (row, head) pair shares no sum with another, so any thread may take any pair.
#include "rows.h"
#include "split.h"

#include <omp.h>

enum { HEAD_DIM_MAX = 128, LANES_MAX = 16, KEY_BLOCK_MAX = 64, ROWS_MAX = 8, CHUNK_MAX = 64 };
enum { FEW_QUERIES = 3 }; // below this a row reads its keys once and memory sets the speed

// Items a thread takes at a time: neighbouring heads, for the prefetch, but enough pieces to even
// out rows of different lengths.
static int chunk_of(const rlhf_attn *a, const rlhf_ragged *r, int threads) {
    uint64_t most = (uint64_t)r->n * (uint64_t)a->heads / ((uint64_t)threads * 8);
    return most < 1 ? 1 : most < (uint64_t)a->heads ? (int)most : a->heads;
}

static size_t up(size_t n, size_t to) { return (n + to - 1) / to * to; }

size_t rlhf__attn_scratch(uint32_t nq, uint32_t nk, int32_t head_dim) {
    (void)nq;
    size_t keys = up(nk, KEY_BLOCK_MAX), width = up((size_t)head_dim, LANES_MAX);
    return keys * width + ROWS_MAX * (keys + width) + nk * width;
}

size_t rlhf__attn_scratch_bwd(uint32_t nq, uint32_t nk, int32_t head_dim) {
    (void)nq;
    size_t keys = up(nk, KEY_BLOCK_MAX), width = up((size_t)head_dim, LANES_MAX);
    return 5 * keys * width + CHUNK_MAX * 2 * (keys + width) + ROWS_MAX * width;
}

static rlhf_status check_geometry(struct rlhf__cpu *cpu, const char *op, const rlhf_attn *a) {
    RLHF_TRY(rlhf__cpu_check_dtype(cpu, op, a->dtype));
    if (a->heads <= 0)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: heads is %d, must be positive", op,
                              a->heads);
    if (a->head_dim <= 0 || a->head_dim > HEAD_DIM_MAX || a->head_dim % 8)
        return rlhf__cpu_fail(cpu, RLHF_E_UNSUPPORTED,
                              "%s: head_dim is %d, supported are multiples of 8 up to %d", op,
                              a->head_dim, HEAD_DIM_MAX);
    return RLHF_OK;
}

static rlhf_status check_rows(struct rlhf__cpu *cpu, const char *op, const rlhf_ragged *r,
                              int training) {
    const int32_t *off = (const void *)r->offset, *start = (const void *)r->start;
    const int32_t *base = (const void *)r->kv_base;
    for (uint32_t i = 0; i < r->n; i++) {
        int64_t q = (int64_t)off[i + 1] - off[i], k = (int64_t)start[i] + q;
        if (off[i] < 0 || q < 0 || start[i] < 0 || base[i] < 0 || q > r->max_q || k > r->max_k ||
            (uint32_t)off[i + 1] > r->total)
            return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                                  "%s: row %u has %lld queries and %lld keys, declared are at most "
                                  "%u and %u (%u tokens in all)",
                                  op, i, (long long)q, (long long)k, r->max_q, r->max_k, r->total);
        if (training && (start[i] != 0 || base[i] != off[i]))
            return rlhf__cpu_fail(cpu, RLHF_E_UNSUPPORTED,
                                  "%s: row %u has start %d and kv_base %d, backward needs 0 and %d",
                                  op, i, start[i], base[i], off[i]);
    }
    return RLHF_OK;
}

// The parts of an item that forward and backward share. es = bytes an element.
static struct rlhf__attn_item item_of(const rlhf_attn *a, const rlhf_ragged *r, size_t i, size_t h,
                                      size_t es, rlhf_dev q, rlhf_dev k, rlhf_dev v, rlhf_dev lse) {
    const int32_t *off = (const void *)r->offset, *start = (const void *)r->start;
    const int32_t *base = (const void *)r->kv_base;
    size_t col = h * (size_t)a->head_dim, t0 = (size_t)off[i];
    size_t kv = ((size_t)base[i] * (size_t)a->kv_stride + col) * es;
    struct rlhf__attn_item it = {
        .q = q + (t0 * (size_t)a->q_stride + col) * es,
        .k = k + kv,
        .v = v + kv,
        .lse = lse ? (float *)(void *)lse + t0 * (size_t)a->heads + h : NULL,
        .q_stride = a->q_stride,
        .kv_stride = a->kv_stride,
        .out_stride = a->out_stride,
        .lse_stride = a->heads,
        .nq = (uint32_t)(off[i + 1] - off[i]),
        .nk = (uint32_t)(start[i] + off[i + 1] - off[i]),
        .start = (uint32_t)start[i],
        .head_dim = a->head_dim,
        .causal = a->causal,
        .dtype = a->dtype,
        .scale = (float)a->scale,
    };
    return it;
}

// Where the next item's rows are, as seen from this one: the next head, or the next row's first.
static void look_next(struct rlhf__attn_item *it, const rlhf_attn *a, const rlhf_ragged *r,
                      size_t i, size_t h, size_t es) {
    const int32_t *off = (const void *)r->offset, *base = (const void *)r->kv_base;
    int64_t head = (int64_t)a->head_dim * (int64_t)es, back = (int64_t)h * head;
    if (h + 1 < (size_t)a->heads) {
        it->next_q = it->next_kv = it->next_out = head;
    } else if (i + 1 < r->n) {
        it->next_q = (off[i + 1] - off[i]) * a->q_stride * (int64_t)es - back;
        it->next_kv = (base[i + 1] - base[i]) * a->kv_stride * (int64_t)es - back;
        it->next_out = (off[i + 1] - off[i]) * a->out_stride * (int64_t)es - back;
    }
}

// Scratch for every thread; *stride floats lie between two threads.
static rlhf_status scratch(struct rlhf__cpu *cpu, enum rlhf__cpu_ws which, size_t floats,
                           float **out, size_t *stride) {
    void *p = NULL;
    *stride = up(floats, 64) + 64;
    RLHF_TRY(rlhf__cpu_workspace(cpu, which, (uint64_t)cpu->threads * *stride * sizeof(float), &p));
    *out = p;
    return RLHF_OK;
}

// While head h of row i is worked on, its share of the keys and values of row i + 1 is fetched: a
// head reads short pieces at a long stride, which the hardware does not foresee.
static void look_ahead(struct rlhf__attn_item *it, const rlhf_attn *a, const rlhf_ragged *r,
                       size_t i, size_t h, size_t es, rlhf_dev k, rlhf_dev v) {
    const int32_t *off = (const void *)r->offset, *start = (const void *)r->start;
    const int32_t *base = (const void *)r->kv_base;
    if (i + 1 >= r->n) return;
    size_t row = (size_t)a->kv_stride * es, heads = (size_t)a->heads;
    size_t bytes = (size_t)(start[i + 1] + off[i + 2] - off[i + 1]) * row;
    size_t from = (size_t)base[i + 1] * row + bytes * h / heads;
    it->ahead_k = k + from;
    it->ahead_v = v + from;
    it->ahead_bytes = bytes / heads;
}

// One piece of forward: item n = (row, head).
static void forward_item(struct rlhf__cpu *cpu, const rlhf_attn *a, const rlhf_ragged *r, size_t n,
                         rlhf_dev out, rlhf_dev lse, rlhf_dev q, rlhf_dev k, rlhf_dev v,
                         float *scratch) {
    size_t es = rlhf_dtype_size(a->dtype), heads = (size_t)a->heads, i = n / heads, h = n % heads;
    struct rlhf__attn_item it = item_of(a, r, i, h, es, q, k, v, lse);
    size_t t0 = (size_t)((const int32_t *)(const void *)r->offset)[i];
    if (!it.nq) return;
    if (it.nq <= FEW_QUERIES)
        look_ahead(&it, a, r, i, h, es, k, v);
    else
        look_next(&it, a, r, i, h, es);
    it.out = out + (t0 * (size_t)a->out_stride + h * (size_t)a->head_dim) * es;
    it.scratch = scratch;
    cpu->hot.attn(&it);
}

rlhf_status rlhf__cpu_attention(void *ctx, const rlhf_attn *a, const rlhf_ragged *r, rlhf_dev out,
                                rlhf_dev lse, rlhf_dev q, rlhf_dev k, rlhf_dev v) {
    struct rlhf__cpu *cpu = ctx;
    float *ws;
    size_t stride;
    RLHF_TRY(check_geometry(cpu, "attention", a));
    RLHF_TRY(check_rows(cpu, "attention", r, 0));
    RLHF_TRY(scratch(cpu, RLHF__WS_ATTN, rlhf__attn_scratch(r->max_q, r->max_k, a->head_dim), &ws,
                     &stride));
    int64_t count = (int64_t)r->n * a->heads;
    int threads = count > 1 ? cpu->threads : 1;
    // Read by the pragma alone.
    int chunk = chunk_of(a, r, threads); // NOLINT(clang-analyzer-deadcode.DeadStores)
    if (r->max_q <= FEW_QUERIES) {       // neighbouring rows on one thread, for look_ahead
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
        for (int64_t n = 0; n < count; n++)
            forward_item(cpu, a, r, (size_t)n, out, lse, q, k, v,
                         ws + (size_t)omp_get_thread_num() * stride);
    } else {
#pragma omp parallel for schedule(dynamic, chunk) num_threads(threads) if (threads > 1)
        for (int64_t n = 0; n < count; n++)
            forward_item(cpu, a, r, (size_t)n, out, lse, q, k, v,
                         ws + (size_t)omp_get_thread_num() * stride);
    }
    return RLHF_OK;
}

rlhf_status rlhf__cpu_attention_bwd(void *ctx, const rlhf_attn *a, const rlhf_ragged *r,
                                    rlhf_dev dq, rlhf_dev dk, rlhf_dev dv, rlhf_dev dout,
                                    rlhf_dev out, rlhf_dev lse, rlhf_dev q, rlhf_dev k,
                                    rlhf_dev v) {
    struct rlhf__cpu *cpu = ctx;
    float *ws;
    size_t ws_stride, es = rlhf_dtype_size(a->dtype), heads = (size_t)a->heads;
    RLHF_TRY(check_geometry(cpu, "attention_bwd", a));
    RLHF_TRY(check_rows(cpu, "attention_bwd", r, 1));
    RLHF_TRY(scratch(cpu, RLHF__WS_ATTN_BWD,
                     rlhf__attn_scratch_bwd(r->max_q, r->max_k, a->head_dim), &ws, &ws_stride));
    int64_t count = (int64_t)r->n * a->heads;
    int threads = count > 1 ? cpu->threads : 1;
    // Read by the pragma alone.
    int chunk = chunk_of(a, r, threads); // NOLINT(clang-analyzer-deadcode.DeadStores)
#pragma omp parallel for schedule(dynamic, chunk) num_threads(threads) if (threads > 1)
    for (int64_t n = 0; n < count; n++) {
        size_t i = (size_t)n / heads, h = (size_t)n % heads;
        struct rlhf__attn_item it = item_of(a, r, i, h, es, q, k, v, lse);
        if (!it.nq) continue;
        size_t t0 = (size_t)((const int32_t *)(const void *)r->offset)[i];
        size_t col = h * (size_t)a->head_dim, o = (t0 * (size_t)a->out_stride + col) * es;
        size_t kv = (t0 * (size_t)a->kv_stride + col) * es;
        look_next(&it, a, r, i, h, es);
        it.out = out + o;
        it.dout = dout + o;
        it.dq = dq + (t0 * (size_t)a->q_stride + col) * es;
        it.dk = dk + kv;
        it.dv = dv + kv;
        it.scratch = ws + (size_t)omp_get_thread_num() * ws_stride;
        cpu->hot.attn_bwd(&it);
    }
    return RLHF_OK;
}
