// loss.c: heads in, loss and its derivative with respect to each head out.
//
//   L = sum_it w_it (surrogate_it + beta kl_it - c2 entropy_it)
//
// w_it and the surrogate: common/surrogate.h; beta only with kl_placement loss. Every divisor is a
// total of the minibatch or of the phase, so microbatch losses and derivatives add up.
#include "grpo/core.h"

#include "common/terms.h"

static rlhf_status check(const struct rlhf__grpo *g, const rlhf_loss_in *in,
                         const rlhf_loss_out *out) {
    const rlhf_host *h = g->host;
    RLHF_TRY(rlhf__pg_loss_check(h, in, out));
    const rlhf_heads *x = in->heads, *d = out->d_heads;
    if (g->opt.kl_placement == RLHF__KL_IN_LOSS) {
        if (g->opt.kl_estimator == RLHF__KL_FULL ? !x->kl || !d->kl : !in->logp_ref)
            return h->fail(h, RLHF_E_INTERNAL, "the kl head or logp_ref is missing");
    }
    if (in->max_new_tokens < 1)
        return h->fail(h, RLHF_E_INTERNAL, "max_new_tokens is not positive");
    return RLHF_OK;
}

rlhf_status rlhf__grpo_loss(struct rlhf__grpo *g, const rlhf_loss_in *in, rlhf_loss_out *out) {
    const struct rlhf__grpo_options *o = &g->opt;
    RLHF_TRY(check(g, in, out));
    struct rlhf__pg_update_sums u = {0};
    struct rlhf__totals totals = {in->batch_sequences, in->batch_tokens, in->max_new_tokens,
                                  g->phase_tokens,
                                  in->minibatches > 0 ? in->minibatches : o->minibatches};
    struct rlhf__clip clip = rlhf__grpo_clip(o);
    int32_t aggregation = rlhf__grpo_aggregation(o);
    rlhf_heads *d = out->d_heads;
    g->metrics.minibatch_epoch = in->epoch;
    for (int64_t i = 0; i < in->n; i++) {
        struct rlhf__span row = rlhf__response(in->offset, in->prompt_len, i);
        int64_t b = row.begin, len = row.end - row.begin;
        if (len == 0) continue;
        double w = rlhf__token_weight(aggregation, &totals, len);
        if (o->loss == RLHF__GRPO_LOSS_CISPO)
            rlhf__cispo_row(o->ratio, clip.high, w, in->heads->logp + b, in->logp_old + b,
                            in->advantage + b, len, d->logp + b, &u.pg);
        else
            rlhf__surrogate_row(o->ratio, &clip, w, in->heads->logp + b, in->logp_old + b,
                                in->advantage + b, len, d->logp + b, &u.pg);
        if (o->kl_placement == RLHF__KL_IN_LOSS)
            RLHF_TRY(rlhf__kl_term(g->host, o->kl_estimator, g->kl.coef, in, row, w, d, &u,
                                   &g->metrics.rollout));
        rlhf__entropy_term(o->entropy_coef, in, row, w, d, &u);
    }
    u.rows = in->n;
    if (in->epoch == 0 && o->kl_estimator == RLHF__KL_FULL)
        g->metrics.rollout.kl_sequences += in->n;
    out->loss = rlhf__pg_total_loss(&u);
    rlhf__pg_add(&g->metrics.minibatch, &u);
    return RLHF_OK;
}
