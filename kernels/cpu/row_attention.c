// row_attention.c: attention over ragged rows, forward and backward: checks, scratch, and one hot
// call per (row, head).
//
// A (row, head) pair shares no sum with another, so any thread may take any pair; only in backward
// one thread takes the rows that share a prefix, in order, because they add to the same sums.
#include "ragged.h"
#include "split.h"
#include "table.h"

#include <omp.h>

// Widest head that hot/hot.h promises to take and tests/kernels try; a wider one is refused with a
// sentence. Scratch is sized by the head's own width.
enum { HEAD_DIM_MAX = 128 };
enum { LANES_MAX = 16, KEY_BLOCK_MAX = 64, ROWS_MAX = 8, CHUNK_MAX = 64 };

// Thresholds, and what they bring: 1 thread of an Intel Xeon with AMX, 32 rows, 12 heads of 64,
// bf16, 12 layers' worth of keys in turn, the shortest of 60 calls.
//   RUN_PREFIX   shortest prefix worth a run (rows decoded together that read it once): a run costs
//                15 % at a prefix of 8 of 48 keys and 2 % at 16, brings 11 % at 32 of 56 and 27 %
//                at 128 of 152
//   RUN_ROWS     most rows of one run
//   FEW_QUERIES  up to this many a row reads its keys once and memory sets the speed: look_ahead,
//                which brings 8 % at 48 keys, 6 % at 256, 2 % at 512
enum { RUN_PREFIX = 16, RUN_ROWS = 16 };
enum { FEW_QUERIES = 3 };

// Items a thread takes at a time, of `rows` rows of equal worth: neighbouring heads, for the
// prefetch, but enough pieces to even out rows of different lengths.
static int chunk_of(const rlhf_attn *a, uint64_t rows, int threads) {
    uint64_t most = rows * (uint64_t)a->heads / ((uint64_t)threads * 8);
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

// *a = the caller's struct, in bounds.
static rlhf_status read_geometry(struct rlhf__cpu *cpu, const char *op, rlhf_attn *a,
                                 const rlhf_attn *from) {
    RLHF_TRY(rlhf__cpu_copy_in(cpu, op, a, sizeof *a, from, RLHF_SIZE_TO(rlhf_attn, scale)));
    RLHF_TRY(rlhf__cpu_check_dtype(cpu, op, a->dtype));
    if (a->heads <= 0)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: heads is %d, must be positive", op,
                              a->heads);
    if (a->kv_heads && a->kv_heads != a->heads)
        return rlhf__cpu_fail(cpu, RLHF_E_UNSUPPORTED,
                              "%s: kv_heads is %d, supported are 0 and the number of heads (%d)",
                              op, a->kv_heads, a->heads);
    if (a->head_dim <= 0 || a->head_dim > HEAD_DIM_MAX || a->head_dim % 8)
        return rlhf__cpu_fail(cpu, RLHF_E_UNSUPPORTED,
                              "%s: head_dim is %d, supported are multiples of 8 up to %d", op,
                              a->head_dim, HEAD_DIM_MAX);
    return RLHF_OK;
}

// The parts of an item that forward and backward share. es = bytes an element.
static struct rlhf__attn_item item_of(const rlhf_attn *a, const rlhf_ragged *r, size_t i, size_t h,
                                      size_t es, rlhf_dev q, rlhf_dev k, rlhf_dev v, rlhf_dev lse) {
    struct rlhf__row row = rlhf__cpu_row(r, i);
    size_t col = h * (size_t)a->head_dim;
    size_t kv = (row.k0 * (size_t)a->kv_stride + col) * es;
    size_t prefix = (row.p0 * (size_t)a->kv_stride + col) * es;
    struct rlhf__attn_item it = {
        .q = rlhf__cpu_mem(rlhf_dev_at(q, (row.t0 * (size_t)a->q_stride + col) * es)),
        .k = rlhf__cpu_mem(rlhf_dev_at(k, kv)),
        .v = rlhf__cpu_mem(rlhf_dev_at(v, kv)),
        .pk = row.np ? rlhf__cpu_mem(rlhf_dev_at(k, prefix)) : NULL,
        .pv = row.np ? rlhf__cpu_mem(rlhf_dev_at(v, prefix)) : NULL,
        .lse = lse ? rlhf__cpu_f32(lse) + row.t0 * (size_t)a->heads + h : NULL,
        .q_stride = a->q_stride,
        .kv_stride = a->kv_stride,
        .out_stride = a->out_stride,
        .lse_stride = a->heads,
        .nq = row.nq,
        .nk = row.nk,
        .np = row.np,
        .start = row.start,
        .head_dim = a->head_dim,
        .causal = a->causal,
        .dtype = a->dtype,
        .scale = (float)a->scale,
    };
    return it;
}

