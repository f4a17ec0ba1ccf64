// advantages.c: one number a response, from its reward and those of its group.
//
//   S_i = score_i + sum_t token_reward_it [- beta sum_t k_it, with kl_placement reward]
//   A_it = (S_i - mean of its group) / (std + eps)
//
// std: of the group (Shao et al. 2024, section 4.1.2), of all S of this call, or 1 - eps (Liu et
// al. 2025). A group whose S are all equal gets exactly 0.
#include "grpo/core.h"

#include "common/terms.h"

#include <math.h>
#include <rlhf/log.h>

struct work {
    double *sum, *plain, *advantage; // [n] S, S without KL, A
    int64_t *order;                  // [n]
    int32_t counts;                  // 1: this call counts towards the metrics
};

static rlhf_status work_init(struct rlhf__grpo *g, int64_t n, struct work *w) {
    uint64_t bytes = 8 * (4 * (uint64_t)n + 1);
    if (bytes > g->scratch_bytes) {
        g->host->free(g->host, g->scratch);
        g->scratch = g->host->alloc(g->host, bytes);
        g->scratch_bytes = g->scratch ? bytes : 0;
    }
    if (!g->scratch) {
        g->host->fail(g->host, RLHF_E_NOMEM, "out of memory");
        return RLHF_E_NOMEM; // what fail gives, as a constant for analysers
    }
    w->sum = g->scratch;
    w->plain = w->sum + n;
    w->advantage = w->plain + n;
    w->order = (int64_t *)(void *)(w->advantage + n);
    // In minibatch scope every epoch sees each row once; the first epoch is enough.
    int64_t first_epoch = g->opt.advantage_scope == RLHF__SCOPE_MINIBATCH ? g->opt.minibatches : 1;
    w->counts = g->advantage_calls++ < first_epoch;
    return RLHF_OK;
}

// S of row i, with and without KL.
static rlhf_status sum_row(struct rlhf__grpo *g, const rlhf_rollout *in, int64_t i,
                           struct work *w) {
    w->plain[i] = w->sum[i] = rlhf__row_reward(in, i);
    if (g->opt.kl_placement == RLHF__KL_IN_REWARD)
        RLHF_TRY(
            rlhf__penalised_reward(g->host, g->opt.kl_estimator, g->kl.coef, in, i, w->sum + i));
    return RLHF_OK;
}

static void normalize(const struct rlhf__grpo_options *o, const rlhf_rollout *in, struct work *w) {
    int32_t unbiased = o->advantage_std == RLHF__STD_UNBIASED;
    rlhf__group_normalize(w->sum, in->group, in->n, o->advantage_eps, unbiased,
                          o->advantage_scale == RLHF__GRPO_SCALE_GROUP, w->order, w->advantage);
    if (o->advantage_scale != RLHF__GRPO_SCALE_BATCH) return;
    struct rlhf__moments m = rlhf__moments(w->sum, in->n);
    double std = sqrt(unbiased ? rlhf__var_unbiased(m) : rlhf__var_biased(m)) + o->advantage_eps;
    // Without any spread all advantages are 0 already, and with eps 0 so is std.
    for (int64_t i = 0; i < in->n; i++)
        if (w->advantage[i] != 0) w->advantage[i] /= std;
}

rlhf_status rlhf__grpo_advantages(struct rlhf__grpo *g, const rlhf_rollout *in) {
    struct work w = {0};
    RLHF_TRY(rlhf__rollout_check(g->host, in));
    if (!in->logp_ref && g->opt.kl_placement == RLHF__KL_IN_REWARD)
        return g->host->fail(g->host, RLHF_E_INTERNAL, "logp_ref is missing");
    RLHF_TRY(work_init(g, in->n, &w));
    g->phase_tokens = in->batch_tokens;
    if (g->phase_tokens <= 0 && g->opt.advantage_scope == RLHF__SCOPE_BATCH)
        g->phase_tokens = rlhf__response_tokens(in->offset, in->prompt_len, in->n);
    for (int64_t i = 0; i < in->n; i++)
        RLHF_TRY(sum_row(g, in, i, &w));
    normalize(&g->opt, in, &w);
    if (w.counts)
        RLHF_TRY(rlhf__count_paid(g->host, &g->metrics, g->opt.kl_estimator, in, w.plain, w.sum));
    rlhf__spread(in, w.advantage, w.sum);
    return RLHF_OK;
}
