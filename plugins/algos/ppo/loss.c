// loss.c: heads in, loss and its derivative with respect to each head out.
//
//   L = sum_it w_it (surrogate_it + beta kl_it - c2 entropy_it) + c1 / (2 N) sum_it value_error_it
//
// w_it: common/surrogate.h; N = response tokens of the minibatch; beta only with kl_placement loss.
// Every divisor is a total of the minibatch, so microbatch losses and derivatives add up.
#include "ppo/ppo.h"

#include "common/terms.h"
#include "ppo/value.h"

static rlhf_status check(const struct rlhf__ppo *p, const rlhf_loss_in *in,
                         const rlhf_loss_out *out) {
    const rlhf_host *h = p->host;
    const char *wrong = rlhf__rows_check(in->offset, in->prompt_len, in->n, in->total);
    if (wrong) return h->fail(h, RLHF_E_INTERNAL, wrong);
    const rlhf_heads *x = in->heads, *d = out->d_heads;
    if (!x || !d || !x->logp || !d->logp || !x->entropy || !d->entropy)
        return h->fail(h, RLHF_E_INTERNAL, "the logp or entropy head is missing");
    if (!in->logp_old || !in->advantage || !in->returns)
        return h->fail(h, RLHF_E_INTERNAL, "logp_old, advantage or returns is missing");
    if (rlhf__ppo_has_critic(&p->opt) && (!x->value || !d->value || !in->value_old))
        return h->fail(h, RLHF_E_INTERNAL, "the value head or value_old is missing");
    if (p->opt.kl_placement == RLHF__KL_IN_LOSS) {
        if (p->opt.kl_estimator == RLHF__KL_FULL ? !x->kl || !d->kl : !in->logp_ref)
            return h->fail(h, RLHF_E_INTERNAL, "the kl head or logp_ref is missing");
    }
    if (in->batch_sequences < 1 || in->max_new_tokens < 1)
        return h->fail(h, RLHF_E_INTERNAL, "batch_sequences or max_new_tokens is not positive");
    return RLHF_OK;
}

static void value_row(const struct rlhf__ppo_options *o, const rlhf_loss_in *in, rlhf_heads *d,
                      int64_t begin, int64_t end, struct rlhf__pg_update_sums *u) {
    double half = 0.5 / (double)in->batch_tokens,
           w = 0.5 * o->value_coef / (double)in->batch_tokens;
    for (int64_t t = begin; t < end; t++) {
        double v = (double)in->heads->value[t], ret = (double)in->returns[t], dv;
        int clipped;
        double error =
            rlhf__value_error(v, (double)in->value_old[t], ret, o->value_clip, &dv, &clipped);
        u->value_loss += w * error;
        u->value_half += half * error;
        d->value[t] += (float)(w * dv);
        u->value += v;
        u->value_error += (v - ret) * (v - ret);
        u->value_clipped += clipped;
    }
}

rlhf_status rlhf__ppo_loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    struct rlhf__ppo *p = self;
    const struct rlhf__ppo_options *o = &p->opt;
    RLHF_TRY(check(p, in, out));
    struct rlhf__pg_update_sums u = {0};
    struct rlhf__totals totals = {in->batch_sequences, in->batch_tokens, in->max_new_tokens,
                                  p->phase_tokens,
                                  in->minibatches > 0 ? in->minibatches : o->minibatches};
    struct rlhf__clip clip = rlhf__ppo_clip(o);
    p->metrics.minibatch_epoch = in->epoch;
    for (int64_t i = 0; i < in->n; i++) {
        struct rlhf__span row = rlhf__response(in->offset, in->prompt_len, i);
        int64_t b = row.begin, len = row.end - row.begin;
        if (len == 0) continue;
        double w = rlhf__token_weight(o->aggregation, &totals, len);
        rlhf__surrogate_row(o->ratio, &clip, w, in->heads->logp + b, in->logp_old + b,
                            in->advantage + b, len, out->d_heads->logp + b, &u.pg);
        if (o->kl_placement == RLHF__KL_IN_LOSS)
            RLHF_TRY(rlhf__kl_term(p->host, o->kl_estimator, p->kl.coef, in, row, w, out->d_heads,
                                   &u, &p->metrics.rollout));
        rlhf__entropy_term(o->entropy_coef, in, row, w, out->d_heads, &u);
        if (rlhf__ppo_has_critic(o)) value_row(o, in, out->d_heads, b, row.end, &u);
    }
    u.rows = in->n;
    if (in->epoch == 0 && o->kl_estimator == RLHF__KL_FULL)
        p->metrics.rollout.kl_sequences += in->n;
    out->loss = rlhf__pg_total_loss(&u);
    rlhf__pg_add(&p->metrics.minibatch, &u);
    return RLHF_OK;
}
