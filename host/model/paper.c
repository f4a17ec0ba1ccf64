// paper.c: see paper.h. Addresses count up from a place where nothing is; what is kept of an
// allocation is its place, its length and whose it is.
#include "model/paper.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Ops that do nothing name their arguments as the table does.
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define FIRST ((uint64_t)1 << 40) // bytes; an address below is nobody's
#define MOST  ((uint64_t)1 << 60) // that can be given out

#define BLOCK_K 4096u // the longest sum of a product that is not cut

// Workspaces of a backend: each grows to the largest size asked for and stays.
enum work {
    WORK_LOGITS,
    WORK_REF,
    WORK_DLOGITS,
    WORK_PRODUCT, // the operand that is packed for a call
    WORK_BLOCK,   // rows of the other, a thread
    WORK_WIDE,
    WORK_KEEP, // top-k and top-p, a thread
    WORK_ATTENTION,
    WORK_ATTENTION_BWD,
    WORK_PARTIAL,
    WORK_MUON,
    WORK_SUM, // f32 sums that are rounded, or scattered, at the end
    WORK_N
};

struct block {
    uint64_t at, bytes;
    uint32_t owner;
    int32_t use; // -1: released
};

struct rlhf__paper {
    rlhf_compute table;
    const rlhf_compute *real;
    uint64_t budget, next, now, peak;
    struct rlhf__uses uses, at_peak;
    uint32_t owner, packer; // packer: whose weights are that are packed
    int32_t use, reserved2;
    struct block *block; // [n], ascending
    size_t n, cap;
    int32_t keeps_none, reserved; // 1: the backend has no workspaces between calls
    uint64_t work[WORK_N];
    char error[160];
};

// A weight on paper.
struct sheet {
    int32_t k, n, dtype;
    uint32_t flags;
    int32_t in_blocks, reserved;
    rlhf_dev at;
};

const char *rlhf__use_name(int32_t use) {
    static const char *const names[] = {"weights",     "packed weights", "gradients", "moments",
                                        "activations", "cache",          "workspace", "rows",
                                        "undo copy",   "program"};
    return use >= 0 && use < RLHF__USES ? names[use] : "memory";
}

uint32_t rlhf__uses_owner(struct rlhf__uses *u, const char *name) {
    uint32_t i = 0;
    while (i < u->n && strcmp(u->name[i], name) != 0)
        i++;
    if (i == RLHF__OWNERS) return i - 1;
    if (i == u->n) snprintf(u->name[u->n++], sizeof u->name[0], "%s", name);
    return i;
}

uint64_t rlhf__uses_total(const struct rlhf__uses *u) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < u->n; i++)
        for (int32_t k = 0; k < RLHF__USES; k++)
            sum += u->bytes[i][k];
    return sum;
}

// ---- the account ----

static void grow(struct rlhf__paper *p, uint32_t owner, int32_t use, uint64_t bytes) {
    p->uses.bytes[owner][use] += bytes;
    p->now += bytes;
    if (p->now <= p->peak) return;
    p->peak = p->now;
    p->at_peak = p->uses;
}

static void shrink(struct rlhf__paper *p, uint32_t owner, int32_t use, uint64_t bytes) {
    p->uses.bytes[owner][use] -= bytes;
    p->now -= bytes;
}

static rlhf_status take(struct rlhf__paper *p, uint64_t bytes, int32_t use, rlhf_dev *out) {
    *out = NULL;
    if (p->n == p->cap) {
        const size_t cap = p->cap ? 2 * p->cap : 256;
        struct block *more = realloc(p->block, cap * sizeof *more);
        if (more) p->block = more;
        if (more) p->cap = cap;
    }
    if (p->n == p->cap || bytes > MOST || p->next > MOST) {
        snprintf(p->error, sizeof p->error, "out of memory: %llu bytes asked for",
                 (unsigned long long)bytes);
        return RLHF_E_NOMEM;
    }
    p->block[p->n++] = (struct block){p->next, bytes, p->owner, use};
    *out = (rlhf_dev)(uintptr_t)p->next;
    p->next += (bytes + 127) / 64 * 64;
    grow(p, p->owner, use, bytes);
    return RLHF_OK;
}

