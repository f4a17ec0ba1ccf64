// paper_products.c: weights on paper, and what products with them take (paper_inner.h).
#include "model/paper_inner.h"

#include <stdlib.h>
#include <unistd.h>

// Ops that do nothing name their arguments as the table does.
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define BLOCK_K 4096u // the longest sum of a product that is not cut

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
    const uint64_t one =
        rlhf__paper_times(rlhf__paper_times((uint64_t)k, (uint64_t)n), rlhf_dtype_size(dtype));
    return flags & RLHF_WEIGHT_BACKWARD ? 2 * one : one;
}

static uint64_t p_weight_bytes(void *ctx, int32_t k, int32_t n, int32_t dtype, uint32_t flags) {
    return weight_bytes(ctx, k, n, dtype, flags);
}

// *out = the weight that w describes.
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

// bf16 without products of bf16 is computed on f32 copies.
static int is_widened(const struct rlhf__paper *p, int32_t dtype) {
    return dtype == RLHF_BF16 && p->real->device == RLHF_DEVICE_CPU &&
           !(p->real->dtypes & (1u << RLHF_BF16));
}

static const struct sheet *sheet_of(const rlhf_weight *w) { return (const void *)w; }

// A weight in blocks, or its gradient, with all its zeros.
static void dense_blocks(struct rlhf__paper *p, const struct sheet *w) {
    rlhf__paper_work(
        p, WORK_SUM,
        rlhf__paper_times(rlhf__paper_times((uint64_t)w->k, (uint64_t)w->n), sizeof(float)));
}

static rlhf_status p_weight_pack(void *ctx, rlhf_weight *weight, rlhf_dev src_f32) {
    const struct sheet *w = sheet_of(weight);
    if (w->in_blocks) dense_blocks(ctx, w);
    if (is_widened(ctx, w->dtype))
        rlhf__paper_work(ctx, WORK_PRODUCT,
                         rlhf__paper_times(rlhf__paper_times((uint64_t)w->k, (uint64_t)w->n), 6));
    return RLHF_OK;
}

void rlhf__paper_product(struct rlhf__paper *p, const rlhf_weight *weight, uint64_t rows) {
    const struct sheet *w = sheet_of(weight);
    const uint64_t cells = rlhf__paper_times(rows, (uint64_t)w->k + (uint64_t)w->n);
    if (is_widened(p, w->dtype))
        rlhf__paper_work(p, WORK_WIDE, rlhf__paper_times(cells, sizeof(float)));
}

static rlhf_status p_linear(void *ctx, rlhf_dev out, int32_t out_dtype, int32_t accumulate,
                            rlhf_dev x, const rlhf_weight *w, rlhf_dev bias, uint32_t rows) {
    rlhf__paper_product(ctx, w, rows);
    return RLHF_OK;
}
static rlhf_status p_linear_add(void *ctx, rlhf_dev out, rlhf_dev add, rlhf_dev x,
                                const rlhf_weight *w, rlhf_dev bias, uint32_t rows) {
    rlhf__paper_product(ctx, w, rows);
    return RLHF_OK;
}
// A CPU that keeps a weight once turns it for the way back, BLOCK_K / 2 steps of a longer sum at a
// time. Bytes of that.
static uint64_t turned(const struct rlhf__paper *p, const struct sheet *w) {
    const uint64_t deep = (uint64_t)w->n <= BLOCK_K ? (uint64_t)w->n : BLOCK_K / 2;
    const uint64_t size = is_widened(p, w->dtype) ? sizeof(float) : rlhf_dtype_size(w->dtype);
    if (p->real->device != RLHF_DEVICE_CPU || p->keeps_none) return 0;
    if (weight_bytes(p, w->k, w->n, w->dtype, w->flags) >
        weight_bytes(p, w->k, w->n, w->dtype, w->flags & ~(uint32_t)RLHF_WEIGHT_BACKWARD))
        return 0; // it is kept both ways
    return rlhf__paper_times(rlhf__paper_times(deep, (uint64_t)w->k), size);
}

void rlhf__paper_product_dx(struct rlhf__paper *p, const rlhf_weight *weight, uint64_t rows) {
    rlhf__paper_product(p, weight, rows);
    rlhf__paper_work(p, WORK_PRODUCT, turned(p, sheet_of(weight)));
}

static rlhf_status p_linear_dx(void *ctx, rlhf_dev dx, int32_t dx_dtype, int32_t accumulate,
                               rlhf_dev dy, const rlhf_weight *w, uint32_t rows) {
    rlhf__paper_product_dx(ctx, w, rows);
    return RLHF_OK;
}
// Rows of a tile: of AMX in bf16 and of AVX-512 in f32; other levels' are no larger.
static uint64_t tile_rows(uint64_t size) { return size == 2 ? 32 : 12; }

