// rloo.c: REINFORCE leave-one-out (Kool et al. 2019; Ahmadian et al. 2024): the baseline of a
// response is the mean reward of the others to its prompt (docs/algorithms/rloo.md).
//
//   S_i = score_i + sum_t token_reward_it - kl_coef sum_t (o_it - f_it)
//   A_i = S_i - mean of S over the others of its group
//   L   = (1/n) sum_i max(-A_i rho_i, -A_i clip(rho_i)),  rho_i = exp(sum_t (x_it - o_it))
#include "common/choices.h"
#include "common/terms.h"

#include <rlhf/log.h>

struct config {
    int64_t group_size, epochs, minibatches;
    double kl_coef, clip_range;
    int32_t ratio, pad;
};

struct state {
    const rlhf_host *host;
    struct config config;
    struct rlhf__pg_metrics metrics;
};

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    struct state *s = host->alloc(host, sizeof *s);
    if (!s) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    s->host = host;
    s->config = *(const struct config *)config;
    rlhf__pg_metrics_reset(&s->metrics);
    *self = s;
    return RLHF_OK;
}

static void destroy(void *self) {
    struct state *s = self;
    if (!s) return;
    rlhf__pg_metrics_finish(s->host, &s->metrics);
    s->host->free(s->host, s);
}

static rlhf_status plan(void *self, const rlhf_run_info *info, rlhf_plan *out) {
    const struct state *s = self;
    const struct config *c = &s->config;
    RLHF_TRY(rlhf__minibatches_check(s->host, c->minibatches, info));
    out->source = RLHF_SOURCE_ROLLOUT;
    out->heads = RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY;
    out->flags = RLHF_PLAN_FULL_SUPPORT | (c->kl_coef > 0 ? RLHF_PLAN_REFERENCE : 0);
    out->epochs = (int32_t)c->epochs;
    out->minibatches = (int32_t)c->minibatches;
    out->group_size = (int32_t)c->group_size;
    return RLHF_OK;
}

// plain, paid, adv: [n] S without KL, S, A; order: [n] scratch.
static rlhf_status advise(struct state *s, const rlhf_rollout *in, double *plain, double *paid,
                          double *adv, int64_t *order) {
    for (int64_t i = 0; i < in->n; i++) {
        plain[i] = paid[i] = rlhf__row_reward(in, i);
        if (in->logp_ref)
            RLHF_TRY(
                rlhf__penalised_reward(s->host, RLHF__KL_K1, s->config.kl_coef, in, i, paid + i));
    }
    rlhf__leave_one_out(paid, in->group, in->n, order, adv);
    rlhf__spread(in, adv, paid);
    return rlhf__count_paid(s->host, &s->metrics, RLHF__KL_K1, in, plain, paid);
}

static rlhf_status advantages(void *self, const rlhf_rollout *in) {
    struct state *s = self;
    const rlhf_host *h = s->host;
    RLHF_TRY(rlhf__rollout_check(h, in));
    double *w = h->alloc(h, (4 * (uint64_t)in->n + 1) * sizeof *w);
    if (!w) return h->fail(h, RLHF_E_NOMEM, "out of memory");
    int64_t *order = (int64_t *)(void *)(w + 3 * (size_t)in->n);
    rlhf_status st = advise(s, in, w, w + in->n, w + 2 * (size_t)in->n, order);
    h->free(h, w);
    return st;
}

static rlhf_status loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    struct state *s = self;
    const struct config *c = &s->config;
    RLHF_TRY(rlhf__pg_loss_check(s->host, in, out));
    const struct rlhf__clip clip = {c->clip_range, c->clip_range, 0};
    struct rlhf__pg_update_sums u = {.rows = in->n};
    for (int64_t i = 0; i < in->n; i++) {
        struct rlhf__span row = rlhf__response(in->offset, in->prompt_len, i);
        int64_t b = row.begin, len = row.end - row.begin;
        // The surrogate of a sequence's ratio is summed over its len tokens.
        double w = 1 / (double)(in->batch_sequences * (c->ratio == RLHF__RATIO_TOKEN ? 1 : len));
        rlhf__surrogate_row(c->ratio, &clip, w, in->heads->logp + b, in->logp_old + b,
                            in->advantage + b, len, out->d_heads->logp + b, &u.pg);
        rlhf__entropy_term(0, in, row, w, out->d_heads, &u); // for its metric
    }
    out->loss = rlhf__pg_total_loss(&u);
    s->metrics.minibatch_epoch = in->epoch;
    rlhf__pg_add(&s->metrics.minibatch, &u);
    return RLHF_OK;
}

static rlhf_status minibatch_end(void *self, int32_t *stop) {
    *stop = 0;
    rlhf__pg_fold(&((struct state *)self)->metrics);
    return RLHF_OK;
}

static rlhf_status phase_end(void *self, uint64_t phase) {
    struct state *s = self;
    (void)phase;
    const struct rlhf__pg_report how = {s->config.kl_coef, s->config.kl_coef > 0, 0, 0, 1};
    rlhf__pg_report(s->host, &s->metrics, &how);
    rlhf__pg_metrics_reset(&s->metrics);
    return RLHF_OK;
}

static const char *const ratios[] = {"token", "sequence", NULL}; // as in enum rlhf__ratio_level
static const rlhf_opt options[] = {
    RLHF_OPT_I64(struct config, group_size, 4, 2, 4096, "samples a prompt"),
    RLHF_OPT_I64(struct config, epochs, 1, 1, 1000, "passes over the rollout in a phase"),
    RLHF_OPT_I64(struct config, minibatches, 1, 1, 1000000, "optimiser steps an epoch"),
    RLHF_OPT_F64(struct config, kl_coef, 0.05, 0, 1000, "KL penalty in the reward; 0: none"),
    RLHF_OPT_ENUM(struct config, ratio, RLHF__RATIO_SEQUENCE, ratios, "one a response, or a token"),
    RLHF_OPT_F64(struct config, clip_range, 0.2, 0, 1, "ratio is clipped to 1 +- clip_range"),
};
static const rlhf_algo_ops ops = {
    .size = sizeof ops,
    .plan = plan,
    .advantages = advantages,
    .loss = loss,
    .minibatch_end = minibatch_end,
    .phase_end = phase_end,
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_ALGO,
    .id = "org.rlhf-host.rloo",
    .version = RLHF_SDK_VERSION,
    .summary = "REINFORCE leave-one-out: several samples a prompt, no critic",
    .opts = options,
    .n_opts = sizeof options / sizeof *options,
    .opt_stride = sizeof *options,
    .config_size = sizeof(struct config),
    .create = create,
    .destroy = destroy,
    .ops = &ops,
};
RLHF_DEFINE_PLUGIN(plugin)
