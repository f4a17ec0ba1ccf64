// embed.c: token embedding, plus position embedding if the model has one, and its derivative.
#include "number.h"
#include "ops.h"
#include <math.h>

// Returns RLHF_E_INVALID unless every index is in [0, limit).
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

// Refuses positions without a position table, and a table without positions.
static rlhf_status check_positions(struct rlhf__ref *r, const char *op, rlhf_dev pos,
                                   rlhf_dev table) {
    r->op = op;
    if (!pos == !table) return RLHF_OK;
    return rlhf__ref_fail(r, RLHF_E_INVALID, "positions and their table must both be NULL or none");
}

static rlhf_status embed(void *ctx, rlhf_dev out, rlhf_dev ids, rlhf_dev pos, rlhf_dev wte,
                         rlhf_dev wpe, double scale, uint32_t rows, int32_t d) {
    RLHF_TRY(rlhf__ref_check_width(ctx, "embed", d));
    RLHF_TRY(check_positions(ctx, "embed", pos, wpe));
    const uint64_t n = (uint64_t)d, row_bytes = n * sizeof(float);
    const struct rlhf__ref_use uses[] = {rlhf__ref_range(out, rows, row_bytes),
                                         rlhf__ref_range(ids, rows, sizeof(int32_t)),
                                         rlhf__ref_optional(pos, rows, sizeof(int32_t)),
                                         {wte, row_bytes},
                                         rlhf__ref_optional(wpe, 1, row_bytes)};
    RLHF_TRY(rlhf__ref_enter(ctx, "embed", uses, RLHF__REF_COUNT(uses)));
    rlhf_status st = check_indices(ctx, "ids", ids, rows, rlhf__ref_extent(ctx, wte) / row_bytes);
    if (st == RLHF_OK && pos)
        st = check_indices(ctx, "pos", pos, rows, rlhf__ref_extent(ctx, wpe) / row_bytes);
    for (uint64_t t = 0; st == RLHF_OK && t < rows; t++) {
        const float *e = rlhf__ref_f32(wte) + (uint64_t)rlhf__ref_i32(ids)[t] * n;
        const float *p = pos ? rlhf__ref_f32(wpe) + (uint64_t)rlhf__ref_i32(pos)[t] * n : NULL;
        for (uint64_t c = 0; c < n; c++)
            rlhf__ref_f32(out)[t * n + c] =
                p ? fmaf((float)scale, e[c], p[c]) : (float)scale * e[c];
    }
    return rlhf__ref_leave(ctx, st);
}

static rlhf_status embed_bwd(void *ctx, rlhf_dev dwte, rlhf_dev dwpe, rlhf_dev dout, rlhf_dev ids,
                             rlhf_dev pos, double scale, uint32_t rows, int32_t d, int32_t vocab,
                             int32_t n_pos) {
    RLHF_TRY(rlhf__ref_check_width(ctx, "embed_bwd", vocab));
    RLHF_TRY(rlhf__ref_check_width(ctx, "embed_bwd", d));
    RLHF_TRY(check_positions(ctx, "embed_bwd", pos, dwpe));
    if (pos ? n_pos < 1 : n_pos != 0)
        return rlhf__ref_fail(ctx, RLHF_E_INVALID, "n_pos is %d, %s", n_pos,
                              pos ? "must be at least 1" : "without positions it is 0");
    const uint64_t n = (uint64_t)d, row_bytes = n * sizeof(float);
    const struct rlhf__ref_use uses[] = {rlhf__ref_range(dwte, (uint64_t)vocab, row_bytes),
                                         rlhf__ref_optional(dwpe, (uint64_t)n_pos, row_bytes),
                                         rlhf__ref_range(dout, rows, row_bytes),
                                         rlhf__ref_range(ids, rows, sizeof(int32_t)),
                                         rlhf__ref_optional(pos, rows, sizeof(int32_t))};
    RLHF_TRY(rlhf__ref_enter(ctx, "embed_bwd", uses, RLHF__REF_COUNT(uses)));
    rlhf_status st = check_indices(ctx, "ids", ids, rows, (uint64_t)vocab);
    if (st == RLHF_OK && pos) st = check_indices(ctx, "pos", pos, rows, (uint64_t)n_pos);
    for (uint64_t t = 0; st == RLHF_OK && t < rows; t++) {
        float *e = rlhf__ref_f32(dwte) + (uint64_t)rlhf__ref_i32(ids)[t] * n;
        float *p = pos ? rlhf__ref_f32(dwpe) + (uint64_t)rlhf__ref_i32(pos)[t] * n : NULL;
        const float *g = rlhf__ref_f32(dout) + t * n;
        for (uint64_t c = 0; c < n; c++) {
            e[c] = fmaf((float)scale, g[c], e[c]);
            if (p) p[c] += g[c];
        }
    }
    return rlhf__ref_leave(ctx, st);
}

void rlhf__ref_fill_embed(rlhf_compute *t) {
    t->embed = embed;
    t->embed_bwd = embed_bwd;
}
