// loss.c: heads in, loss and its derivative with respect to each head out.
//
//   L = sum_it w_it (surrogate_it + beta kl_it - c2 entropy_it) + c1 / (2 N) sum_it value_error_it
//
// w_it: common/surrogate.h; N = response tokens of the minibatch; beta only with kl_placement loss.
// Every divisor is a total of the minibatch, so microbatch losses and derivatives add up.
#include "ppo/ppo.h"

#include "common/rows.h"
#include "ppo/value.h"

#include <math.h>
#include <rlhf/log.h>

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
    if (p->opt.kl_placement == RLHF__PPO_KL_LOSS) {
        if (p->opt.kl_estimator == RLHF__KL_FULL ? !x->kl || !d->kl : !in->logp_ref)
            return h->fail(h, RLHF_E_INTERNAL, "the kl head or logp_ref is missing");
    }
    if (in->batch_sequences < 1 || in->max_new_tokens < 1)
        return h->fail(h, RLHF_E_INTERNAL, "batch_sequences or max_new_tokens is not positive");
    return RLHF_OK;
}

// With kl_estimator full the KL is known only here; the first epoch sees every token once.
static void count_exact_kl(struct rlhf__ppo_rollout_sums *r, double kl) {
    r->kl += kl;
    r->penalty += kl;
    r->kl_tokens++;
}

// beta * KL of one row; adds to d_logp or d_kl.
static rlhf_status kl_row(struct rlhf__ppo *p, const rlhf_loss_in *in, rlhf_heads *d, int64_t begin,
                          int64_t end, double w, struct rlhf__ppo_update_sums *u) {
    int32_t kind = p->opt.kl_estimator;
    double beta = p->kl_coef;
    for (int64_t t = begin; t < end; t++) {
        if (kind == RLHF__KL_FULL) {
            double kl = (double)in->heads->kl[t];
            u->kl_loss += w * beta * kl;
            d->kl[t] += (float)(w * beta);
            if (in->epoch == 0) count_exact_kl(&p->metrics.rollout, kl);
            continue;
        }
        double x = (double)in->heads->logp[t], f = (double)in->logp_ref[t];
        if (!isfinite(x)) continue; // outside the sampled support: no gradient
        if (!isfinite(f))
            return rlhf_failf(p->host, RLHF_E_NUMERIC,
                              "the reference log-prob of token %lld is %g; with top-k or top-p use "
                              "logprob_support full",
                              (long long)t, f);
        u->kl_loss += w * beta * rlhf__kl(kind, x, f);
        d->logp[t] += (float)(w * beta * rlhf__kl_dx(kind, x, f));
    }
    return RLHF_OK;
}

static void entropy_row(double c2, const rlhf_loss_in *in, rlhf_heads *d, int64_t begin,
                        int64_t end, double w, struct rlhf__ppo_update_sums *u) {
    double sum = 0;
    for (int64_t t = begin; t < end; t++)
        sum += (double)in->heads->entropy[t];
    u->entropy += sum;
    if (c2 == 0) return;
    u->entropy_loss -= w * c2 * sum;
    for (int64_t t = begin; t < end; t++)
        d->entropy[t] += (float)(-w * c2);
}

static void value_row(const struct rlhf__ppo_options *o, const rlhf_loss_in *in, rlhf_heads *d,
                      int64_t begin, int64_t end, struct rlhf__ppo_update_sums *u) {
    double w = 0.5 * o->value_coef / (double)in->batch_tokens;
    for (int64_t t = begin; t < end; t++) {
        double v = (double)in->heads->value[t], ret = (double)in->returns[t], dv;
        int clipped;
        u->value_loss +=
            w * rlhf__value_error(v, (double)in->value_old[t], ret, o->value_clip, &dv, &clipped);
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
    struct rlhf__ppo_update_sums u = {0};
    struct rlhf__totals totals = {in->batch_sequences, in->batch_tokens, in->max_new_tokens,
                                  p->phase_tokens, o->minibatches};
    struct rlhf__clip clip = rlhf__ppo_clip(o);
    p->metrics.minibatch_epoch = in->epoch;
    for (int64_t i = 0; i < in->n; i++) {
        struct rlhf__span row = rlhf__response(in->offset, in->prompt_len, i);
        int64_t b = row.begin, len = row.end - row.begin;
        if (len == 0) continue;
        double w = rlhf__token_weight(o->aggregation, &totals, len);
        rlhf__surrogate_row(o->ratio, &clip, w, in->heads->logp + b, in->logp_old + b,
                            in->advantage + b, len, out->d_heads->logp + b, &u.pg);
        if (o->kl_placement == RLHF__PPO_KL_LOSS)
            RLHF_TRY(kl_row(p, in, out->d_heads, b, row.end, w, &u));
        entropy_row(o->entropy_coef, in, out->d_heads, b, row.end, w, &u);
        if (rlhf__ppo_has_critic(o)) value_row(o, in, out->d_heads, b, row.end, &u);
    }
    u.rows = in->n;
    if (in->epoch == 0 && o->kl_estimator == RLHF__KL_FULL)
        p->metrics.rollout.kl_sequences += in->n;
    out->loss = rlhf__ppo_total_loss(&u);
    rlhf__ppo_add(&p->metrics.minibatch, &u);
    return RLHF_OK;
}
