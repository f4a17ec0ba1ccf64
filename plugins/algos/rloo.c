// rloo.c: REINFORCE leave-one-out (Kool et al. 2019; Ahmadian et al. 2024). The baseline of a
// response is the mean reward of the other responses to its prompt (docs/algorithms/rloo.md).
// x_it, o_it and f_it are the log-probs of token t of response i under the policy, under the policy
// that sampled it, and under the reference.
//
//   S_i = score_i + sum_t token_reward_it - kl_coef sum_t (o_it - f_it)
//   A_i = S_i - mean of S over the other responses of its group
//   L   = (1/n) sum_i max(-A_i rho_i, -A_i clip(rho_i)),  rho_i = exp(sum_t (x_it - o_it))
#include "common/pg.h"
#include "common/why_unused.h"

static void compare(const void *self, const rlhf_rollout *in, const double *paid, double *work,
                    int64_t *order, double *advantage) {
    (void)self;
    (void)work;
    rlhf__leave_one_out(paid, in->group, in->n, order, advantage);
}

static void terms(const void *self, const rlhf_loss_in *in, struct rlhf__span row, const float *adv,
                  double w, const rlhf_head_gradients *d, struct rlhf__pg_update_sums *u) {
    const struct rlhf__pg *s = self;
    int64_t b = row.begin;
    rlhf__surrogate_row(s->opt.ratio, &s->clip, w, in->heads->logp + b, in->logp_old + b, adv,
                        row.end - b, d->logp + b, &u->pg);
}

static const struct rlhf__pg_method method = {.name = "rloo", .compare = compare, .terms = terms};

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    struct rlhf__pg_options o = *(const struct rlhf__pg_options *)config;
    o.kl_placement = o.kl_coef > 0 ? RLHF__KL_IN_REWARD : RLHF__KL_NOWHERE;
    o.clip_range_high = -1;
    RLHF_TRY(rlhf__pg_create(host, &method, &o, sizeof(struct rlhf__pg), self));
    struct rlhf__pg *s = *self;
    // With ratio=sequence, all tokens of a response have the same surrogate. So the mean over the
    // tokens equals this surrogate.
    s->aggregation = o.ratio == RLHF__RATIO_TOKEN ? RLHF__AGG_SUM : RLHF__AGG_SEQUENCE;
    return RLHF_OK;
}

static const char *const ratios[] = {"token", "sequence", NULL}; // as in enum rlhf__ratio_level
static const rlhf_opt options[] = {
    RLHF_OPT_I64(struct rlhf__pg_options, group_size, 4, 2, 4096, "samples per prompt"),
    RLHF_OPT_I64(struct rlhf__pg_options, epochs, 1, 1, 1000, "passes over the rollout in a phase"),
    RLHF_OPT_I64(struct rlhf__pg_options, minibatches, 1, 1, 1000000, "optimizer steps per epoch"),
    RLHF_OPT_F64(struct rlhf__pg_options, kl_coef, 0.05, 0, 1000,
                 "KL penalty in the reward; 0: none"),
    RLHF_OPT_ENUM(struct rlhf__pg_options, ratio, RLHF__RATIO_SEQUENCE, ratios,
                  "one a response, or a token"),
    RLHF_OPT_F64(struct rlhf__pg_options, clip_range, 0.2, 0, 1,
                 "ratio is clipped to 1 +- clip_range"),
    RLHF__PG_OPT_DYNAMIC,
    RLHF_OPT_BOOL(struct rlhf__pg_options, mask_truncated, 0,
                  "responses that max_new_tokens cut off give no loss"),
    RLHF_OPT_BOOL(struct rlhf__pg_options, mask_zero_advantage_groups, 0,
                  "groups whose responses all have advantage 0 count in no divisor"),
    RLHF__PG_OPT_CORRECTION,
};

static const char *why_unused(const rlhf_option_in *in) {
    const struct rlhf__pg_options *o = in->config;
    const struct rlhf__unused rules[] = {
        {"dynamic_rounds", !o->dynamic_sampling, "dynamic_sampling is false"},
        {"correction_cap", o->correction == RLHF__CORRECT_NONE, "correction is none"},
        {"correction_mode", o->correction == RLHF__CORRECT_NONE, "correction is none"},
        {"correction_mode", o->correction_cap == 0, "correction_cap is 0"}};
    return rlhf__why_unused(rules, sizeof rules / sizeof *rules, in->key);
}

static const rlhf_algo_ops ops = {
    .size = sizeof ops,
    .plan = rlhf__pg_plan,
    .advantages = rlhf__pg_advantages,
    .loss = rlhf__pg_loss,
    .minibatch_end = rlhf__pg_minibatch_end,
    .phase_end = rlhf__pg_phase_end,
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_ALGO,
    .id = "org.rlhf-host.rloo",
    .version = RLHF_SDK_VERSION,
    .summary = "REINFORCE leave-one-out: several samples per prompt, no critic",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    RLHF_OPTIONS(struct rlhf__pg_options, options),
    .create = create,
    .destroy = rlhf__pg_destroy,
    .ops = &ops,
    .why_unused = why_unused,
};
RLHF_DEFINE_PLUGIN(plugin)