static struct block *find(const struct rlhf__paper *p, rlhf_dev dev) {
    const uint64_t at = (uintptr_t)dev;
    size_t from = 0, to = p->n; // the last block that does not begin behind it
    while (to - from > 1) {
        const size_t mid = from + (to - from) / 2;
        if (p->block[mid].at <= at)
            from = mid;
        else
            to = mid;
    }
    if (p->n == 0 || p->block[from].at > at || p->block[from].use < 0) return NULL;
    return &p->block[from];
}

static void give(struct rlhf__paper *p, rlhf_dev dev) {
    struct block *b = dev ? find(p, dev) : NULL;
    if (!b) return;
    shrink(p, b->owner, b->use, b->bytes);
    b->use = -1;
    while (p->n && p->block[p->n - 1].use < 0)
        p->n--;
}

static uint64_t up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }
static uint64_t times(uint64_t a, uint64_t b) { return b && a > MOST / b ? MOST : a * b; }

// Workspaces are the backend's, whoever makes them grow.
static void work(struct rlhf__paper *p, enum work which, uint64_t bytes) {
    if (bytes <= p->work[which] || p->keeps_none) return;
    grow(p, rlhf__uses_owner(&p->uses, p->real->name), RLHF__USE_WORKSPACE, bytes - p->work[which]);
    p->work[which] = bytes;
}

// A workspace of every thread of a CPU.
static void on_host(struct rlhf__paper *p, enum work which, uint64_t bytes) {
    if (p->real->device == RLHF_DEVICE_CPU) work(p, which, times(bytes, p->real->threads));
}

// ---- memory ----

static rlhf_status p_alloc(void *ctx, uint64_t bytes, rlhf_dev *out) {
    struct rlhf__paper *p = ctx;
    return take(p, bytes, p->use, out);
}
static void p_release(void *ctx, rlhf_dev dev) { give(ctx, dev); }
static uint64_t p_bytes_in_use(void *ctx) { return ((struct rlhf__paper *)ctx)->now; }
static const char *p_last_error(void *ctx) { return ((struct rlhf__paper *)ctx)->error; }

// The one thing that is really there: models write into it.
static rlhf_status p_alloc_host(void *ctx, uint64_t bytes, void **out) {
    *out = bytes > MOST ? NULL : aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (!*out) return RLHF_E_NOMEM;
    memset(*out, 0, bytes);
    return RLHF_OK;
}
static void p_release_host(void *ctx, void *at) { free(at); }

static rlhf_status p_download(void *ctx, void *host_dst, rlhf_dev src, uint64_t bytes) {
    if (bytes) memset(host_dst, 0, bytes);
    return RLHF_OK;
}
static rlhf_status p_mark(void *ctx, uint64_t *ticket) {
    *ticket = 1;
    return RLHF_OK;
}
static rlhf_status p_record(void *ctx, uint64_t key, int32_t *what) {
    *what = RLHF_RECORD_RUN;
    return RLHF_OK;
}
static rlhf_status p_sumsq(void *ctx, rlhf_dev x, uint64_t n, double *host_out) {
    *host_out = 0;
    return RLHF_OK;
}

// ---- weights and products ----

static uint64_t weight_bytes(const struct rlhf__paper *p, int32_t k, int32_t n, int32_t dtype,
                             uint32_t flags) {
    const rlhf_compute *r = p->real;
    if (RLHF_COMPUTE_HAS(r, weight_bytes)) return r->weight_bytes(r->ctx, k, n, dtype, flags);
    const uint64_t one = times(times((uint64_t)k, (uint64_t)n), rlhf_dtype_size(dtype));
    return flags & RLHF_WEIGHT_BACKWARD ? 2 * one : one;
}

static uint64_t p_weight_bytes(void *ctx, int32_t k, int32_t n, int32_t dtype, uint32_t flags) {
    return weight_bytes(ctx, k, n, dtype, flags);
}

