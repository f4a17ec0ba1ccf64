// paper_work.c: weights on paper, and the workspaces that backends take inside their ops
// (paper_work.h).
#include "model/paper_work.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Ops that compute nothing name their arguments as the table does.
#pragma GCC diagnostic ignored "-Wunused-parameter"

// ---- workspaces ----

static uint64_t round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }
static uint64_t times(uint64_t a, uint64_t b) {
    return b && a > RLHF__LEDGER_MOST / b ? RLHF__LEDGER_MOST : a * b;
}

// A workspace belongs to the backend, whoever makes it grow.
static void take_work(struct rlhf__paper *p, enum rlhf__paper_ws which, uint64_t bytes) {
    if (bytes <= p->work[which] || p->keeps_none) return;
    rlhf__ledger_grow(&p->ledger, rlhf__uses_owner(&p->ledger.uses, p->real->name),
                      RLHF__USE_WORKSPACE, bytes - p->work[which]);
    p->work[which] = bytes;
}

// One workspace for each thread of a CPU.
static void take_work_of_threads(struct rlhf__paper *p, enum rlhf__paper_ws which, uint64_t bytes) {
    if (p->real->device == RLHF_DEVICE_CPU) take_work(p, which, times(bytes, p->real->threads));
}

// ---- weights, and matrix products with them ----

#define BLOCK_K 4096u // the longest sum that a product does not cut

// A weight on paper.
struct sheet {
    int32_t k, n, dtype;
    uint32_t flags;
    int32_t in_blocks, reserved;
    rlhf_dev at;
};

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

// *out = a new weight as w describes it.
static rlhf_status new_sheet(struct rlhf__paper *p, const struct sheet *w, rlhf_weight **out) {
    struct sheet *own = calloc(1, sizeof *own);
    *out = NULL;
    if (!own) return rlhf__ledger_none(&p->ledger, sizeof *own);
    *own = *w;
    const uint32_t owner = p->ledger.owner;
    p->ledger.owner = p->ledger.packer;
    const rlhf_status st = rlhf__ledger_take(
        &p->ledger, weight_bytes(p, w->k, w->n, w->dtype, w->flags), RLHF__USE_PACKED, &own->at);
    p->ledger.owner = owner;
    if (st != RLHF_OK) {
        free(own);
        return st;
    }
    if (w->dtype == RLHF_BF16) p->bf16_weights = 1;
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
    rlhf__ledger_give(&((struct rlhf__paper *)ctx)->ledger, w->at);
    free(w);
}

// Without products of bf16 the backend computes on f32 copies.
static int is_widened(const struct rlhf__paper *p, int32_t dtype) {
    return dtype == RLHF_BF16 && p->real->device == RLHF_DEVICE_CPU &&
           !(p->real->dtypes & (1u << RLHF_BF16));
}

static const struct sheet *sheet_of(const rlhf_weight *w) { return (const void *)w; }

// A weight in blocks, or its gradient, as a dense matrix.
static void dense_blocks(struct rlhf__paper *p, const struct sheet *w) {
    take_work(p, WORK_SUM, times(times((uint64_t)w->k, (uint64_t)w->n), sizeof(float)));
}

static rlhf_status p_weight_pack(void *ctx, rlhf_weight *weight, rlhf_dev src_f32) {
    const struct sheet *w = sheet_of(weight);
    if (w->in_blocks) dense_blocks(ctx, w);
    if (is_widened(ctx, w->dtype))
        take_work(ctx, WORK_PRODUCT, times(times((uint64_t)w->k, (uint64_t)w->n), 6));
    return RLHF_OK;
}

