// row_attention.c: attention over rows of different lengths, forward and backward. Checks the
// arguments, provides scratch memory, divides the work into pieces, and calls the hot loops.
//
// In forward, each query head of each row has separate sums, so any thread may process any head. In
// backward, all query heads that read one key head add to the same sums. All rows that share a
// prefix also add to the same sums. So one thread processes all these heads and rows, in order.
#include "machine/split.h"
#include "machine/table.h"
#include "ragged.h"

#include <float.h>

// The widest head that machine/hot.h supports and that tests/kernels cover. Wider heads are
// refused. The size of scratch memory depends on the actual width.
enum { HEAD_DIM_MAX = 512 };
enum { LANES_MAX = 16, KEY_BLOCK_MAX = 64, ROWS_MAX = 8, CHUNK_MAX = 64 };

// Thresholds and their gains. Measured on 1 thread of an Intel Xeon with AMX: 32 rows, 12 heads of
// 64, bf16, cycling through the keys of 12 layers, the shortest of 60 calls.
//   RUN_PREFIX   the shortest prefix for which rows that are decoded together form a run, so that
//                the prefix is read once. With 48 keys, a run is 15 % slower if its prefix has 8
//                keys, and 2 % slower if its prefix has 16 keys. With 56 keys, 32 of them in the
//                prefix, a run is 11 % faster. With 152 keys, 128 of them in the prefix, a run is
//                27 % faster
//   RUN_ROWS     the maximum number of rows in a run
//   FEW_QUERIES  a row of at most this many queries reads its keys once, so memory bandwidth is the
//                limit. look_ahead then gains 8 % at 48 keys, 6 % at 256 and 2 % at 512
enum { RUN_PREFIX = 16, RUN_ROWS = 16 };
enum { FEW_QUERIES = 3 };

// Returns the number of items that a thread takes at a time. `a_row` is the number of items of each
// row. If this number is large, a thread takes adjacent heads, which helps the prefetch. If it is
// small, the threads finish at about the same time, even if rows have different lengths.
static int chunk_of(size_t a_row, uint64_t rows, int threads) {
    uint64_t most = rows * a_row / ((uint64_t)threads * 8);
    return most < 1 ? 1 : most < a_row ? (int)most : (int)a_row;
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

// Copies the caller's struct to *a and checks the range of its members.
static rlhf_status read_geometry(struct rlhf__cpu *cpu, const char *op, rlhf_attn *a,
                                 const rlhf_attn *from) {
    RLHF_TRY(rlhf__cpu_copy_in(cpu, op, a, sizeof *a, from, RLHF_SIZE_TO(rlhf_attn, scale)));
    RLHF_TRY(rlhf__cpu_check_dtype(cpu, op, a->dtype));
    if (a->heads <= 0)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: heads is %d, must be positive", op,
                              a->heads);
    if (!a->kv_heads) a->kv_heads = a->heads;
    if (a->kv_heads < 1 || a->heads % a->kv_heads)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: kv_heads is %d, must divide heads (%d)", op,
                              a->kv_heads, a->heads);
    if (a->head_dim <= 0 || a->head_dim > HEAD_DIM_MAX || a->head_dim % 8)
        return rlhf__cpu_fail(cpu, RLHF_E_UNSUPPORTED,
                              "%s: head_dim is %d (config.json: head_dim, else the hidden size "
                              "divided by the number of heads), supported are multiples of 8 up to "
                              "%d; the backend 'reference' is slow but supports every width",
                              op, a->head_dim, HEAD_DIM_MAX);
    if (a->window < 0 || (a->window && !a->causal))
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                              "%s: window is %d with causal %d, must be 0, or positive with causal",
                              op, a->window, a->causal);
    if (!(a->softcap >= 0.0 && a->softcap <= (double)FLT_MAX))
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                              "%s: softcap is %g, must be 0 or positive and finite", op,
                              a->softcap);
    return RLHF_OK;
}

// The first key that a query at this position sees.
static size_t first_key(const rlhf_attn *a, size_t pos) {
    return rlhf__cpu_first_key(a->window, pos);
}

// A piece of the work: query heads h .. h+group-1, which all read one key head. The piece covers
// row i or, in a run, the rows from i onward.
struct piece {
    size_t i, h, group;
};