// *out = the weight that w describes.
static rlhf_status new_sheet(struct rlhf__paper *p, const struct sheet *w, rlhf_weight **out) {
    struct sheet *own = calloc(1, sizeof *own);
    *out = NULL;
    if (!own) return RLHF_E_NOMEM;
    *own = *w;
    const uint32_t owner = p->owner;
    p->owner = p->packer;
    const rlhf_status st =
        take(p, weight_bytes(p, w->k, w->n, w->dtype, w->flags), RLHF__USE_PACKED, &own->at);
    p->owner = owner;
    if (st != RLHF_OK) {
        free(own);
        return st;
    }
    *out = (rlhf_weight *)(void *)own;
    return RLHF_OK;
}

static rlhf_status p_weight_create(void *ctx, int32_t k, int32_t n, int32_t dtype, uint32_t flags,
                                   rlhf_weight **out) {
    const struct sheet w = {.k = k, .n = n, .dtype = dtype, .flags = flags};
    return new_sheet(ctx, &w, out);
}

static rlhf_status p_weight_create_blocks(void *ctx, const rlhf_blocks *from, rlhf_weight **out) {
    rlhf_blocks a;
    RLHF_TRY(rlhf_copy_in(&a, sizeof a, from, RLHF_SIZE_TO(rlhf_blocks, scale)));
    const struct sheet w = {.k = (int32_t)a.n_blocks * a.rank,
                            .n = a.n,
                            .dtype = a.dtype,
                            .flags = a.flags | RLHF_WEIGHT_OUT_IN,
                            .in_blocks = 1};
    return new_sheet(ctx, &w, out);
}

static void p_weight_destroy(void *ctx, rlhf_weight *weight) {
    struct sheet *w = (struct sheet *)(void *)weight;
    if (!w) return;
    give(ctx, w->at);
    free(w);
}

// bf16 without products of bf16 is computed on f32 copies.
static int is_widened(const struct rlhf__paper *p, int32_t dtype) {
    return dtype == RLHF_BF16 && p->real->device == RLHF_DEVICE_CPU &&
           !(p->real->dtypes & (1u << RLHF_BF16));
}

static const struct sheet *sheet_of(const rlhf_weight *w) { return (const void *)w; }

// A weight in blocks, or its gradient, with all its zeros.
static void dense_blocks(struct rlhf__paper *p, const struct sheet *w) {
    work(p, WORK_SUM, times(times((uint64_t)w->k, (uint64_t)w->n), sizeof(float)));
}

static rlhf_status p_weight_pack(void *ctx, rlhf_weight *weight, rlhf_dev src_f32) {
    const struct sheet *w = sheet_of(weight);
    if (w->in_blocks) dense_blocks(ctx, w);
    if (is_widened(ctx, w->dtype))
        work(ctx, WORK_PRODUCT, times(times((uint64_t)w->k, (uint64_t)w->n), 6));
    return RLHF_OK;
}

static void product(struct rlhf__paper *p, const rlhf_weight *weight, uint64_t rows) {
    const struct sheet *w = sheet_of(weight);
    const uint64_t cells = times(rows, (uint64_t)w->k + (uint64_t)w->n);
    if (is_widened(p, w->dtype)) work(p, WORK_WIDE, times(cells, sizeof(float)));
}

static rlhf_status p_linear(void *ctx, rlhf_dev out, int32_t out_dtype, int32_t accumulate,
                            rlhf_dev x, const rlhf_weight *w, rlhf_dev bias, uint32_t rows) {
    product(ctx, w, rows);
    return RLHF_OK;
}
static rlhf_status p_linear_add(void *ctx, rlhf_dev out, rlhf_dev add, rlhf_dev x,
                                const rlhf_weight *w, rlhf_dev bias, uint32_t rows) {
    product(ctx, w, rows);
    return RLHF_OK;
}
static rlhf_status p_linear_dx(void *ctx, rlhf_dev dx, int32_t dx_dtype, int32_t accumulate,
                               rlhf_dev dy, const rlhf_weight *w, uint32_t rows) {
    product(ctx, w, rows);
    return RLHF_OK;
}
// Rows of a block of a product with `rows` rows of `bytes` each, whole tiles: they fit half of the
// second-level cache, within bounds.
static uint64_t block_rows(uint64_t rows, uint64_t bytes, uint64_t tile) {
    const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE); // 0: not known
    const uint64_t fit = (uint64_t)(l2 > 0 ? l2 : 1 << 20) / 2 / (bytes ? bytes : 1);
    const uint64_t most = (fit < 240 ? 240 : fit > 720 ? 720 : fit) / tile * tile;
    const uint64_t blocks = (rows + most - 1) / most;
    return blocks ? up((rows + blocks - 1) / blocks, tile) : 0;
}

