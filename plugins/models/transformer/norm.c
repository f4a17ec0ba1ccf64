// transformer/norm.c: the norm of the architecture, forward and backward, for the trunk and the
// heads.
#include "internal.h"

rlhf_status rlhf__tf_norm(const struct rlhf__tf *m, const struct rlhf__tf_tensor *gamma,
                          rlhf_dev out, int32_t dtype, rlhf_dev stats, rlhf_dev x, uint32_t rows) {
    const rlhf_compute *c = m->c;
    if (m->arch.norm == RLHF_TF_NORM_RMS)
        return c->rms_norm(c->ctx, out, dtype, stats, x, gamma->value, m->arch.norm_eps, rows,
                           m->arch.d);
    return c->norm(c->ctx, out, dtype, stats, x, gamma[0].value, gamma[1].value, m->arch.norm_eps,
                   rows, m->arch.d);
}

rlhf_status rlhf__tf_norm_bwd(const struct rlhf__tf *m, const struct rlhf__tf_tensor *gamma,
                              rlhf_dev dx, int32_t accumulate, rlhf_dev dy, int32_t dy_dtype,
                              rlhf_dev x, rlhf_dev stats, uint32_t rows) {
    const rlhf_compute *c = m->c;
    if (m->arch.norm == RLHF_TF_NORM_RMS)
        return c->rms_norm_bwd(c->ctx, dx, accumulate, gamma->grad, dy, dy_dtype, x, stats,
                               gamma->value, rows, m->arch.d);
    return c->norm_bwd(c->ctx, dx, accumulate, gamma[0].grad, gamma[1].grad, dy, dy_dtype, x, stats,
                       gamma[0].value, rows, m->arch.d);
}
