// rows.c: conversion between f32 and bf16 (or a copy in the same dtype), add, gather and
// scatter_add over rows, and pool, which computes one vector for each row of the batch.
#include "number.h"
#include "ops.h"
#include <string.h>

static rlhf_status convert(void *ctx, rlhf_dev dst, int32_t dst_dtype, rlhf_dev src,
                           int32_t src_dtype, uint64_t n) {
    RLHF_TRY(rlhf__ref_check_dtype(ctx, "convert", dst_dtype));
    RLHF_TRY(rlhf__ref_check_dtype(ctx, "convert", src_dtype));
    const struct rlhf__ref_use uses[] = {rlhf__ref_range(dst, n, rlhf_dtype_size(dst_dtype)),
                                         rlhf__ref_range(src, n, rlhf_dtype_size(src_dtype))};
    RLHF_TRY(rlhf__ref_enter(ctx, "convert", uses, RLHF__REF_COUNT(uses)));
    for (uint64_t i = 0; i < n; i++)
        rlhf__ref_put(dst, dst_dtype, i, rlhf__ref_get(src, src_dtype, i));
    return rlhf__ref_leave(ctx, RLHF_OK);
}

static rlhf_status add(void *ctx, rlhf_dev dst, rlhf_dev src, int32_t src_dtype, uint64_t n) {
    RLHF_TRY(rlhf__ref_check_dtype(ctx, "add", src_dtype));
    const struct rlhf__ref_use uses[] = {rlhf__ref_range(dst, n, sizeof(float)),
                                         rlhf__ref_range(src, n, rlhf_dtype_size(src_dtype))};
    RLHF_TRY(rlhf__ref_enter(ctx, "add", uses, RLHF__REF_COUNT(uses)));
    for (uint64_t i = 0; i < n; i++)
        rlhf__ref_put(dst, RLHF_F32, i,
                      rlhf__ref_get(dst, RLHF_F32, i) + rlhf__ref_get(src, src_dtype, i));
    return rlhf__ref_leave(ctx, RLHF_OK);
}

static rlhf_status add_all(void *ctx, rlhf_dev x, const rlhf_dev *src, uint32_t n_src, rlhf_dev to,
                           uint64_t n) {
    struct rlhf__ref_use uses[2 + RLHF_ADD_ALL_MAX] = {rlhf__ref_range(x, n, sizeof(float)),
                                                       rlhf__ref_optional(to, n, sizeof(float))};
    if (n_src > RLHF_ADD_ALL_MAX) {
        RLHF_TRY(rlhf__ref_enter(ctx, "add_all", NULL, 0));
        return rlhf__ref_leave(ctx,
                               rlhf__ref_fail(ctx, RLHF_E_INVALID, "%u arrays, allowed are 0 to %d",
                                              n_src, RLHF_ADD_ALL_MAX));
    }
    for (uint32_t j = 0; j < n_src; j++)
        uses[2 + j] = rlhf__ref_range(src[j], n, sizeof(float));
    RLHF_TRY(rlhf__ref_enter(ctx, "add_all", uses, 2 + n_src));
    for (uint64_t i = 0; i < n; i++) {
        float v = rlhf__ref_f32(x)[i];
        for (uint32_t j = 0; j < n_src; j++)
            v += rlhf__ref_f32(src[j])[i];
        rlhf__ref_f32(x)[i] = to ? 0 : v;
        if (to) rlhf__ref_f32(to)[i] = v;
    }
    return rlhf__ref_leave(ctx, RLHF_OK);
}

// Checks that the rows that idx selects are inside the buffer that contains x.
static rlhf_status check_rows(struct rlhf__ref *r, rlhf_dev x, rlhf_dev idx, uint32_t n,
                              uint64_t row_bytes) {
    const uint64_t limit = rlhf__ref_extent(r, x) / row_bytes;
    for (uint32_t i = 0; i < n; i++) {
        int32_t v = rlhf__ref_i32(idx)[i];
        if (v < 0 || (uint64_t)v >= limit)
            return rlhf__ref_fail(r, RLHF_E_INVALID, "idx[%u] = %d, allowed is 0 to %lld", i, v,
                                  (long long)limit - 1);
    }
    return RLHF_OK;
}

