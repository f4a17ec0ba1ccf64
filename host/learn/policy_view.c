// policy_view.c: see policy_view.h.
#include "learn/policy_view.h"

#include "batch/policy_rows.h"
#include "learn/plan.h"

#include <stddef.h>

enum { ROLLOUT_ARRAYS = 7, LOSS_ARRAYS = 7, HEADS = 5 };

// Offsets of the per-token heads, for loops over them.
static const size_t head[HEADS] = {offsetof(rlhf_heads, logp), offsetof(rlhf_heads, entropy),
                                   offsetof(rlhf_heads, kl), offsetof(rlhf_heads, value),
                                   offsetof(rlhf_heads, token_score)};

// Returns `to`, and sets to[k] to the log-probs of the policy's tokens under named model k. Returns
// NULL if the plan names no models.
static const float *const *take_named(struct rlhf__policy_rows *p, const struct rlhf__rows *e,
                                      const float *const *named, const float **to) {
    for (uint32_t k = 0; named && k < e->n_named; k++)
        to[k] = rlhf__policy_rows_take(p, named[k]);
    return named ? to : NULL;
}

static float **head_of(rlhf_heads *h, int k) { return (float **)(void *)((char *)h + head[k]); }

rlhf_status rlhf__view_advantages(const struct rlhf__instance *algo, const struct rlhf__rows *e,
                                  const rlhf_rollout *r, struct rlhf__error *err) {
    struct rlhf__policy_rows p = {0};
    const float *named[RLHF_NAMED_MAX];
    rlhf_rollout own = *r;
    if (!e->turn) return rlhf__algo_advantages(algo, r, err);
    RLHF_TRY(rlhf__policy_rows_fill(&p, e, 0, e->n, ROLLOUT_ARRAYS + e->n_named, err));
    own.total = p.total;
    own.offset = p.offset;
    own.ids = p.ids;
    own.turn = p.turn;
    own.token_reward = rlhf__policy_rows_take(&p, r->token_reward);
    own.logp_old = rlhf__policy_rows_take(&p, r->logp_old);
    own.logp_sampled = rlhf__policy_rows_take(&p, r->logp_sampled);
    own.logp_ref = rlhf__policy_rows_take(&p, r->logp_ref);
    own.value_old = rlhf__policy_rows_take(&p, r->value_old);
    own.advantage = rlhf__policy_rows_take(&p, r->advantage);
    own.returns = rlhf__policy_rows_take(&p, r->returns);
    own.logp_named = take_named(&p, e, r->logp_named, named);
    const rlhf_status st = rlhf__algo_advantages(algo, &own, err);
    rlhf__policy_rows_put(&p, r->advantage, own.advantage);
    rlhf__policy_rows_put(&p, r->returns, own.returns);
    rlhf__policy_rows_finish(&p);
    return st;
}

rlhf_status rlhf__view_loss(const struct rlhf__objective *o, const struct rlhf__rows *e,
                            uint32_t from, uint32_t to, const rlhf_loss_in *in, rlhf_loss_out *out,
                            struct rlhf__error *err) {
    struct rlhf__policy_rows p = {0};
    const float *named[RLHF_NAMED_MAX];
    rlhf_loss_in own = *in;
    rlhf_heads heads = *in->heads, d = *out->d_heads, from_model = heads;
    rlhf_loss_out result = {.size = sizeof result, .d_heads = &d};
    if (!e->turn) return o->loss(o->self, in, out, err);
    RLHF_TRY(rlhf__policy_rows_fill(&p, e, from, to, LOSS_ARRAYS + e->n_named + 2 * HEADS, err));
    own.total = p.total;
    own.offset = p.offset;
    own.ids = p.ids;
    own.turn = p.turn;
    own.heads = &heads;
    own.left_out = rlhf__policy_rows_take_bytes(&p, in->left_out);
    own.logp_old = rlhf__policy_rows_take(&p, in->logp_old);
    own.logp_sampled = rlhf__policy_rows_take(&p, in->logp_sampled);
    own.logp_ref = rlhf__policy_rows_take(&p, in->logp_ref);
    own.value_old = rlhf__policy_rows_take(&p, in->value_old);
    own.advantage = rlhf__policy_rows_take(&p, in->advantage);
    own.returns = rlhf__policy_rows_take(&p, in->returns);
    own.logp_named = take_named(&p, e, in->logp_named, named);
    for (int k = 0; k < HEADS; k++) {
        *head_of(&heads, k) = rlhf__policy_rows_take(&p, *head_of(&from_model, k));
        *head_of(&d, k) = rlhf__policy_rows_take(&p, *head_of(out->d_heads, k));
    }
    const rlhf_status st = o->loss(o->self, &own, &result, err);
    out->loss = result.loss;
    for (int k = 0; k < HEADS; k++)
        rlhf__policy_rows_put(&p, *head_of(out->d_heads, k), *head_of(&d, k));
    rlhf__policy_rows_finish(&p);
    return st;
}
