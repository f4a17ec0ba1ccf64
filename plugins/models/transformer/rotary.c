// transformer/rotary.c: for rotary positions, the device's table of cosines and sines, and the
// arguments of the operations that use this table. The architecture's plugin provides the
// frequencies; the operations are in rlhf/compute.h.
#include "internal.h"

#include <math.h>
#include <rlhf/exact.h>

// The table grows with the longest row so far. A model's context is often a hundred times longer
// than that.
enum { FIRST_ROWS = 1024 };

static uint32_t rows_for(const struct rlhf__tf *m, uint32_t positions) {
    uint64_t rows = FIRST_ROWS;
    while (rows < positions)
        rows *= 2;
    return rows < (uint64_t)m->arch.n_ctx ? (uint32_t)rows : (uint32_t)m->arch.n_ctx;
}

// Writes the cosines and then the sines of one position's angles, times `scale`. They are computed
// in f64 and rounded once.
static void fill(const double *frequency, int32_t half, double scale, uint32_t position,
                 float *out) {
    for (int32_t c = 0; c < half; c++) {
        const double angle = position * frequency[c];
        out[c] = (float)(rlhf_cos(angle) * scale);
        out[half + c] = (float)(rlhf_sin(angle) * scale);
    }
}

rlhf_status rlhf__tf_turn_reserve(struct rlhf__tf *m, uint32_t positions) {
    if (!m->arch.rotary.frequency || positions <= m->turn_rows) return RLHF_OK;
    const uint32_t rows = rows_for(m, positions);
    const struct rlhf_tf_rotary *r = &m->arch.rotary;
    const int32_t half = rlhf__tf_rotary_dim(&m->arch) / 2;
    const uint64_t dim = 2 * (uint64_t)half, one = rows * dim, n = r->other ? 2 * one : one;
    float *host = m->host->alloc(m->host, n * sizeof *host);
    if (!host)
        return rlhf__tf_fail(m, RLHF_E_NOMEM, "out of memory for the turns of %u positions", rows);
    for (uint32_t i = 0; i < rows; i++) {
        fill(r->frequency, half, r->scale, i, host + i * dim);
        if (r->other) fill(r->other, half, 1.0, i, host + one + i * dim);
    }
    m->turn_rows = 0;
    rlhf_status st = rlhf__tf_reserve(m, &m->turn, n * sizeof *host);
    if (st >= 0) st = m->c->upload(m->c->ctx, m->turn.p, host, n * sizeof *host);
    m->host->free(m->host, host);
    if (st >= 0) m->turn_rows = rows;
    return st;
}

rlhf_rope rlhf__tf_rope_args(const struct rlhf__tf *m, const struct rlhf__tf_rows *rows,
                             int32_t layer, rlhf_dev raw, rlhf_dev stats) {
    const struct rlhf_tf_arch *a = &m->arch;
    const int32_t dim = rlhf__tf_rotary_dim(a);
    const uint64_t table = (uint64_t)m->turn_rows * (uint64_t)dim * sizeof(float);
    const int32_t other = rlhf__tf_rotates(m, layer) == RLHF_TF_TURN_OTHER;
    rlhf_rope r = {.size = sizeof r,
                   .heads = a->n_head,
                   .kv_heads = a->n_kv_head,
                   .head_dim = a->head_dim,
                   .dtype = m->dtype,
                   .n_pos = (int32_t)m->turn_rows,
                   .stride = rlhf_tf_widths(a).qkv,
                   .eps = a->norm_eps,
                   .gamma_offset = a->norm_offset,
                   .whole = a->qk_norm == RLHF_TF_QK_NORM_WIDTH,
                   .pos = rows->pos,
                   .turn = rlhf_dev_at(m->turn.p, other ? table : 0),
                   .raw = raw,
                   .stats = stats,
                   .rotary_dim = dim < a->head_dim ? dim : 0};
    if (a->qk_norm) {
        r.gamma_q = m->tensors[RLHF_TF_N_GLOBAL + layer * RLHF_TF_N_LAYER + RLHF_TF_QN_G].value;
        r.gamma_k = m->tensors[RLHF_TF_N_GLOBAL + layer * RLHF_TF_N_LAYER + RLHF_TF_KN_G].value;
    }
    return r;
}