// Rows of a block of a product with `rows` rows of `bytes` each, whole tiles: they fit half of the
// second-level cache, within bounds.
static uint64_t block_rows(uint64_t rows, uint64_t bytes, uint64_t tile) {
    const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE); // 0: not known
    const uint64_t fit = (uint64_t)(l2 > 0 ? l2 : 1 << 20) / 2 / (bytes ? bytes : 1);
    const uint64_t least = 4 * tile;
    const uint64_t most = (fit < least ? least : fit > 720 ? 720 : fit) / tile * tile;
    const uint64_t blocks = (rows + most - 1) / most;
    return blocks ? rlhf__paper_up((rows + blocks - 1) / blocks, tile) : 0;
}

// One operand is packed for the call, and rows of the other.
void rlhf__paper_product_dw(struct rlhf__paper *p, const rlhf_weight *weight, uint64_t rows) {
    const struct sheet *w = sheet_of(weight);
    const uint64_t k = (uint64_t)w->k, n = (uint64_t)w->n;
    const int out_in = (w->flags & RLHF_WEIGHT_OUT_IN) != 0, wide = is_widened(p, w->dtype);
    const uint64_t size = wide ? sizeof(float) : rlhf_dtype_size(w->dtype);
    const uint64_t tile = tile_rows(size);
    const uint64_t deep = rlhf__paper_up(rows < BLOCK_K ? rows : BLOCK_K, tile);
    if (wide)
        rlhf__paper_work(p, WORK_WIDE,
                         rlhf__paper_times(rlhf__paper_times(rows, k + n), sizeof(float)));
    rlhf__paper_work(p, WORK_PRODUCT,
                     rlhf__paper_times(rlhf__paper_times(rows, out_in ? k : n), size));
    rlhf__paper_on_host(
        p, WORK_BLOCK,
        rlhf__paper_times(block_rows(out_in ? n : k, deep * size, tile), deep * size));
}

// The right operand is packed for the call, and rows of the left one; both are widened first
// where bf16 has no products.
void rlhf__paper_product_plain(struct rlhf__paper *p, uint64_t rows, uint64_t depth,
                               uint64_t cols) {
    const int32_t dtype = p->bf16_weights ? RLHF_BF16 : RLHF_F32;
    const int wide = is_widened(p, dtype);
    const uint64_t size = wide ? sizeof(float) : rlhf_dtype_size(dtype);
    const uint64_t tile = tile_rows(size);
    const uint64_t step = depth <= BLOCK_K ? depth : BLOCK_K / 2;
    if (p->real->device != RLHF_DEVICE_CPU) return;
    if (wide)
        rlhf__paper_work(p, WORK_WIDE,
                         rlhf__paper_times(rlhf__paper_times(rows + cols, depth), sizeof(float)));
    rlhf__paper_work(p, WORK_PRODUCT,
                     rlhf__paper_times(rlhf__paper_times(depth, rlhf__paper_up(cols, 32)), size));
    rlhf__paper_on_host(p, WORK_BLOCK,
                        rlhf__paper_times(block_rows(rows, step * size, tile), step * size));
}

static rlhf_status p_linear_dw(void *ctx, rlhf_dev dw, rlhf_dev db, rlhf_dev x, rlhf_dev dy,
                               const rlhf_weight *weight, uint32_t rows) {
    rlhf__paper_product_dw(ctx, weight, rows);
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
    rlhf__paper_product(p, a->w, a->rows);
    rlhf__paper_product(p, a->w2, a->rows);
    if (a->across) rlhf__paper_work(p, WORK_PRODUCT, turned(p, w) + turned(p, o));
    if (a->out_dtype != RLHF_BF16) return RLHF_OK;
    if (cut || is_widened(p, w->dtype) || p->real->device != RLHF_DEVICE_CPU)
        rlhf__paper_work(p, WORK_SUM,
                         rlhf__paper_times(rlhf__paper_times(a->rows, width), sizeof(float)));
    else
        rlhf__paper_on_host(p, WORK_SUM, 32 * sizeof(float) * block_rows(a->rows, depth * 2, 32));
    return RLHF_OK;
}

// clang-format off
#define OPS(X)                                                                                     \
    X(weight_create) X(weight_destroy) X(weight_pack) X(weight_bytes) X(weight_create_blocks)      \
    X(linear) X(linear_add) X(linear_dx) X(linear_dw) X(linear_sum)
// clang-format on

void rlhf__paper_fill_products(rlhf_compute *t, const rlhf_compute *real) { OPS(RLHF__PAPER_PUT) }