// Where the next item's rows are, as seen from this one: the next head, or the next row's first.
// Training rows of 64 tokens, measured as above: 1 to 3 % of forward, nothing that shows of
// backward.
static void look_next(struct rlhf__attn_item *it, const rlhf_attn *a, const rlhf_ragged *r,
                      size_t i, size_t h, size_t es) {
    const int32_t *off = rlhf__cpu_i32(r->offset), *base = rlhf__cpu_i32(r->kv_base);
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
// head reads short pieces at a long stride, which the hardware does not foresee. Of a row with
// another prefix, that is the prefix; one with the same prefix finds it in the cache.
static void look_ahead(struct rlhf__attn_item *it, const rlhf_attn *a, const rlhf_ragged *r,
                       size_t i, size_t h, size_t es, rlhf_dev k, rlhf_dev v) {
    if (i + 1 >= r->n) return;
    struct rlhf__row row = rlhf__cpu_row(r, i), next = rlhf__cpu_row(r, i + 1);
    int other = next.np && !(row.np && row.p0 == next.p0);
    size_t stride = (size_t)a->kv_stride * es, heads = (size_t)a->heads;
    size_t bytes = (other ? next.np : next.nk - next.np) * stride;
    size_t from = (other ? next.p0 : next.k0) * stride + bytes * h / heads;
    it->ahead_k = rlhf__cpu_mem(rlhf_dev_at(k, from));
    it->ahead_v = rlhf__cpu_mem(rlhf_dev_at(v, from));
    it->ahead_bytes = bytes / heads;
}

// The tensors of a forward call.
struct fwd {
    const rlhf_attn *a;
    const rlhf_ragged *r;
    rlhf_dev out, lse, q, k, v;
};

// One piece of forward: head h of row i.
static void forward_item(struct rlhf__cpu *cpu, const struct fwd *f, size_t i, size_t h,
                         float *scratch) {
    const rlhf_attn *a = f->a;
    size_t es = rlhf_dtype_size(a->dtype);
    struct rlhf__attn_item it = item_of(a, f->r, i, h, es, f->q, f->k, f->v, f->lse);
    size_t t0 = rlhf__cpu_row(f->r, i).t0;
    if (!it.nq) return;
    if (it.nq <= FEW_QUERIES)
        look_ahead(&it, a, f->r, i, h, es, f->k, f->v);
    else
        look_next(&it, a, f->r, i, h, es);
    it.out = rlhf__cpu_mem(
        rlhf_dev_at(f->out, (t0 * (size_t)a->out_stride + h * (size_t)a->head_dim) * es));
    it.scratch = scratch;
    cpu->hot.attn(&it);
}

// Head h of rows i0 .. i1-1, which have one query each and share a prefix.
static void forward_run(struct rlhf__cpu *cpu, const struct fwd *f, size_t i0, size_t i1, size_t h,
                        float *scratch) {
    const rlhf_attn *a = f->a;
    size_t es = rlhf_dtype_size(a->dtype), col = h * (size_t)a->head_dim;
    struct rlhf__attn_run run = {.it = item_of(a, f->r, i0, h, es, f->q, f->k, f->v, f->lse),
                                 .start = rlhf__cpu_i32(f->r->start) + i0,
                                 .base = rlhf__cpu_i32(f->r->kv_base) + i0};
    run.it.k = rlhf__cpu_mem(rlhf_dev_at(f->k, col * es));
    run.it.v = rlhf__cpu_mem(rlhf_dev_at(f->v, col * es));
    run.it.out = rlhf__cpu_mem(
        rlhf_dev_at(f->out, (rlhf__cpu_row(f->r, i0).t0 * (size_t)a->out_stride + col) * es));
    run.it.nq = (uint32_t)(i1 - i0);
    for (size_t i = 0; i < i1 - i0; i++)
        if ((uint32_t)run.start[i] + 1 > run.it.nk) run.it.nk = (uint32_t)run.start[i] + 1;
    run.it.scratch = scratch;
    cpu->hot.attn_run(&run);
}

// Number of runs; run n is rows first[n] .. first[n+1]-1, first has room for r->n + 1.
static uint32_t find_runs(const rlhf_ragged *r, uint32_t *first) {
    uint32_t runs = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        struct rlhf__row row = rlhf__cpu_row(r, i);
        if (runs && row.np >= RUN_PREFIX && row.nq == 1 && i - first[runs - 1] < RUN_ROWS) {
            struct rlhf__row head = rlhf__cpu_row(r, first[runs - 1]);
            if (head.np == row.np && head.p0 == row.p0 && head.nq == 1) continue;
        }
        first[runs++] = i;
    }
    first[runs] = r->n;
    return runs;
}