static void product(struct rlhf__paper *p, const rlhf_weight *weight, uint64_t rows) {
    const struct sheet *w = sheet_of(weight);
    const uint64_t cells = times(rows, (uint64_t)w->k + (uint64_t)w->n);
    if (is_widened(p, w->dtype)) take_work(p, WORK_WIDE, times(cells, sizeof(float)));
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
// Bytes of a transposed weight: a CPU that keeps a weight once transposes it for the backward pass,
// BLOCK_K / 2 steps of a longer sum at a time.
static uint64_t turned(const struct rlhf__paper *p, const struct sheet *w) {
    const uint64_t deep = (uint64_t)w->n <= BLOCK_K ? (uint64_t)w->n : BLOCK_K / 2;
    const uint64_t size = is_widened(p, w->dtype) ? sizeof(float) : rlhf_dtype_size(w->dtype);
    if (p->real->device != RLHF_DEVICE_CPU || p->keeps_none) return 0;
    if (weight_bytes(p, w->k, w->n, w->dtype, w->flags) >
        weight_bytes(p, w->k, w->n, w->dtype, w->flags & ~(uint32_t)RLHF_WEIGHT_BACKWARD))
        return 0; // both forms are kept
    return times(times(deep, (uint64_t)w->k), size);
}

static void product_dx(struct rlhf__paper *p, const rlhf_weight *weight, uint64_t rows) {
    product(p, weight, rows);
    take_work(p, WORK_PRODUCT, turned(p, sheet_of(weight)));
}

static rlhf_status p_linear_dx(void *ctx, rlhf_dev dx, int32_t dx_dtype, int32_t accumulate,
                               rlhf_dev dy, const rlhf_weight *w, uint32_t rows) {
    product_dx(ctx, w, rows);
    return RLHF_OK;
}
// Rows of a tile: AMX's in bf16, AVX-512's in f32; tiles of other levels are not larger.
static uint64_t tile_rows(uint64_t size) { return size == 2 ? 32 : 12; }

// Rows of a block of a product with `rows` rows of `bytes` each, whole tiles: they fit half of the
// second-level cache, within bounds.
static uint64_t block_rows(uint64_t rows, uint64_t bytes, uint64_t tile) {
    const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE); // 0: not known
    const uint64_t fit = (uint64_t)(l2 > 0 ? l2 : 1 << 20) / 2 / (bytes ? bytes : 1);
    const uint64_t least = 4 * tile;
    const uint64_t most = (fit < least ? least : fit > 720 ? 720 : fit) / tile * tile;
    const uint64_t blocks = (rows + most - 1) / most;
    return blocks ? round_up((rows + blocks - 1) / blocks, tile) : 0;
}

// The call packs one operand, and rows of the other.
static void product_dw(struct rlhf__paper *p, const rlhf_weight *weight, uint64_t rows) {
    const struct sheet *w = sheet_of(weight);
    const uint64_t k = (uint64_t)w->k, n = (uint64_t)w->n;
    const int out_in = (w->flags & RLHF_WEIGHT_OUT_IN) != 0, wide = is_widened(p, w->dtype);
    const uint64_t size = wide ? sizeof(float) : rlhf_dtype_size(w->dtype);
    const uint64_t tile = tile_rows(size);
    const uint64_t deep = round_up(rows < BLOCK_K ? rows : BLOCK_K, tile);
    if (wide) take_work(p, WORK_WIDE, times(times(rows, k + n), sizeof(float)));
    take_work(p, WORK_PRODUCT, times(times(rows, out_in ? k : n), size));
    take_work_of_threads(p, WORK_BLOCK,
                         times(block_rows(out_in ? n : k, deep * size, tile), deep * size));
}

// rows times [depth, cols], neither packed beforehand, in the dtype of the run: the call packs the
// right operand and rows of the left one. Where bf16 has no products it widens both first.
static void product_plain(struct rlhf__paper *p, uint64_t rows, uint64_t depth, uint64_t cols) {
    const int32_t dtype = p->bf16_weights ? RLHF_BF16 : RLHF_F32;
    const int wide = is_widened(p, dtype);
    const uint64_t size = wide ? sizeof(float) : rlhf_dtype_size(dtype);
    const uint64_t tile = tile_rows(size);
    const uint64_t step = depth <= BLOCK_K ? depth : BLOCK_K / 2;
    if (p->real->device != RLHF_DEVICE_CPU) return;
    if (wide) take_work(p, WORK_WIDE, times(times(rows + cols, depth), sizeof(float)));
    take_work(p, WORK_PRODUCT, times(times(depth, round_up(cols, 32)), size));
    take_work_of_threads(p, WORK_BLOCK, times(block_rows(rows, step * size, tile), step * size));
}