// How the heads of a row are divided: the query heads of each key head form `parts` pieces.
struct cut {
    size_t group, parts, a_row; // query heads per piece; pieces per key head; pieces per row
};

static struct piece piece_at(const struct cut *c, size_t n) {
    size_t at = n % c->a_row, key = at / c->parts, p = at % c->parts;
    size_t from = c->group * p / c->parts, to = c->group * (p + 1) / c->parts;
    return (struct piece){n / c->a_row, key * c->group + from, to - from};
}

// Each piece reads its keys once, so the heads are divided into no more pieces than necessary. They
// are divided until there are two pieces for every thread, or until every thread can get the same
// number of pieces.
static struct cut cut_of(const rlhf_attn *a, uint64_t rows, int threads) {
    size_t keys = (size_t)a->kv_heads, group = (size_t)a->heads / keys, parts = 1;
    uint64_t items = rows * keys, many = 2 * (uint64_t)threads;
    while (parts < group && items * parts < many && items * parts % (uint64_t)threads)
        parts++;
    return (struct cut){group, parts, keys * parts};
}

// The members of an item that forward and backward have in common. `row` is row p.i, or what
// leave_out has left of it. `es` is the number of bytes per element.
static struct rlhf__attn_item item_of(const rlhf_attn *a, struct rlhf__row row, struct piece p,
                                      size_t es, rlhf_dev q, rlhf_dev k, rlhf_dev v, rlhf_dev lse) {
    size_t hd = (size_t)a->head_dim, col = p.h / ((size_t)a->heads / (size_t)a->kv_heads) * hd;
    int64_t kv = (row.k0 * a->kv_stride + (int64_t)col) * (int64_t)es;
    int64_t prefix = (row.p0 * a->kv_stride + (int64_t)col) * (int64_t)es;
    const char *keys = rlhf__cpu_mem(k), *values = rlhf__cpu_mem(v);
    struct rlhf__attn_item it = {
        .q = rlhf__cpu_mem(rlhf_dev_at(q, (row.t0 * (size_t)a->q_stride + p.h * hd) * es)),
        .k = keys + kv,
        .v = values + kv,
        .pk = row.np ? keys + prefix : NULL,
        .pv = row.np ? values + prefix : NULL,
        .lse = lse ? rlhf__cpu_f32(lse) + row.t0 * (size_t)a->heads + p.h : NULL,
        .q_stride = a->q_stride,
        .kv_stride = a->kv_stride,
        .out_stride = a->out_stride,
        .lse_stride = a->heads,
        .nq = row.nq,
        .nk = row.nk,
        .np = row.np,
        .start = row.start,
        .head_dim = a->head_dim,
        .group = (int32_t)p.group,
        .causal = a->causal,
        .dtype = a->dtype,
        .scale = (float)a->scale,
        .window = (uint32_t)a->window,
        .softcap = (float)a->softcap,
    };
    return it;
}

// Removes the keys that no query of the row sees, as many whole vectors of them as there are. Each
// remaining key stays in its lane, so the bits are the same.
static void leave_out(struct rlhf__row *row, const rlhf_attn *a) {
    const uint32_t n = (uint32_t)first_key(a, row->start) / LANES_MAX * LANES_MAX;
    const uint32_t prefix = n < row->np ? n : row->np;
    row->p0 += prefix;
    row->k0 += n - prefix;
    row->np -= prefix;
    row->nk -= n;
    row->start -= n;
}

// The largest number of keys that a forward item of the call has after leave_out.
static uint32_t forward_keys(const rlhf_attn *a, const rlhf_ragged *r) {
    const uint64_t most = (uint64_t)r->max_q + (uint64_t)a->window + LANES_MAX;
    return a->window && most < r->max_k ? (uint32_t)most : r->max_k;
}