static rlhf_status gather(void *ctx, rlhf_dev out, rlhf_dev x, rlhf_dev idx, uint32_t n, int32_t d,
                          int32_t dtype) {
    RLHF_TRY(rlhf__ref_check_width(ctx, "gather", d));
    RLHF_TRY(rlhf__ref_check_dtype(ctx, "gather", dtype));
    const uint64_t row_bytes = (uint64_t)d * rlhf_dtype_size(dtype);
    const struct rlhf__ref_use uses[] = {
        rlhf__ref_range(out, n, row_bytes), {x, 0}, rlhf__ref_range(idx, n, sizeof(int32_t))};
    RLHF_TRY(rlhf__ref_enter(ctx, "gather", uses, RLHF__REF_COUNT(uses)));
    rlhf_status st = check_rows(ctx, x, idx, n, row_bytes);
    for (uint64_t i = 0; st == RLHF_OK && i < n; i++)
        memcpy(rlhf__ref_mem(rlhf_dev_at(out, i * row_bytes)),
               rlhf__ref_mem(rlhf_dev_at(x, (uint64_t)rlhf__ref_i32(idx)[i] * row_bytes)),
               row_bytes);
    return rlhf__ref_leave(ctx, st);
}

static rlhf_status scatter_add(void *ctx, rlhf_dev dx, rlhf_dev dy, int32_t dy_dtype, rlhf_dev idx,
                               uint32_t n, int32_t d) {
    RLHF_TRY(rlhf__ref_check_width(ctx, "scatter_add", d));
    RLHF_TRY(rlhf__ref_check_dtype(ctx, "scatter_add", dy_dtype));
    const uint64_t w = (uint64_t)d;
    const struct rlhf__ref_use uses[] = {{dx, 0},
                                         rlhf__ref_range(dy, n * w, rlhf_dtype_size(dy_dtype)),
                                         rlhf__ref_range(idx, n, sizeof(int32_t))};
    RLHF_TRY(rlhf__ref_enter(ctx, "scatter_add", uses, RLHF__REF_COUNT(uses)));
    rlhf_status st = check_rows(ctx, dx, idx, n, w * sizeof(float));
    for (uint64_t i = 0; st == RLHF_OK && i < n; i++) {
        float *row = rlhf__ref_f32(dx) + (uint64_t)rlhf__ref_i32(idx)[i] * w;
        for (uint64_t c = 0; c < w; c++)
            row[c] = (float)((double)row[c] + rlhf__ref_get(dy, dy_dtype, i * w + c));
    }
    return rlhf__ref_leave(ctx, st);
}

// ---- pool ----

// Checks that the offsets are increasing and not negative, so that every row has at least one
// token.
static rlhf_status check_pool(struct rlhf__ref *r, rlhf_dev offset, uint32_t n, int32_t mode) {
    if (mode < RLHF_POOL_MEAN || mode > RLHF_POOL_LAST)
        return rlhf__ref_fail(r, RLHF_E_UNSUPPORTED, "mode %d, known are 1 to 3", mode);
    const int32_t *o = rlhf__ref_i32(offset);
    for (uint32_t i = 0; i < n; i++) {
        if (o[i] < 0 || o[i + 1] <= o[i])
            return rlhf__ref_fail(r, RLHF_E_INVALID, "row %u has tokens %d to %d, none inside", i,
                                  o[i], o[i + 1]);
    }
    return RLHF_OK;
}