// One operand is packed for the call, and rows of the other.
static void product_dw(struct rlhf__paper *p, const rlhf_weight *weight, uint64_t rows) {
    const struct sheet *w = sheet_of(weight);
    const uint64_t k = (uint64_t)w->k, n = (uint64_t)w->n;
    const int out_in = (w->flags & RLHF_WEIGHT_OUT_IN) != 0, wide = is_widened(p, w->dtype);
    const uint64_t size = wide ? sizeof(float) : rlhf_dtype_size(w->dtype);
    const uint64_t tile = size == 2 ? 32 : 16; // those of AMX; others take a little less
    const uint64_t deep = up(rows < BLOCK_K ? rows : BLOCK_K, tile);
    if (wide) work(p, WORK_WIDE, times(times(rows, k + n) + times(k, n), sizeof(float)));
    work(p, WORK_PRODUCT, times(times(rows, out_in ? k : n), size));
    on_host(p, WORK_BLOCK, times(block_rows(out_in ? n : k, deep * size, tile), deep * size));
}

static rlhf_status p_linear_dw(void *ctx, rlhf_dev dw, rlhf_dev db, rlhf_dev x, rlhf_dev dy,
                               const rlhf_weight *weight, uint32_t rows) {
    product_dw(ctx, weight, rows);
    if (sheet_of(weight)->in_blocks) dense_blocks(ctx, sheet_of(weight));
    return RLHF_OK;
}

// A result in bf16 is summed in f32 first: a panel of a block of rows a thread, or all of it where
// the sum over k is cut or the backend has no such products.
static rlhf_status p_linear_sum(void *ctx, const rlhf_linear_sum *a) {
    struct rlhf__paper *p = ctx;
    const struct sheet *w = sheet_of(a->w), *o = sheet_of(a->w2);
    const uint64_t depth = (uint64_t)(a->across ? w->n : w->k);
    const uint64_t width = (uint64_t)(a->across ? w->k : w->n);
    const int cut = depth > BLOCK_K || (a->across ? o->n : o->k) > (int32_t)BLOCK_K;
    product(p, a->w, a->rows);
    product(p, a->w2, a->rows);
    if (a->out_dtype != RLHF_BF16) return RLHF_OK;
    if (cut || is_widened(p, w->dtype) || p->real->device != RLHF_DEVICE_CPU)
        work(p, WORK_SUM, times(times(a->rows, width), sizeof(float)));
    else
        on_host(p, WORK_SUM, 32 * sizeof(float) * block_rows(a->rows, depth * 2, 32));
    return RLHF_OK;
}

// ---- the language-model head ----

// The backends' own where nothing is set: 4 GiB of a card, and of the CPU's memory 384 MiB or what
// 1024 rows of a larger vocabulary take.
static uint64_t budget_of(const struct rlhf__paper *p, uint64_t vocab) {
    const uint64_t least = (uint64_t)384 << 20, rows = times(vocab, 6 * 1024);
    if (p->budget) return p->budget;
    if (p->real->device != RLHF_DEVICE_CPU) return (uint64_t)4096 << 20;
    return rows < least ? least : rows;
}