// Forward for rows of one query, of which some share a prefix.
static rlhf_status forward_runs(struct rlhf__cpu *cpu, const struct fwd *f, float *ws,
                                size_t stride) {
    void *p = NULL;
    RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_ATTN_RUNS, (f->r->n + 1ull) * sizeof(uint32_t), &p));
    uint32_t *first = p;
    size_t heads = (size_t)f->a->heads;
    uint32_t runs = find_runs(f->r, first);
    int64_t count = (int64_t)runs * f->a->heads;
    int threads = count > 1 ? cpu->threads : 1;
    // Read by the pragma alone.
    int chunk = chunk_of(f->a, runs, threads); // NOLINT(clang-analyzer-deadcode.DeadStores)
#pragma omp parallel for schedule(dynamic, chunk) num_threads(threads) if (threads > 1)
    for (int64_t n = 0; n < count; n++) {
        size_t i0 = first[(size_t)n / heads], i1 = first[(size_t)n / heads + 1];
        float *own = ws + (size_t)omp_get_thread_num() * stride;
        if (i1 == i0 + 1)
            forward_item(cpu, f, i0, (size_t)n % heads, own);
        else
            forward_run(cpu, f, i0, i1, (size_t)n % heads, own);
    }
    return RLHF_OK;
}

static rlhf_status attention(void *ctx, const rlhf_attn *attn, const rlhf_ragged *rows,
                             rlhf_dev out, rlhf_dev lse, rlhf_dev q, rlhf_dev k, rlhf_dev v) {
    struct rlhf__cpu *cpu = ctx;
    rlhf_attn own_attn;
    rlhf_ragged own_rows;
    RLHF_TRY(read_geometry(cpu, "attention", &own_attn, attn));
    RLHF_TRY(rlhf__cpu_read_ragged(cpu, "attention", &own_rows, rows));
    const rlhf_attn *a = &own_attn;
    const rlhf_ragged *r = &own_rows;
    const struct fwd f = {a, r, out, lse, q, k, v};
    float *ws;
    size_t stride, heads = (size_t)a->heads;
    RLHF_TRY(scratch(cpu, RLHF__WS_ATTN, rlhf__attn_scratch(r->max_q, r->max_k, a->head_dim), &ws,
                     &stride));
    if (r->max_q == 1 && r->prefix_len && a->head_dim % LANES_MAX == 0)
        return forward_runs(cpu, &f, ws, stride);
    int64_t count = (int64_t)r->n * a->heads;
    int threads = count > 1 ? cpu->threads : 1;
    // Read by the pragma alone.
    int chunk = chunk_of(a, r->n, threads); // NOLINT(clang-analyzer-deadcode.DeadStores)
    if (r->max_q <= FEW_QUERIES) {          // neighbouring rows on one thread, for look_ahead
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
        for (int64_t n = 0; n < count; n++)
            forward_item(cpu, &f, (size_t)n / heads, (size_t)n % heads,
                         ws + (size_t)omp_get_thread_num() * stride);
    } else {
#pragma omp parallel for schedule(dynamic, chunk) num_threads(threads) if (threads > 1)
        for (int64_t n = 0; n < count; n++)
            forward_item(cpu, &f, (size_t)n / heads, (size_t)n % heads,
                         ws + (size_t)omp_get_thread_num() * stride);
    }
    return RLHF_OK;
}

// The tensors of a backward call.
struct bwd {
    const rlhf_attn *a;
    const rlhf_ragged *r;
    rlhf_dev dq, dk, dv, dout, out, lse, q, k, v;
};

