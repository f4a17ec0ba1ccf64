// weight.c: weight matrices of the reference backend: create, fill from f32, destroy.
#include "weight.h"
#include "number.h"
#include "ops.h"
#include <stdlib.h>

// Returns RLHF_OK if a weight with these arguments can be created.
static rlhf_status check_shape(struct rlhf__ref *r, const char *op, int32_t k, int32_t n,
                               int32_t dtype, uint32_t flags) {
    RLHF_TRY(rlhf__ref_check_dtype(r, op, dtype));
    if (k < 1 || n < 1)
        return rlhf__ref_fail(r, RLHF_E_INVALID, "k = %d, n = %d, both must be at least 1", k, n);
    if (flags & ~(uint32_t)RLHF_WEIGHT_KNOWN)
        return rlhf__ref_fail(r, RLHF_E_UNSUPPORTED, "flags 0x%x, allowed bits are 0x%x", flags,
                              (unsigned)RLHF_WEIGHT_KNOWN);
    return RLHF_OK;
}

static uint64_t weight_bytes(void *ctx, int32_t k, int32_t n, int32_t dtype, uint32_t flags) {
    return check_shape(ctx, "weight_bytes", k, n, dtype, flags) < 0 ? 0
                                                                    : rlhf__ref_weight_bytes(k, n);
}

rlhf_status rlhf__ref_weight_create(void *ctx, int32_t k, int32_t n, int32_t dtype, uint32_t flags,
                                    rlhf_weight **out) {
    struct rlhf__ref *r = ctx;
    RLHF_TRY(check_shape(r, "weight_create", k, n, dtype, flags));
    RLHF_TRY(rlhf__ref_count_call(r));
    const uint64_t bytes = rlhf__ref_weight_bytes(k, n);
    rlhf_weight *w = bytes <= rlhf__ref_machine_bytes() ? calloc(1, bytes) : NULL;
    if (!w)
        return rlhf__ref_fail(r, RLHF_E_NOMEM, "cannot allocate %llu bytes for a %d x %d weight",
                              (unsigned long long)bytes, k, n);
    w->k = k;
    w->n = n;
    w->dtype = dtype;
    w->flags = flags;
    r->weight_bytes += bytes;
    *out = w;
    return RLHF_OK;
}

void rlhf__ref_weight_destroy(void *ctx, rlhf_weight *w) {
    struct rlhf__ref *r = ctx;
    if (!w) return;
    r->weight_bytes -= rlhf__ref_weight_bytes(w->k, w->n) + w->blocks_bytes;
    free(w->block);
    free(w->part);
    free(w->blocks);
    free(w);
}

// ---- block-structured weights ----

static rlhf_status check_blocks(struct rlhf__ref *r, const rlhf_blocks *a) {
    int64_t end = 0;
    if (a->rank < 1 || !a->n_blocks || a->n_blocks > (uint32_t)(INT32_MAX / a->rank))
        return rlhf__ref_fail(r, RLHF_E_INVALID, "%u blocks of rank %d, both must be at least 1",
                              a->n_blocks, a->rank);
    if (a->flags & ~(uint32_t)RLHF_WEIGHT_BACKWARD)
        return rlhf__ref_fail(r, RLHF_E_UNSUPPORTED, "flags 0x%x, allowed is 0x%x", a->flags,
                              (unsigned)RLHF_WEIGHT_BACKWARD);
    for (uint32_t i = 0; i < a->n_blocks; i++) {
        if (a->from[i] < end || a->count[i] < 1 || (int64_t)a->from[i] + a->count[i] > a->n)
            return rlhf__ref_fail(r, RLHF_E_INVALID,
                                  "block %u, outputs %d and %d more, overlaps or is outside %d", i,
                                  a->from[i], a->count[i], a->n);
        end = (int64_t)a->from[i] + a->count[i];
    }
    return RLHF_OK;
}

