// embed.c: token plus position embedding, and its derivative.
#include "number.h"
#include "ops.h"

// RLHF_E_INVALID unless every index is in [0, limit).
static rlhf_status check_indices(struct rlhf__ref *r, const char *what, rlhf_dev idx, uint32_t n,
                                 uint64_t limit) {
    for (uint32_t t = 0; t < n; t++) {
        int32_t v = rlhf__ref_i32(idx)[t];
        if (v < 0 || (uint64_t)v >= limit)
            return rlhf__ref_fail(r, RLHF_E_INVALID, "%s[%u] = %d, allowed is 0 to %lld", what, t,
                                  v, (long long)limit - 1);
    }
    return RLHF_OK;
}

static rlhf_status embed(void *ctx, rlhf_dev out, rlhf_dev ids, rlhf_dev pos, rlhf_dev wte,
                         rlhf_dev wpe, uint32_t rows, int32_t d) {
    RLHF_TRY(rlhf__ref_check_width(ctx, "embed", d));
    const uint64_t n = (uint64_t)d, row_bytes = n * sizeof(float);
    const struct rlhf__ref_use uses[] = {rlhf__ref_range(out, rows, row_bytes),
                                         rlhf__ref_range(ids, rows, sizeof(int32_t)),
                                         rlhf__ref_range(pos, rows, sizeof(int32_t)),
                                         {wte, row_bytes},
                                         {wpe, row_bytes}};
    RLHF_TRY(rlhf__ref_enter(ctx, "embed", uses, RLHF__REF_COUNT(uses)));
    rlhf_status st = check_indices(ctx, "ids", ids, rows, rlhf__ref_extent(ctx, wte) / row_bytes);
    if (st == RLHF_OK)
        st = check_indices(ctx, "pos", pos, rows, rlhf__ref_extent(ctx, wpe) / row_bytes);
    for (uint64_t t = 0; st == RLHF_OK && t < rows; t++) {
        const float *e = rlhf__ref_f32(wte) + (uint64_t)rlhf__ref_i32(ids)[t] * n;
        const float *p = rlhf__ref_f32(wpe) + (uint64_t)rlhf__ref_i32(pos)[t] * n;
        for (uint64_t c = 0; c < n; c++)
            rlhf__ref_f32(out)[t * n + c] = e[c] + p[c];
    }
    return rlhf__ref_leave(ctx, st);
}

static rlhf_status embed_bwd(void *ctx, rlhf_dev dwte, rlhf_dev dwpe, rlhf_dev dout, rlhf_dev ids,
                             rlhf_dev pos, uint32_t rows, int32_t d, int32_t vocab, int32_t n_pos) {
    RLHF_TRY(rlhf__ref_check_width(ctx, "embed_bwd", vocab));
    RLHF_TRY(rlhf__ref_check_width(ctx, "embed_bwd", n_pos));
    RLHF_TRY(rlhf__ref_check_width(ctx, "embed_bwd", d));
    const uint64_t n = (uint64_t)d, row_bytes = n * sizeof(float);
    const struct rlhf__ref_use uses[] = {
        rlhf__ref_range(dwte, (uint64_t)vocab, row_bytes),
        rlhf__ref_range(dwpe, (uint64_t)n_pos, row_bytes), rlhf__ref_range(dout, rows, row_bytes),
        rlhf__ref_range(ids, rows, sizeof(int32_t)), rlhf__ref_range(pos, rows, sizeof(int32_t))};
    RLHF_TRY(rlhf__ref_enter(ctx, "embed_bwd", uses, RLHF__REF_COUNT(uses)));
    rlhf_status st = check_indices(ctx, "ids", ids, rows, (uint64_t)vocab);
    if (st == RLHF_OK) st = check_indices(ctx, "pos", pos, rows, (uint64_t)n_pos);
    for (uint64_t t = 0; st == RLHF_OK && t < rows; t++) {
        float *e = rlhf__ref_f32(dwte) + (uint64_t)rlhf__ref_i32(ids)[t] * n;
        float *p = rlhf__ref_f32(dwpe) + (uint64_t)rlhf__ref_i32(pos)[t] * n;
        const float *g = rlhf__ref_f32(dout) + t * n;
        for (uint64_t c = 0; c < n; c++) {
            e[c] += g[c];
            p[c] += g[c];
        }
    }
    return rlhf__ref_leave(ctx, st);
}

void rlhf__ref_fill_embed(rlhf_compute *t) {
    t->embed = embed;
    t->embed_bwd = embed_bwd;
}