// Sets the distances from this item's rows to the rows of the next item, which are prefetched. The
// next item has the next heads or, after the last heads, the first heads of the next row. With
// training rows of 64 tokens, on the machine of the thresholds above, the prefetch makes forward 1
// to 3 % faster. The time of backward does not change measurably.
static void look_next(struct rlhf__attn_item *it, const rlhf_attn *a, const rlhf_ragged *r,
                      struct piece p, struct piece next, size_t es) {
    if (next.i >= r->n) return;
    const int32_t *off = rlhf__cpu_i32(r->offset), *base = rlhf__cpu_i32(r->kv_base);
    const int64_t hd = a->head_dim, size = (int64_t)es, group = a->heads / a->kv_heads;
    const int64_t q = ((int64_t)next.h - (int64_t)p.h) * hd;
    const int64_t kv = ((int64_t)next.h / group - (int64_t)p.h / group) * hd;
    it->next_q = ((off[next.i] - off[p.i]) * a->q_stride + q) * size;
    it->next_kv = (((int64_t)base[next.i] - base[p.i]) * a->kv_stride + kv) * size;
    it->next_out = ((off[next.i] - off[p.i]) * a->out_stride + q) * size;
}

// The distance between the scratch memories of two threads, in floats.
static size_t scratch_stride(size_t floats) { return up(floats, 64) + 64; }

static uint64_t scratch_bytes(const struct rlhf__cpu *cpu, size_t floats) {
    return (uint64_t)cpu->threads * scratch_stride(floats) * sizeof(float);
}

// Get scratch memory for every thread, *stride floats apart.
static rlhf_status scratch(struct rlhf__cpu *cpu, enum rlhf__cpu_ws which, size_t floats,
                           float **out, size_t *stride) {
    void *p = NULL;
    *stride = scratch_stride(floats);
    RLHF_TRY(rlhf__cpu_workspace(cpu, which, scratch_bytes(cpu, floats), &p));
    *out = p;
    return RLHF_OK;
}

// Prefetch this piece's part of the keys and values of row i + 1 while row i is processed. The rows
// of a head are short and far apart, so the hardware prefetcher does not fetch them. If the next
// row has another prefix, that prefix is prefetched too. A prefix that both rows share is already
// in the cache.
static void look_ahead(struct rlhf__attn_item *it, const rlhf_attn *a, const rlhf_ragged *r,
                       struct piece p, size_t es, rlhf_dev k, rlhf_dev v) {
    if (p.i + 1 >= r->n) return;
    struct rlhf__row row = rlhf__cpu_row(r, p.i), next = rlhf__cpu_row(r, p.i + 1);
    int other = next.np && !(row.np && row.p0 == next.p0);
    size_t stride = (size_t)a->kv_stride * es, heads = (size_t)a->heads;
    size_t keys = other ? next.np : next.nk - next.np, first = first_key(a, next.start);
    size_t out = other || first < next.np ? (other ? first : 0) : first - next.np;
    if (out >= keys) return;
    size_t bytes = (keys - out) * stride;
    size_t at = (size_t)((other ? next.p0 : next.k0) + (int64_t)out);
    size_t from = at * stride + bytes * p.h / heads;
    it->ahead_k = rlhf__cpu_mem(rlhf_dev_at(k, from));
    it->ahead_v = rlhf__cpu_mem(rlhf_dev_at(v, from));
    it->ahead_bytes = bytes * p.group / heads;
}

// The tensors of a forward call, how its work is divided, and the threads' scratch memory.
struct fwd {
    struct rlhf__cpu *cpu;
    const rlhf_attn *a;
    const rlhf_ragged *r;
    rlhf_dev out, lse, q, k, v;
    struct cut cut;
    float *ws;
    size_t stride;
    const uint32_t *first; // the first row of each run, or NULL
};

// The address of a piece's output.
static void *out_of(const struct fwd *f, struct piece p, size_t es) {
    const rlhf_attn *a = f->a;
    size_t row = rlhf__cpu_row(f->r, p.i).t0 * (size_t)a->out_stride;
    return rlhf__cpu_mem(rlhf_dev_at(f->out, (row + p.h * (size_t)a->head_dim) * es));
}

static void forward_item(const struct fwd *f, struct piece p, struct piece next, float *scratch) {
    const rlhf_attn *a = f->a;
    size_t es = rlhf_dtype_size(a->dtype);
    struct rlhf__row row = rlhf__cpu_row(f->r, p.i);
    if (!row.nq) return;
    leave_out(&row, a);
    struct rlhf__attn_item it = item_of(a, row, p, es, f->q, f->k, f->v, f->lse);
    if (it.nq <= FEW_QUERIES)
        look_ahead(&it, a, f->r, p, es, f->k, f->v);
    else
        look_next(&it, a, f->r, p, next, es);
    it.out = out_of(f, p, es);
    it.scratch = scratch;
    f->cpu->hot.attn(&it);
}