// Logits of as many rows as the budget has room for, with those of the reference and, for backward
// in bf16, their derivatives.
static uint64_t logits(struct rlhf__paper *p, const rlhf_lm_head *a, int with_ref) {
    const uint64_t n = (uint64_t)a->vocab, half = a->dtype == RLHF_BF16 ? 2 : 0;
    uint64_t fit = budget_of(p, n) / (n * (4u + (with_ref ? 4u : 0u) + half));
    if (fit < a->rows) fit = fit < 64 ? 32 : fit - fit % 64;
    if (fit > a->rows) fit = a->rows;
    work(p, WORK_LOGITS, times(fit * n, 4));
    if (with_ref) work(p, WORK_REF, times(fit * n, 4));
    product(p, a->weight, fit);
    return fit;
}

static rlhf_status p_lm_head(void *ctx, const rlhf_lm_head *a) {
    logits(ctx, a, a->kl != NULL);
    return RLHF_OK;
}
static rlhf_status p_lm_head_bwd(void *ctx, const rlhf_lm_head *a) {
    struct rlhf__paper *p = ctx;
    const uint64_t fit = logits(p, a, a->d_kl != NULL);
    if (a->dtype == RLHF_BF16) work(p, WORK_DLOGITS, times(fit * (uint64_t)a->vocab, 2));
    if (a->d_weight) product_dw(p, a->weight, fit);
    return RLHF_OK;
}
static rlhf_status p_lm_sample(void *ctx, const rlhf_lm_sample *a) {
    const rlhf_lm_head as_head = {
        .rows = a->rows, .vocab = a->vocab, .dtype = a->dtype, .weight = a->weight};
    logits(ctx, &as_head, 0);
    on_host(ctx, WORK_KEEP, 8 * (uint64_t)a->vocab);
    if (a->id) return RLHF_OK;
    if (a->host_id) memset(a->host_id, 0, a->rows * sizeof *a->host_id);
    if (a->host_logp) memset(a->host_logp, 0, a->rows * sizeof *a->host_logp);
    if (a->host_support)
        memset(a->host_support, 0,
               a->rows * (size_t)rlhf_support_words(a->vocab) * sizeof *a->host_support);
    return RLHF_OK;
}

static rlhf_status p_muon(void *ctx, rlhf_dev w, rlhf_dev g, rlhf_dev mom, int32_t rows,
                          int32_t cols, const rlhf_muon *a) {
    const uint64_t n = (uint64_t)(rows < cols ? rows : cols);
    const uint64_t m = (uint64_t)(rows < cols ? cols : rows);
    work(ctx, WORK_MUON, times(times(n, 2 * m + 3 * n), sizeof(float)));
    return RLHF_OK;
}

// Scores of a few queries with all keys, and keys and values in another order.
static rlhf_status p_attention(void *ctx, const rlhf_attn *a, const rlhf_ragged *r, rlhf_dev out,
                               rlhf_dev lse, rlhf_dev q, rlhf_dev k, rlhf_dev v) {
    const uint64_t keys = up(r->max_k, 64), width = up((uint64_t)a->head_dim, 16);
    const uint64_t floats = (keys + r->max_k) * width + 8 * (keys + width);
    on_host(ctx, WORK_ATTENTION, times(up(floats, 64) + 64, sizeof(float)));
    return RLHF_OK;
}
static rlhf_status p_attention_bwd(void *ctx, const rlhf_attn *a, const rlhf_ragged *r, rlhf_dev dq,
                                   rlhf_dev dk, rlhf_dev dv, rlhf_dev dout, rlhf_dev out,
                                   rlhf_dev lse, rlhf_dev q, rlhf_dev k, rlhf_dev v) {
    const uint64_t keys = up(r->max_k, 64), width = up((uint64_t)a->head_dim, 16);
    const uint64_t floats = 5 * keys * width + 128 * (keys + width) + 8 * width;
    on_host(ctx, WORK_ATTENTION_BWD, times(up(floats, 64) + 64, sizeof(float)));
    return RLHF_OK;
}

// Sums over rows: up to 64 partial ones.
static rlhf_status p_norm_bwd(void *ctx, rlhf_dev dx, int32_t accumulate, rlhf_dev dgamma,
                              rlhf_dev dbeta, rlhf_dev dy, int32_t dy_dtype, rlhf_dev x,
                              rlhf_dev stats, rlhf_dev gamma, uint32_t rows, int32_t d) {
    if (dgamma || dbeta) work(ctx, WORK_PARTIAL, times(rows < 64 ? rows : 64, 8 * (uint64_t)d));
    return RLHF_OK;
}