// Returns the first of the tokens from which the vector of row i is computed. Sets *count to the
// number of these tokens.
static uint64_t pool_span(const int32_t *o, uint32_t i, int32_t mode, uint64_t *count) {
    *count = mode == RLHF_POOL_MEAN ? (uint64_t)(o[i + 1] - o[i]) : 1;
    return (uint64_t)(mode == RLHF_POOL_LAST ? o[i + 1] - 1 : o[i]);
}

static rlhf_status pool(void *ctx, rlhf_dev out, rlhf_dev x, rlhf_dev offset, uint32_t n, int32_t d,
                        int32_t mode) {
    RLHF_TRY(rlhf__ref_check_width(ctx, "pool", d));
    const uint64_t w = (uint64_t)d;
    const struct rlhf__ref_use uses[] = {rlhf__ref_range(out, n * w, sizeof(float)),
                                         {x, 0},
                                         rlhf__ref_range(offset, n + 1ull, sizeof(int32_t))};
    RLHF_TRY(rlhf__ref_enter(ctx, "pool", uses, RLHF__REF_COUNT(uses)));
    rlhf_status st = check_pool(ctx, offset, n, mode);
    const int32_t *o = rlhf__ref_i32(offset);
    if (st == RLHF_OK && n && (uint64_t)o[n] * w * sizeof(float) > rlhf__ref_extent(ctx, x))
        st = rlhf__ref_fail(ctx, RLHF_E_INVALID, "x is shorter than %d tokens", o[n]);
    for (uint32_t i = 0; st == RLHF_OK && i < n; i++) {
        uint64_t count, first = pool_span(o, i, mode, &count);
        for (uint64_t c = 0; c < w; c++) {
            double sum = 0.0;
            for (uint64_t t = first; t < first + count; t++)
                sum += (double)rlhf__ref_f32(x)[t * w + c];
            rlhf__ref_f32(out)[i * w + c] = (float)(sum / (double)count);
        }
    }
    return rlhf__ref_leave(ctx, st);
}

static rlhf_status pool_bwd(void *ctx, rlhf_dev dx, rlhf_dev dout, rlhf_dev offset, uint32_t n,
                            int32_t d, int32_t mode) {
    RLHF_TRY(rlhf__ref_check_width(ctx, "pool_bwd", d));
    const uint64_t w = (uint64_t)d;
    const struct rlhf__ref_use uses[] = {{dx, 0},
                                         rlhf__ref_range(dout, n * w, sizeof(float)),
                                         rlhf__ref_range(offset, n + 1ull, sizeof(int32_t))};
    RLHF_TRY(rlhf__ref_enter(ctx, "pool_bwd", uses, RLHF__REF_COUNT(uses)));
    rlhf_status st = check_pool(ctx, offset, n, mode);
    const int32_t *o = rlhf__ref_i32(offset);
    if (st == RLHF_OK && n && (uint64_t)o[n] * w * sizeof(float) > rlhf__ref_extent(ctx, dx))
        st = rlhf__ref_fail(ctx, RLHF_E_INVALID, "dx is shorter than %d tokens", o[n]);
    for (uint32_t i = 0; st == RLHF_OK && i < n; i++) {
        uint64_t count, first = pool_span(o, i, mode, &count);
        for (uint64_t t = (uint64_t)o[i]; t < (uint64_t)o[i + 1]; t++) {
            const int in = t >= first && t < first + count;
            for (uint64_t c = 0; c < w; c++)
                rlhf__ref_f32(dx)[t * w + c] =
                    in ? (float)((double)rlhf__ref_f32(dout)[i * w + c] / (double)count) : 0.0f;
        }
    }
    return rlhf__ref_leave(ctx, st);
}

void rlhf__ref_fill_rows(rlhf_compute *t) {
    t->convert = convert;
    t->add = add;
    t->add_all = add_all;
    t->gather = gather;
    t->scatter_add = scatter_add;
    t->pool = pool;
    t->pool_bwd = pool_bwd;
}