// Process the heads of a piece in rows p.i .. i1-1. These rows have one query each and share a
// prefix.
static void forward_run(const struct fwd *f, struct piece p, size_t i1, float *scratch) {
    const rlhf_attn *a = f->a;
    size_t es = rlhf_dtype_size(a->dtype), n = i1 - p.i;
    size_t col = p.h / f->cut.group * (size_t)a->head_dim;
    struct rlhf__row row = rlhf__cpu_row(f->r, p.i);
    struct rlhf__attn_run run = {.it = item_of(a, row, p, es, f->q, f->k, f->v, f->lse),
                                 .start = rlhf__cpu_i32(f->r->start) + p.i,
                                 .base = rlhf__cpu_i32(f->r->kv_base) + p.i};
    run.it.k = rlhf__cpu_mem(rlhf_dev_at(f->k, col * es));
    run.it.v = rlhf__cpu_mem(rlhf_dev_at(f->v, col * es));
    run.it.out = out_of(f, p, es);
    run.it.nq = (uint32_t)n;
    for (size_t i = 0; i < n; i++)
        if ((uint32_t)run.start[i] + 1 > run.it.nk) run.it.nk = (uint32_t)run.start[i] + 1;
    run.it.scratch = scratch;
    f->cpu->hot.attn_run(&run);
}

// Finds the runs and returns their number. Run n is rows first[n] .. first[n+1]-1. `first` must
// have room for r->n + 1 numbers. A row that does not see all of its keys is alone.
static uint32_t find_runs(const rlhf_attn *a, const rlhf_ragged *r, uint32_t *first) {
    uint32_t runs = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        struct rlhf__row row = rlhf__cpu_row(r, i);
        if (runs && row.np >= RUN_PREFIX && row.nq == 1 && !first_key(a, row.start) &&
            i - first[runs - 1] < RUN_ROWS) {
            struct rlhf__row head = rlhf__cpu_row(r, first[runs - 1]);
            if (head.np == row.np && head.p0 == row.p0 && head.nq == 1 && !first_key(a, head.start))
                continue;
        }
        first[runs++] = i;
    }
    first[runs] = r->n;
    return runs;
}

// True if runs are worthwhile: all rows have a single query, and some of them share a prefix.
static int has_runs(const rlhf_attn *a, const rlhf_ragged *r) {
    return r->max_q == 1 && r->prefix_len && a->head_dim % LANES_MAX == 0;
}

// False if there can be no run, because no row sees its whole prefix.
static int sees_prefix(const rlhf_attn *a, const rlhf_ragged *r) {
    uint32_t i = 0;
    while (a->window && i < r->n &&
           (!rlhf__cpu_row_shares(r, i) || first_key(a, rlhf__cpu_row(r, i).start)))
        i++;
    return !a->window || i < r->n;
}

static uint64_t runs_bytes(const rlhf_ragged *r) { return (r->n + 1ull) * sizeof(uint32_t); }

static void forward_run_piece(const void *job, int64_t n, int own) {
    const struct fwd *f = job;
    struct piece p = piece_at(&f->cut, (size_t)n);
    const size_t i1 = f->first[p.i + 1];
    float *scratch = f->ws + (size_t)own * f->stride;
    p.i = f->first[p.i];
    if (i1 == p.i + 1)
        forward_item(f, p, (struct piece){f->r->n, 0, 0}, scratch);
    else
        forward_run(f, p, i1, scratch);
}

// Forward for rows with a single query, if some of them share a prefix.
static rlhf_status forward_runs(struct rlhf__cpu *cpu, struct fwd *f) {
    void *ws_first = NULL;
    RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_ATTN_RUNS, runs_bytes(f->r), &ws_first));
    const uint32_t runs = find_runs(f->a, f->r, ws_first);
    f->first = ws_first;
    f->cut = cut_of(f->a, runs, cpu->threads);
    rlhf__split_deal(cpu, cpu->threads, (int64_t)(runs * f->cut.a_row),
                     chunk_of(f->cut.a_row, runs, cpu->threads), forward_run_piece, f);
    return RLHF_OK;
}