// Head h of row i, one of rows i0 .. i1-1, which share scratch: row i0 and those that share it.
static struct rlhf__attn_item backward_row(const struct bwd *b, size_t i0, size_t i1, size_t i,
                                           size_t h) {
    const rlhf_attn *a = b->a;
    size_t es = rlhf_dtype_size(a->dtype), col = h * (size_t)a->head_dim;
    struct rlhf__row row = rlhf__cpu_row(b->r, i);
    struct rlhf__attn_item it = item_of(a, b->r, i, h, es, b->q, b->k, b->v, b->lse);
    size_t o = (row.t0 * (size_t)a->out_stride + col) * es;
    size_t kv = (row.k0 * (size_t)a->kv_stride + col) * es;
    it.out = rlhf__cpu_mem(rlhf_dev_at(b->out, o));
    it.dout = rlhf__cpu_mem(rlhf_dev_at(b->dout, o));
    it.dq = rlhf__cpu_mem(rlhf_dev_at(b->dq, (row.t0 * (size_t)a->q_stride + col) * es));
    it.dk = rlhf__cpu_mem(rlhf_dev_at(b->dk, kv));
    it.dv = rlhf__cpu_mem(rlhf_dev_at(b->dv, kv));
    it.sum_on = i == i0 && i1 > i0 + 1;
    it.sum_out = i > i0 && i + 1 == i1;
    if (it.sum_out) {
        it.pdk = rlhf__cpu_mem(rlhf_dev_at(b->dk, (row.p0 * (size_t)a->kv_stride + col) * es));
        it.pdv = rlhf__cpu_mem(rlhf_dev_at(b->dv, (row.p0 * (size_t)a->kv_stride + col) * es));
    }
    if (i1 == i0 + 1 || h + 1 < (size_t)a->heads) look_next(&it, a, b->r, i, h, es);
    return it;
}

// One piece of backward: head h of row i0 and of all rows that share it.
static void backward_item(struct rlhf__cpu *cpu, const struct bwd *b, size_t i0, size_t h,
                          float *scratch) {
    size_t i1 = i0 + 1;
    uint32_t room = rlhf__cpu_row(b->r, i0).nk;
    for (; i1 < b->r->n && rlhf__cpu_row_shares(b->r, i1); i1++) {
        uint32_t nk = rlhf__cpu_row(b->r, i1).nk;
        if (nk > room) room = nk;
    }
    if (!room) return;
    for (size_t i = i0; i < i1; i++) {
        struct rlhf__attn_item it = backward_row(b, i0, i1, i, h);
        it.scratch = scratch;
        it.room = room;
        cpu->hot.attn_bwd(&it);
    }
}

static rlhf_status attention_bwd(void *ctx, const rlhf_attn *attn, const rlhf_ragged *rows,
                                 rlhf_dev dq, rlhf_dev dk, rlhf_dev dv, rlhf_dev dout, rlhf_dev out,
                                 rlhf_dev lse, rlhf_dev q, rlhf_dev k, rlhf_dev v) {
    struct rlhf__cpu *cpu = ctx;
    rlhf_attn own_attn;
    rlhf_ragged own_rows;
    RLHF_TRY(read_geometry(cpu, "attention_bwd", &own_attn, attn));
    RLHF_TRY(rlhf__cpu_read_training(cpu, "attention_bwd", &own_rows, rows));
    const rlhf_attn *a = &own_attn;
    const rlhf_ragged *r = &own_rows;
    float *ws;
    size_t ws_stride, heads = (size_t)a->heads;
    RLHF_TRY(scratch(cpu, RLHF__WS_ATTN_BWD,
                     rlhf__attn_scratch_bwd(r->max_q, r->max_k, a->head_dim), &ws, &ws_stride));
    const struct bwd b = {a, r, dq, dk, dv, dout, out, lse, q, k, v};
    uint64_t alone = 0; // rows without a prefix
    for (uint32_t i = 0; i < r->n; i++)
        alone += !rlhf__cpu_row_shares(r, i);
    int64_t count = (int64_t)r->n * a->heads;
    int threads = count > 1 ? cpu->threads : 1;
    // Read by the pragma alone.
    int chunk = chunk_of(a, alone, threads); // NOLINT(clang-analyzer-deadcode.DeadStores)
#pragma omp parallel for schedule(dynamic, chunk) num_threads(threads) if (threads > 1)
    for (int64_t n = 0; n < count; n++) {
        size_t i = (size_t)n / heads, h = (size_t)n % heads;
        if (rlhf__cpu_row_shares(r, i)) continue; // with the row that it shares
        backward_item(cpu, &b, i, h, ws + (size_t)omp_get_thread_num() * ws_stride);
    }
    return RLHF_OK;
}

void rlhf__cpu_fill_attention(rlhf_compute *t) {
    t->attention = attention;
    t->attention_bwd = attention_bwd;
}