static rlhf_status weight_create_blocks(void *ctx, const rlhf_blocks *from, rlhf_weight **out) {
    struct rlhf__ref *r = ctx;
    rlhf_blocks a;
    RLHF_TRY(rlhf__ref_copy_in(r, "weight_create_blocks", &a, sizeof a, from,
                               RLHF_SIZE_TO(rlhf_blocks, scale)));
    RLHF_TRY(check_blocks(r, &a));
    rlhf_weight *w = NULL;
    const rlhf_status st = rlhf__ref_weight_create(ctx, (int32_t)a.n_blocks * a.rank, a.n, a.dtype,
                                                   a.flags | RLHF_WEIGHT_OUT_IN, &w);
    if (!w) return st;
    w->rank = a.rank;
    w->scale = (float)a.scale;
    w->block = malloc((uint64_t)a.n * sizeof *w->block);
    if (!w->block) {
        rlhf__ref_weight_destroy(ctx, w);
        return rlhf__ref_fail(r, RLHF_E_NOMEM, "out of memory for the blocks of %d outputs", a.n);
    }
    for (int32_t j = 0; j < a.n; j++)
        w->block[j] = (struct rlhf__ref_block){-1, 0};
    for (uint32_t i = 0; i < a.n_blocks; i++)
        for (int32_t j = a.from[i]; j < a.from[i] + a.count[i]; j++)
            w->block[j] = (struct rlhf__ref_block){(int32_t)w->source_rows++, (int32_t)i * a.rank};
    *out = w;
    return RLHF_OK;
}

// Element (i, j) of the dense matrix that the source s of a block-structured weight describes.
static float block_value(const rlhf_weight *w, const float *s, uint64_t i, uint64_t j) {
    const struct rlhf__ref_block *b = &w->block[j];
    const int64_t c = (int64_t)i - b->first;
    if (b->source < 0 || c < 0 || c >= w->rank) return 0.0f;
    return w->scale * s[(uint64_t)b->source * (uint64_t)w->rank + (uint64_t)c];
}

static rlhf_status weight_pack(void *ctx, rlhf_weight *w, rlhf_dev src) {
    RLHF_TRY(rlhf__ref_check_dense(ctx, "weight_pack", w));
    uint64_t k = (uint64_t)w->k, n = (uint64_t)w->n;
    const uint64_t count = w->block ? w->source_rows * (uint64_t)w->rank : k * n;
    const struct rlhf__ref_use uses[] = {rlhf__ref_range(src, count, sizeof(float))};
    RLHF_TRY(rlhf__ref_enter(ctx, "weight_pack", uses, 1));
    const float *s = rlhf__ref_f32(src);
    for (uint64_t i = 0; i < k; i++) {
        for (uint64_t j = 0; j < n; j++) {
            float v = w->block                        ? block_value(w, s, i, j)
                      : w->flags & RLHF_WEIGHT_OUT_IN ? s[j * k + i]
                                                      : s[i * n + j];
            w->w[i * n + j] = w->dtype == RLHF_BF16 ? rlhf__ref_from_bf16(rlhf__ref_to_bf16(v)) : v;
        }
    }
    w->packed = 1;
    return rlhf__ref_leave(ctx, RLHF_OK);
}

rlhf_status rlhf__ref_check_weight(struct rlhf__ref *r, const char *op, const rlhf_weight *w,
                                   uint32_t flags) {
    r->op = op;
    if (!w) return rlhf__ref_fail(r, RLHF_E_INVALID, "the weight is NULL");
    if (!w->packed && w->part)
        return rlhf__ref_fail(r, RLHF_E_INVALID, "only %d of %d rows were put", w->rows_put, w->n);
    if (!w->packed) return rlhf__ref_fail(r, RLHF_E_INVALID, "weight_pack was not called");
    if (flags & ~w->flags)
        return rlhf__ref_fail(r, RLHF_E_INVALID,
                              "the weight was made without RLHF_WEIGHT_BACKWARD");
    return RLHF_OK;
}

rlhf_status rlhf__ref_check_dense(struct rlhf__ref *r, const char *op, const rlhf_weight *w) {
    r->op = op;
    if (!w->part) return RLHF_OK;
    return rlhf__ref_fail(
        r, RLHF_E_INVALID,
        "the weight is quantised: it is filled by weight_put and has no gradient");
}

void rlhf__ref_fill_weight(rlhf_compute *t) {
    t->weight_create = rlhf__ref_weight_create;
    t->weight_destroy = rlhf__ref_weight_destroy;
    t->weight_pack = weight_pack;
    t->weight_bytes = weight_bytes;
    t->weight_create_blocks = weight_create_blocks;
}