static void forward_piece(const void *job, int64_t n, int own) {
    const struct fwd *f = job;
    forward_item(f, piece_at(&f->cut, (size_t)n), piece_at(&f->cut, (size_t)n + 1),
                 f->ws + (size_t)own * f->stride);
}

static rlhf_status attention(void *ctx, const rlhf_attn *attn, const rlhf_ragged *rows,
                             rlhf_dev out, rlhf_dev lse, rlhf_dev q, rlhf_dev k, rlhf_dev v) {
    struct rlhf__cpu *cpu = ctx;
    rlhf_attn own_attn;
    rlhf_ragged own_rows;
    RLHF_TRY(read_geometry(cpu, "attention", &own_attn, attn));
    RLHF_TRY(rlhf__cpu_read_ragged(cpu, "attention", &own_rows, rows, own_attn.window));
    const rlhf_attn *a = &own_attn;
    const rlhf_ragged *r = &own_rows;
    struct fwd f = {cpu, a, r, out, lse, q, k, v, cut_of(a, r->n, cpu->threads), NULL, 0, NULL};
    RLHF_TRY(scratch(cpu, RLHF__WS_ATTN,
                     rlhf__attn_scratch(r->max_q, forward_keys(a, r), a->head_dim), &f.ws,
                     &f.stride));
    if (has_runs(a, r) && sees_prefix(a, r)) return forward_runs(cpu, &f);
    const int64_t count = (int64_t)(r->n * f.cut.a_row);
    if (r->max_q <= FEW_QUERIES) // for look_ahead, one thread should process adjacent rows
        rlhf__split_run_own(cpu, cpu->threads, count, forward_piece, &f);
    else
        rlhf__split_deal(cpu, cpu->threads, count, chunk_of(f.cut.a_row, r->n, cpu->threads),
                         forward_piece, &f);
    return RLHF_OK;
}

// The tensors of a backward call, and the threads' scratch memory.
struct bwd {
    struct rlhf__cpu *cpu;
    const rlhf_attn *a;
    const rlhf_ragged *r;
    rlhf_dev dq, dk, dv, dout, out, lse, q, k, v;
    float *ws;
    size_t stride;
};

// Set up the item for a piece of row p.i, which is one of the rows i0 .. i1-1. Row i0 is the prefix
// that the others of these rows share, or it is the only row. All of these rows use the same
// scratch memory.
static struct rlhf__attn_item backward_row(const struct bwd *b, size_t i0, size_t i1,
                                           struct piece p) {
    const rlhf_attn *a = b->a;
    size_t es = rlhf_dtype_size(a->dtype), hd = (size_t)a->head_dim, q = p.h * hd;
    size_t col = p.h / p.group * hd, ks = (size_t)a->kv_stride;
    struct rlhf__row row = rlhf__cpu_row(b->r, p.i);
    struct rlhf__attn_item it = item_of(a, row, p, es, b->q, b->k, b->v, b->lse);
    size_t o = (row.t0 * (size_t)a->out_stride + q) * es, kv = ((size_t)row.k0 * ks + col) * es;
    it.out = rlhf__cpu_mem(rlhf_dev_at(b->out, o));
    it.dout = rlhf__cpu_mem(rlhf_dev_at(b->dout, o));
    it.dq = rlhf__cpu_mem(rlhf_dev_at(b->dq, (row.t0 * (size_t)a->q_stride + q) * es));
    it.dk = rlhf__cpu_mem(rlhf_dev_at(b->dk, kv));
    it.dv = rlhf__cpu_mem(rlhf_dev_at(b->dv, kv));
    it.sum_on = p.i == i0 && i1 > i0 + 1;
    it.sum_out = p.i > i0 && p.i + 1 == i1;
    if (it.sum_out) {
        it.pdk = rlhf__cpu_mem(rlhf_dev_at(b->dk, ((size_t)row.p0 * ks + col) * es));
        it.pdv = rlhf__cpu_mem(rlhf_dev_at(b->dv, ((size_t)row.p0 * ks + col) * es));
    }
    return it;
}