static rlhf_status p_linear_dw(void *ctx, rlhf_dev dw, rlhf_dev db, rlhf_dev x, rlhf_dev dy,
                               const rlhf_weight *weight, uint32_t rows) {
    product_dw(ctx, weight, rows);
    if (sheet_of(weight)->in_blocks) dense_blocks(ctx, sheet_of(weight));
    return RLHF_OK;
}

// A result in bf16 is summed in f32 first: one panel of a block of rows per thread, or the whole
// result where the sum over k is cut or the backend has no such products.
static rlhf_status p_linear_sum(void *ctx, const rlhf_linear_sum *a) {
    struct rlhf__paper *p = ctx;
    const struct sheet *w = sheet_of(a->w), *o = sheet_of(a->w2);
    const uint64_t depth = (uint64_t)(a->across ? w->n : w->k);
    const uint64_t width = (uint64_t)(a->across ? w->k : w->n);
    const int cut = depth > BLOCK_K || (a->across ? o->n : o->k) > (int32_t)BLOCK_K;
    product(p, a->w, a->rows);
    product(p, a->w2, a->rows);
    if (a->across) take_work(p, WORK_PRODUCT, turned(p, w) + turned(p, o));
    if (a->out_dtype != RLHF_BF16) return RLHF_OK;
    if (cut || is_widened(p, w->dtype) || p->real->device != RLHF_DEVICE_CPU)
        take_work(p, WORK_SUM, times(times(a->rows, width), sizeof(float)));
    else
        take_work_of_threads(p, WORK_SUM, 32 * sizeof(float) * block_rows(a->rows, depth * 2, 32));
    return RLHF_OK;
}

// ---- the language-model head ----

// Without a setting the backends' own default: 4 GiB of a card (rlhf__compute_workspace sets it for
// large ones); on a CPU 384 MiB, or what 1536 rows of a larger vocabulary take.
static uint64_t budget_of(const struct rlhf__paper *p, uint64_t vocab) {
    const uint64_t least = (uint64_t)384 << 20, rows = times(vocab, 6 * 1024);
    if (p->budget) return p->budget;
    if (p->real->device != RLHF_DEVICE_CPU) return (uint64_t)4096 << 20;
    return rows < least ? least : rows;
}

// Bytes per token of the derivatives of logits in bf16; a CPU writes them over the logits.
static uint64_t half_of(const struct rlhf__paper *p, const rlhf_lm_head *a) {
    return a->dtype == RLHF_BF16 && p->real->device != RLHF_DEVICE_CPU ? 2 : 0;
}

// Rows of a block where not all fit; f32 products of a CPU take whole chains of the sums over rows.
static uint64_t part_of(const struct rlhf__paper *p, const rlhf_lm_head *a, uint64_t fit) {
    const int in_f32 = a->dtype == RLHF_F32 || !(p->real->dtypes & 1u << RLHF_BF16);
    if (p->real->device != RLHF_DEVICE_CPU || !in_f32) return fit < 64 ? 32 : fit - fit % 64;
    return fit < 256 ? 256 : fit - fit % 256;
}

// Logits of as many rows as fit the budget, with the reference's logits and, for a backward pass in
// bf16, their derivatives. Returns these rows.
static uint64_t logits(struct rlhf__paper *p, const rlhf_lm_head *a, int with_ref) {
    const uint64_t n = (uint64_t)a->vocab, half = half_of(p, a);
    uint64_t fit = budget_of(p, n) / (n * (4u + (with_ref ? 4u : 0u) + half));
    if (fit < a->rows) fit = part_of(p, a, fit);
    if (fit > a->rows) fit = a->rows;
    take_work(p, WORK_LOGITS, times(fit * n, 4));
    if (with_ref) take_work(p, WORK_REF, times(fit * n, 4));
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
    take_work(p, WORK_DLOGITS, times(fit * (uint64_t)a->vocab, half_of(p, a)));
    if (a->d_hidden) product_dx(p, a->weight, fit);
    if (a->d_weight) product_dw(p, a->weight, fit);
    return RLHF_OK;
}
static rlhf_status p_lm_sample(void *ctx, const rlhf_lm_sample *a) {
    const rlhf_lm_head as_head = {
        .rows = a->rows, .vocab = a->vocab, .dtype = a->dtype, .weight = a->weight};
    logits(ctx, &as_head, 0);
    take_work_of_threads(ctx, WORK_KEEP, 8 * (uint64_t)a->vocab);
    if (a->id) return RLHF_OK;
    if (a->host_id) memset(a->host_id, 0, a->rows * sizeof *a->host_id);
    if (a->host_logp) memset(a->host_logp, 0, a->rows * sizeof *a->host_logp);
    if (a->host_support)
        memset(a->host_support, 0,
               a->rows * (size_t)rlhf_support_words(a->vocab) * sizeof *a->host_support);
    return RLHF_OK;
}