// ---- ops that take nothing ----

#define IDLE(name, ...)                                                                            \
    static rlhf_status p_##name(void *ctx, __VA_ARGS__) { return RLHF_OK; }

IDLE(upload, rlhf_dev dst, const void *src, uint64_t bytes)
IDLE(upload_async, rlhf_dev dst, const void *src, uint64_t bytes)
IDLE(copy, rlhf_dev dst, rlhf_dev src, uint64_t bytes)
IDLE(zero, rlhf_dev dst, uint64_t bytes)
IDLE(convert, rlhf_dev dst, int32_t to, rlhf_dev src, int32_t from, uint64_t n)
IDLE(embed, rlhf_dev out, rlhf_dev ids, rlhf_dev pos, rlhf_dev wte, rlhf_dev wpe, uint32_t rows,
     int32_t d)
IDLE(embed_bwd, rlhf_dev dwte, rlhf_dev dwpe, rlhf_dev dout, rlhf_dev ids, rlhf_dev pos,
     uint32_t rows, int32_t d, int32_t vocab, int32_t n_pos)
IDLE(norm, rlhf_dev out, int32_t out_dtype, rlhf_dev stats, rlhf_dev x, rlhf_dev gamma,
     rlhf_dev beta, double eps, uint32_t rows, int32_t d)

IDLE(act, rlhf_dev out, rlhf_dev x, int32_t kind, int32_t dtype, uint64_t n)
IDLE(act_bwd, rlhf_dev dx, rlhf_dev dy, rlhf_dev x, int32_t kind, int32_t dtype, uint64_t n)
IDLE(add, rlhf_dev dst, rlhf_dev src, int32_t src_dtype, uint64_t n)
IDLE(gather, rlhf_dev out, rlhf_dev x, rlhf_dev idx, uint32_t n, int32_t d, int32_t dtype)
IDLE(scatter_add, rlhf_dev dx, rlhf_dev dy, int32_t dy_dtype, rlhf_dev idx, uint32_t n, int32_t d)
IDLE(pool, rlhf_dev out, rlhf_dev x, rlhf_dev offset, uint32_t n, int32_t d, int32_t mode)
IDLE(pool_bwd, rlhf_dev dx, rlhf_dev dout, rlhf_dev offset, uint32_t n, int32_t d, int32_t mode)
IDLE(kv_store, rlhf_dev kc, rlhf_dev vc, rlhf_dev k, rlhf_dev v, int64_t stride,
     const rlhf_ragged *r, int32_t d, int32_t dtype)

IDLE(adamw, rlhf_dev w, rlhf_dev g, rlhf_dev m, rlhf_dev v, uint64_t n, const rlhf_adamw *a)
IDLE(sumsq_many, const rlhf_tensors *t, double max_norm, int32_t skip, rlhf_dev clip)
IDLE(adamw_many, const rlhf_tensors *t, const rlhf_adamw *a, rlhf_dev clip)
IDLE(wait, uint64_t ticket)
IDLE(rms_norm, rlhf_dev out, int32_t out_dtype, rlhf_dev stats, rlhf_dev x, rlhf_dev gamma,
     double eps, uint32_t rows, int32_t d)
IDLE(rms_norm_bwd, rlhf_dev dx, int32_t accumulate, rlhf_dev dgamma, rlhf_dev dy, int32_t dy_dtype,
     rlhf_dev x, rlhf_dev stats, rlhf_dev gamma, uint32_t rows, int32_t d)
IDLE(gate, rlhf_dev out, rlhf_dev x, int32_t kind, int32_t dtype, uint32_t rows, int32_t inner)
IDLE(gate_bwd, rlhf_dev dx, rlhf_dev dy, rlhf_dev x, int32_t kind, int32_t dtype, uint32_t rows,
     int32_t inner)