// One piece of backward: row p.i and all rows that share its keys.
static void backward_item(const struct bwd *b, struct piece p, float *scratch) {
    const size_t i0 = p.i, es = rlhf_dtype_size(b->a->dtype);
    size_t i1 = i0 + 1;
    uint32_t room = rlhf__cpu_row(b->r, i0).nk;
    for (; i1 < b->r->n && rlhf__cpu_row_shares(b->r, i1); i1++) {
        uint32_t nk = rlhf__cpu_row(b->r, i1).nk;
        if (nk > room) room = nk;
    }
    if (!room) return;
    const size_t after = p.h + p.group; // the query head after this piece
    for (; p.i < i1; p.i++) {
        struct rlhf__attn_item it = backward_row(b, i0, i1, p);
        if (after < (size_t)b->a->heads)
            look_next(&it, b->a, b->r, p, (struct piece){p.i, after, p.group}, es);
        else if (i1 == i0 + 1)
            look_next(&it, b->a, b->r, p, (struct piece){p.i + 1, 0, p.group}, es);
        it.scratch = scratch;
        it.room = room;
        b->cpu->hot.attn_bwd(&it);
    }
}

// Piece n: the query heads of one key head of a row.
static void backward_piece(const void *job, int64_t n, int own) {
    const struct bwd *b = job;
    const size_t keys = (size_t)b->a->kv_heads, group = (size_t)b->a->heads / keys;
    const struct piece p = {(size_t)n / keys, (size_t)n % keys * group, group};
    if (rlhf__cpu_row_shares(b->r, p.i)) return; // processed with the row that has the prefix
    backward_item(b, p, b->ws + (size_t)own * b->stride);
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
    struct bwd b = {cpu, a, r, dq, dk, dv, dout, out, lse, q, k, v, NULL, 0};
    RLHF_TRY(scratch(cpu, RLHF__WS_ATTN_BWD,
                     rlhf__attn_scratch_bwd(r->max_q, r->max_k, a->head_dim), &b.ws, &b.stride));
    uint64_t alone = 0; // rows without a prefix
    for (uint32_t i = 0; i < r->n; i++)
        alone += !rlhf__cpu_row_shares(r, i);
    rlhf__split_deal(cpu, cpu->threads, (int64_t)r->n * a->kv_heads,
                     chunk_of((size_t)a->kv_heads, alone, cpu->threads), backward_piece, &b);
    return RLHF_OK;
}

// The arrays of c->ragged are not read here, so only its sizes are checked.
void rlhf__cpu_needs_attention(struct rlhf__cpu *cpu, const rlhf_call *c,
                               struct rlhf__cpu_needs *n) {
    rlhf_attn a;
    rlhf_ragged r;
    const int backward = c->op == RLHF_COMPUTE_OP(attention_bwd);
    if (!c->attn || !c->ragged || (!backward && c->op != RLHF_COMPUTE_OP(attention))) return;
    if (read_geometry(cpu, "workspace_bytes", &a, c->attn) < 0) return;
    if (rlhf_copy_in(&r, sizeof r, c->ragged, RLHF_SIZE_TO(rlhf_ragged, prefix_len)) < 0) return;
    if (backward) {
        const size_t floats = rlhf__attn_scratch_bwd(r.max_q, r.max_k, a.head_dim);
        rlhf__cpu_need(n, RLHF__WS_ATTN_BWD, scratch_bytes(cpu, floats));
        return;
    }
    const size_t floats = rlhf__attn_scratch(r.max_q, forward_keys(&a, &r), a.head_dim);
    rlhf__cpu_need(n, RLHF__WS_ATTN, scratch_bytes(cpu, floats));
    if (has_runs(&a, &r)) rlhf__cpu_need(n, RLHF__WS_ATTN_RUNS, runs_bytes(&r));
}

rlhf_status rlhf__cpu_supports_attention(struct rlhf__cpu *cpu, const char *op,
                                         const rlhf_attn *from) {
    rlhf_attn a;
    return read_geometry(cpu, op, &a, from);
}

void rlhf__cpu_fill_attention(rlhf_compute *t) {
    t->attention = attention;
    t->attention_bwd = attention_bwd;
}
