// method.c: see method.h.
//
//   A_it = (S_i - mean of its group) / (std + eps)
//   L    = sum_it w_it (surrogate_it + beta kl_it - c2 entropy_it)
//
// S is defined in common/pg.h, w_it and the surrogate in common/surrogate.h. std is the standard
// deviation of S in the group (Shao et al. 2024, section 4.1.2) or over all rows of a call of
// advantages(). With advantage_scale=none, the difference is not divided (Liu et al. 2025). With
// advantage_rewards=each, each reward is normalized in its group, and the weighted sum of the
// results in the batch. The term with beta exists only with kl_placement=loss. Every divisor is a
// total of the minibatch or of the phase, so the microbatches' losses and derivatives add up to the
// minibatch's.
#include "grpo_method.h"

#include <math.h>

// Adds reward k to the advantages: its scores, normalized within each group, times its weight. Rows
// without a score of this reward are left out of its groups, and get nothing.
static void add_reward(const struct rlhf__grpo_options *o, const rlhf_rollout *in, uint32_t k,
                       double *work, int64_t *order, double *advantage) {
    double *y = work, *x = y + in->n;
    int64_t *row = (int64_t *)(void *)(x + in->n), n = 0;
    int32_t *group = (int32_t *)(void *)(row + in->n);
    for (uint32_t i = 0; i < in->n; i++) {
        const double score = (double)in->reward_score[i * in->n_rewards + k];
        if (isnan(score)) continue;
        row[n] = i;
        group[n] = in->group[i];
        y[n++] = score;
    }
    rlhf__group_normalize(y, group, n, o->advantage_eps, o->advantage_std == RLHF__STD_UNBIASED, 1,
                          order, x);
    for (int64_t i = 0; i < n; i++)
        advantage[row[i]] += in->reward_weight[k] * x[i];
}

// Returns 1 if some reward could score row i.
static int is_scored(const rlhf_rollout *in, uint32_t i) {
    for (uint32_t k = 0; k < in->n_rewards; k++)
        if (!isnan(in->reward_score[i * in->n_rewards + k])) return 1;
    return 0;
}

// Liu et al. 2026 (GDPO), eqs. 4 to 6. The mean of the sums is 0 in each group, so only the
// deviation remains to be divided by; groups without spread keep advantages of exactly 0.
static void compare_each(const struct rlhf__grpo_options *o, const rlhf_rollout *in, double *work,
                         int64_t *order, double *advantage) {
    struct rlhf__moments m = {0, 0, 0};
    for (uint32_t i = 0; i < in->n; i++)
        advantage[i] = 0;
    for (uint32_t k = 0; k < in->n_rewards; k++)
        add_reward(o, in, k, work, order, advantage);
    for (uint32_t i = 0; i < in->n; i++) {
        if (!is_scored(in, i)) continue;
        m.n++;
        m.m2 += advantage[i] * advantage[i];
    }
    const int32_t unbiased = o->advantage_std == RLHF__STD_UNBIASED;
    const double std = sqrt(unbiased ? rlhf__var_unbiased(m) : rlhf__var_biased(m));
    for (uint32_t i = 0; i < in->n; i++)
        if (advantage[i] != 0) advantage[i] /= std + o->advantage_eps;
}

void rlhf__grpo_compare(const void *self, const rlhf_rollout *in, const double *paid, double *work,
                        int64_t *order, double *advantage) {
    const struct rlhf__grpo_options *o = &((const struct rlhf__grpo *)self)->opt;
    int32_t unbiased = o->advantage_std == RLHF__STD_UNBIASED;
    if (o->advantage_rewards == RLHF__GRPO_REWARDS_EACH) {
        compare_each(o, in, work, order, advantage);
        return;
    }
    rlhf__group_normalize(paid, in->group, in->n, o->advantage_eps, unbiased,
                          o->advantage_scale == RLHF__GRPO_SCALE_GROUP, order, advantage);
    if (o->advantage_scale != RLHF__GRPO_SCALE_BATCH) return;
    struct rlhf__moments m = rlhf__moments(paid, in->n);
    double std = sqrt(unbiased ? rlhf__var_unbiased(m) : rlhf__var_biased(m)) + o->advantage_eps;
    // If the rewards within every group are equal, all advantages are 0. If eps is 0 too, std can
    // be 0, and 0 / 0 is NaN. So an advantage of 0 is not divided.
    for (int64_t i = 0; i < in->n; i++)
        if (advantage[i] != 0) advantage[i] /= std;
}

void rlhf__grpo_terms(const void *self, const rlhf_loss_in *in, struct rlhf__span row,
                      const float *adv, double w, const rlhf_head_gradients *d,
                      struct rlhf__pg_update_sums *u) {
    const struct rlhf__grpo *g = self;
    const struct rlhf__pg *pg = &g->pg;
    int64_t b = row.begin, len = row.end - row.begin;
    const float *x = in->heads->logp + b, *o = in->logp_old + b, *a = adv;
    switch (g->opt.loss) {
    case RLHF__GRPO_LOSS_CISPO:
        rlhf__cispo_row(pg->opt.ratio, pg->clip.high, w, x, o, a, len, d->logp + b, &u->pg);
        break;
    case RLHF__GRPO_LOSS_GMPO:
        rlhf__gmpo_row(&pg->clip, w, x, o, a, len, d->logp + b, &u->pg);
        break;
    case RLHF__GRPO_LOSS_SAPO:
        rlhf__sapo_row(pg->opt.ratio, g->opt.sapo_temperature_pos, g->opt.sapo_temperature_neg, w,
                       x, o, a, len, d->logp + b, &u->pg);
        break;
    default:
        rlhf__surrogate_row(pg->opt.ratio, &pg->clip, w, x, o, a, len, d->logp + b, &u->pg);
    }
}

rlhf_status rlhf__grpo_create(const rlhf_host *host, const struct rlhf__pg_method *method,
                              const struct rlhf__grpo_options *opt, uint64_t bytes, void **self) {
    RLHF_TRY(rlhf__grpo_options_check(host, opt));
    RLHF_TRY(rlhf__pg_create(host, method, &opt->pg, bytes, self));
    struct rlhf__grpo *g = *self;
    g->opt = *opt;
    g->pg.aggregation = rlhf__grpo_aggregation(opt);
    g->pg.scope = opt->advantage_scope;
    g->pg.each = opt->advantage_rewards == RLHF__GRPO_REWARDS_EACH;
    g->pg.whole_rows = opt->loss == RLHF__GRPO_LOSS_GMPO;
    g->pg.unclipped = opt->loss == RLHF__GRPO_LOSS_SAPO;
    return RLHF_OK;
}

rlhf_status rlhf__grpo_plan(void *self, const rlhf_run_info *info, rlhf_plan *out) {
    const struct rlhf__pg *g = self;
    RLHF_TRY(rlhf__pg_plan(self, info, out));
    if (g->scope == RLHF__SCOPE_MINIBATCH) out->flags |= RLHF_PLAN_WHOLE_GROUPS;
    return RLHF_OK;
}