// ---- attention, norms, Muon ----

static rlhf_status p_muon(void *ctx, rlhf_dev w, rlhf_dev g, rlhf_dev mom, int32_t rows,
                          int32_t cols, const rlhf_muon *a) {
    const uint64_t n = (uint64_t)(rows < cols ? rows : cols);
    const uint64_t m = (uint64_t)(rows < cols ? cols : rows);
    take_work(ctx, WORK_MUON, times(times(n, 2 * m + 3 * n), sizeof(float)));
    if (a->ns_steps < 1) return RLHF_OK;
    product_plain(ctx, n, m, n); // X X^T
    product_plain(ctx, n, n, m); // the polynomial of it times X
    return RLHF_OK;
}

// Scores of a few queries with all keys; keys and values in another order.
static rlhf_status p_attention(void *ctx, const rlhf_attn *a, const rlhf_ragged *r, rlhf_dev out,
                               rlhf_dev lse, rlhf_dev q, rlhf_dev k, rlhf_dev v) {
    const uint64_t keys = round_up(r->max_k, 64), width = round_up((uint64_t)a->head_dim, 16);
    const uint64_t floats = (keys + r->max_k) * width + 8 * (keys + width);
    take_work_of_threads(ctx, WORK_ATTENTION, times(round_up(floats, 64) + 64, sizeof(float)));
    return RLHF_OK;
}
static rlhf_status p_attention_bwd(void *ctx, const rlhf_attn *a, const rlhf_ragged *r, rlhf_dev dq,
                                   rlhf_dev dk, rlhf_dev dv, rlhf_dev dout, rlhf_dev out,
                                   rlhf_dev lse, rlhf_dev q, rlhf_dev k, rlhf_dev v) {
    const uint64_t keys = round_up(r->max_k, 64), width = round_up((uint64_t)a->head_dim, 16);
    const uint64_t floats = 5 * keys * width + 128 * (keys + width) + 8 * width;
    take_work_of_threads(ctx, WORK_ATTENTION_BWD, times(round_up(floats, 64) + 64, sizeof(float)));
    return RLHF_OK;
}

// Up to 64 partial sums over rows.
static rlhf_status p_norm_bwd(void *ctx, rlhf_dev dx, int32_t accumulate, rlhf_dev dgamma,
                              rlhf_dev dbeta, rlhf_dev dy, int32_t dy_dtype, rlhf_dev x,
                              rlhf_dev stats, rlhf_dev gamma, uint32_t rows, int32_t d) {
    if (dgamma || dbeta)
        take_work(ctx, WORK_PARTIAL, times(rows < 64 ? rows : 64, 8 * (uint64_t)d));
    return RLHF_OK;
}

// clang-format off
#define OPS(X)                                                                                     \
    X(weight_create) X(weight_destroy) X(weight_pack) X(weight_bytes) X(weight_create_blocks)      \
    X(linear) X(linear_add) X(linear_dx) X(linear_dw) X(linear_sum) X(lm_head) X(lm_head_bwd)      \
    X(lm_sample) X(muon) X(attention) X(attention_bwd) X(norm_bwd)
// clang-format on

void rlhf__paper_fill_work(rlhf_compute *t, const rlhf_compute *real) { OPS(RLHF__PAPER_PUT) }
