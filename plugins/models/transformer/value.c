// transformer/value.c: the value head, linear or d -> 4d -> ReLU -> 1, in f32 on the final norm's
// output; forward and backward.
#include "internal.h"

rlhf_status rlhf__tf_value(struct rlhf__tf *m, struct rlhf__tf_work *w) {
    const rlhf_compute *c = m->c;
    const uint32_t rows = w->rows.n_resp;
    const uint64_t wide = (uint64_t)rows * 4 * (uint64_t)m->arch.d;
    rlhf_dev x = w->rf_p;
    RLHF_TRY(rlhf__tf_reserve(m, &w->value, rows * sizeof(float)));
    if (m->v1) {
        RLHF_TRY(rlhf__tf_reserve(m, &w->v1, wide * sizeof(float)));
        RLHF_TRY(rlhf__tf_reserve(m, &w->v1a, wide * sizeof(float)));
        RLHF_TRY(c->linear(c->ctx, w->v1.p, RLHF_F32, 0, x, m->v1,
                           rlhf__tf_global(m, TF_V1_B)->value, rows));
        RLHF_TRY(c->act(c->ctx, w->v1a.p, w->v1.p, RLHF_ACT_RELU, RLHF_F32, wide));
        x = w->v1a.p;
    }
    return c->linear(c->ctx, w->value.p, RLHF_F32, 0, x, m->v2, rlhf__tf_global(m, TF_V2_B)->value,
                     rows);
}

rlhf_status rlhf__tf_value_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, rlhf_dev d_value,
                               rlhf_dev d_rf) {
    const rlhf_compute *c = m->c;
    const uint32_t rows = w->rows.n_resp;
    const uint64_t wide = (uint64_t)rows * 4 * (uint64_t)m->arch.d;
    const struct rlhf__tf_tensor *v1 = rlhf__tf_global(m, TF_V1_W);
    const struct rlhf__tf_tensor *v2 = rlhf__tf_global(m, TF_V2_W);
    RLHF_TRY(c->linear_dw(c->ctx, v2[0].grad, v2[1].grad, m->v1 ? w->v1a.p : w->rf_p, d_value,
                          m->v2, rows));
    if (!m->v1)
        return d_rf ? c->linear_dx(c->ctx, d_rf, RLHF_F32, 0, d_value, m->v2, rows) : RLHF_OK;
    RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.dv1, wide * sizeof(float)));
    rlhf_dev dv1 = m->bwd.dv1.p;
    RLHF_TRY(c->linear_dx(c->ctx, dv1, RLHF_F32, 0, d_value, m->v2, rows));
    RLHF_TRY(c->act_bwd(c->ctx, dv1, dv1, w->v1.p, RLHF_ACT_RELU, RLHF_F32, wide));
    RLHF_TRY(c->linear_dw(c->ctx, v1[0].grad, v1[1].grad, w->rf_p, dv1, m->v1, rows));
    return d_rf ? c->linear_dx(c->ctx, d_rf, RLHF_F32, 0, dv1, m->v1, rows) : RLHF_OK;
}
