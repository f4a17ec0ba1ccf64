// pool.c: computes one vector for each row of the batch (the mean, the first or the last of its
// tokens), and the derivative.
#include "number.h"
#include "ops.h"

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

void rlhf__ref_fill_pool(rlhf_compute *t) {
    t->pool = pool;
    t->pool_bwd = pool_bwd;
}