IDLE(rope, const rlhf_rope *r, rlhf_dev x, uint32_t rows)
IDLE(rope_bwd, const rlhf_rope *r, rlhf_dev dx, rlhf_dev dgamma_q, rlhf_dev dgamma_k, uint32_t rows)
static rlhf_status p_sync(void *ctx) { return RLHF_OK; }
static rlhf_status p_record_end(void *ctx) { return RLHF_OK; }
#define p_download_async p_download

// clang-format off
#define OPS(X)                                                                                     \
    X(last_error) X(alloc) X(release) X(bytes_in_use) X(upload) X(download) X(copy) X(zero)        \
    X(convert) X(sync) X(weight_create) X(weight_destroy) X(weight_pack) X(linear) X(linear_dx)    \
    X(linear_dw) X(embed) X(embed_bwd) X(norm) X(norm_bwd) X(act) X(act_bwd) X(add) X(gather)      \
    X(scatter_add) X(pool) X(pool_bwd) X(kv_store) X(attention) X(attention_bwd) X(lm_head)        \
    X(lm_head_bwd) X(lm_sample) X(sumsq) X(adamw) X(muon) X(alloc_host) X(release_host)            \
    X(upload_async) X(download_async) X(mark) X(wait) X(linear_add) X(sumsq_many) X(adamw_many)    \
    X(record) X(record_end) X(rms_norm) X(rms_norm_bwd) X(gate) X(gate_bwd) X(rope) X(rope_bwd)    \
    X(weight_bytes) X(weight_create_blocks) X(linear_sum)
// clang-format on
#define PUT(f)                                                                                     \
    if (RLHF_COMPUTE_HAS(real, f)) t->f = p_##f;

_Static_assert(sizeof(rlhf_compute) ==
                   offsetof(rlhf_compute, linear_sum) + sizeof(((rlhf_compute *)0)->linear_sum),
               "an op that is new in the table needs its line in OPS");

// ---- life ----

rlhf_status rlhf__paper_create(const rlhf_compute *real, uint64_t budget, struct rlhf__paper **out,
                               struct rlhf__error *err) {
    *out = NULL;
    struct rlhf__paper *p = calloc(1, sizeof *p);
    if (!p) return RLHF__NOMEM(err, "out of memory for an account of memory");
    rlhf_compute *t = &p->table;
    p->real = real;
    p->next = FIRST;
    p->keeps_none = strcmp(real->name, "reference") == 0;
    p->budget = budget;
    *t = (rlhf_compute){.size = sizeof *t,
                        .device = real->device,
                        .dtypes = real->dtypes,
                        .threads = real->threads,
                        .flags = real->flags,
                        .name = real->name,
                        .detail = real->detail,
                        .ctx = p,
                        .slots_hint = real->slots_hint,
                        .microbatch_hint = real->microbatch_hint};
    OPS(PUT)
    rlhf__paper_account(p, "models", RLHF__USE_ACTIVATIONS);
    *out = p;
    return RLHF_OK;
}

void rlhf__paper_destroy(struct rlhf__paper *p) {
    if (!p) return;
    free(p->block);
    free(p);
}

const rlhf_compute *rlhf__paper_table(const struct rlhf__paper *p) { return &p->table; }

void rlhf__paper_account(struct rlhf__paper *p, const char *owner, int32_t use) {
    p->owner = p->packer = rlhf__uses_owner(&p->uses, owner);
    p->use = use;
}

void rlhf__paper_packs(struct rlhf__paper *p, const char *owner) {
    p->packer = rlhf__uses_owner(&p->uses, owner);
}

void rlhf__paper_retag(struct rlhf__paper *p, rlhf_dev dev, int32_t use) {
    struct block *b = dev ? find(p, dev) : NULL;
    if (!b) return;
    p->uses.bytes[b->owner][b->use] -= b->bytes;
    p->uses.bytes[b->owner][use] += b->bytes;
    b->use = use;
    if (p->now == p->peak) p->at_peak = p->uses;
}

const struct rlhf__uses *rlhf__paper_uses(const struct rlhf__paper *p) { return &p->uses; }
const struct rlhf__uses *rlhf__paper_peak(const struct rlhf__paper *p) { return &p->at_peak; }
