// ppo.c: proximal policy optimization for language models. The options offer variants (without a
// critic, with groups) that differ only in how advantages are computed (ppo_advantages.c). This
// file has the descriptor and the loss.
//
//   L = sum_it w_it (surrogate_it + beta kl_it - c2 entropy_it) + c1 / (2 N) sum_it value_error_it
//
// w_it is defined in common/surrogate.h. N is the number of response tokens of the minibatch. The
// term with beta exists only with kl_placement=loss. Every divisor is a total of the minibatch, so
// the losses and derivatives of microbatches add up.
//
// The host samples, scores, and runs the optimizer; this plugin sees only per-token numbers.
// Formulas and sources: docs/algorithms/ppo.md.
#include "ppo.h"

#include <math.h>

enum { STATE_VERSION = 1 };

// Returns the larger of (v - R)^2 and (clip(v, v_old - eps, v_old + eps) - R)^2. If eps is 0,
// returns (v - R)^2. The caller multiplies the result by c1/2 and the weight. Sets *dv to the
// derivative by v. Sets *clipped to 1 if the square with clip() is the larger one. v is then
// outside of the window, so the derivative is 0.
static double value_error(double v, double v_old, double ret, double eps, double *dv,
                          int *clipped) {
    double e = v - ret, loss = e * e;
    *dv = 2.0 * e;
    *clipped = 0;
    if (eps <= 0) return loss;
    double c = fmin(fmax(v, v_old - eps), v_old + eps) - ret;
    if (!(c * c > loss)) return loss; // also if v is a NaN, which fmax would hide
    *dv = 0;
    *clipped = 1;
    return c * c;
}

static void value_terms(const struct rlhf__ppo_options *o, const rlhf_loss_in *in,
                        struct rlhf__span row, const rlhf_head_gradients *d,
                        struct rlhf__pg_update_sums *u) {
    double half = 0.5 / (double)in->batch_tokens,
           w = 0.5 * o->value_coef / (double)in->batch_tokens;
    for (int64_t t = row.begin; t < row.end; t++) {
        double v = (double)in->heads->value[t], ret = (double)in->returns[t], dv;
        int clipped;
        double error = value_error(v, (double)in->value_old[t], ret, o->value_clip, &dv, &clipped);
        u->value_loss += w * error;
        u->value_half += half * error;
        d->value[t] += (float)(w * dv);
        u->value += v;
        u->value_error += (v - ret) * (v - ret);
        u->value_clipped += clipped;
    }
}

static void terms(const void *self, const rlhf_loss_in *in, struct rlhf__span row, const float *adv,
                  double w, const rlhf_head_gradients *d, struct rlhf__pg_update_sums *u) {
    const struct rlhf__ppo *p = self;
    int64_t b = row.begin;
    rlhf__surrogate_row(p->pg.opt.ratio, &p->pg.clip, w, in->heads->logp + b, in->logp_old + b, adv,
                        row.end - b, d->logp + b, &u->pg);
    if (p->pg.critic) value_terms(&p->opt, in, row, d, u);
}

static const struct rlhf__pg_method method = {
    .name = "ppo", .magic = {'R', 'P', 'P', 'O'}, .state_version = STATE_VERSION, .terms = terms};

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    const struct rlhf__ppo_options *opt = config;
    RLHF_TRY(rlhf__ppo_options_check(host, opt));
    RLHF_TRY(rlhf__pg_create(host, &method, &opt->pg, sizeof(struct rlhf__ppo), self));
    struct rlhf__ppo *p = *self;
    p->opt = *opt;
    p->pg.aggregation = opt->aggregation;
    p->pg.scope = opt->whiten_scope;
    p->pg.critic = rlhf__ppo_has_critic(opt);
    p->pg.together = opt->advantage == RLHF__PPO_SEQUENCE;
    return RLHF_OK;
}

static const rlhf_algo_ops ops = {
    .size = sizeof ops,
    .plan = rlhf__pg_plan,
    .advantages = rlhf__ppo_advantages,
    .loss = rlhf__pg_loss,
    .minibatch_end = rlhf__pg_minibatch_end,
    .phase_end = rlhf__pg_phase_end,
};

static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_ALGO,
    .state_version = STATE_VERSION,
    .id = "org.rlhf-host.ppo",
    .version = RLHF_SDK_VERSION,
    .summary = "proximal policy optimization, with or without a critic",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    RLHF_OPTIONS(struct rlhf__ppo_options, rlhf__ppo_option_table),
    .create = create,
    .destroy = rlhf__pg_destroy,
    .save = rlhf__pg_save,
    .load = rlhf__pg_load,
    .ops = &ops,
    .why_unused = rlhf__ppo_why_unused,
};
RLHF_DEFINE_PLUGIN(plugin)
