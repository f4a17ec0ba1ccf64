// algo_call.c: see algo_call.h.
#include "learn/algo_call.h"

// The learner counts rows by their use.
static rlhf_status check_use(const uint8_t *use, uint32_t n, struct rlhf__error *err) {
    for (uint32_t i = 0; i < n; i++)
        if (use[i] > RLHF_USE_EXCLUDED)
            return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                              "out->use[%u] is %u; it must be from %d to %d (enum rlhf_row_use)", i,
                              use[i], RLHF_USE_TRAINS, RLHF_USE_EXCLUDED);
    return RLHF_OK;
}

rlhf_status rlhf__algo_advantages(const struct rlhf__instance *algo, const struct rlhf__rows *e,
                                  const rlhf_rollout *r, rlhf_advantages *out,
                                  struct rlhf__error *err) {
    const uint32_t minor = algo->plugin->abi_minor;
    struct rlhf__filled filled;
    rlhf_rollout passed = *r;
    rlhf_advantages *result = RLHF__FILLED(rlhf_advantages, &filled, minor), took;
    result->advantage = out->advantage;
    result->returns = out->returns;
    result->use = out->use;
    result->carry_row = out->carry_row;
    result->carry_token = out->carry_token;
    struct rlhf__call call = rlhf__call_begin(algo, "advantages()");
    struct rlhf__tails tails = {.n = 0};
    RLHF__LEND(rlhf_rollout, &passed, minor, &tails);
    rlhf__tails_mark(&tails, "out->advantage", out->advantage, r->total * sizeof *out->advantage);
    rlhf__tails_mark(&tails, "out->returns", out->returns, r->total * sizeof *out->returns);
    rlhf__tails_mark(&tails, "out->use", out->use, r->n);
    if (out->carry_row)
        rlhf__tails_mark(&tails, "out->carry_row", out->carry_row,
                         r->n * e->carry_rows * sizeof *out->carry_row);
    if (out->carry_token)
        rlhf__tails_mark(&tails, "out->carry_token", out->carry_token,
                         r->total * e->carry_tokens * sizeof *out->carry_token);
    rlhf_status st = algo->plugin->ops.algo.advantages(algo->self, &passed, result);
    st = rlhf__call_kept(&call, &tails, st);
    RLHF_TRY(rlhf__call_end_filled(&call, st, &filled, &took, err));
    const struct rlhf__lent lent[] = {{"advantage", out->advantage, took.advantage},
                                      {"returns", out->returns, took.returns},
                                      {"use", out->use, took.use},
                                      {"carry_row", out->carry_row, took.carry_row},
                                      {"carry_token", out->carry_token, took.carry_token}};
    st = rlhf__lent_kept("rlhf_advantages", lent, sizeof lent / sizeof *lent, err);
    if (st == RLHF_OK) st = check_use(out->use, r->n, err);
    return st == RLHF_OK ? st : rlhf__call_context(&call, err);
}

static rlhf_status algo_loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out,
                             struct rlhf__error *err) {
    const struct rlhf__instance *algo = self;
    const uint32_t minor = algo->plugin->abi_minor;
    const rlhf_head_gradients *d = out->d_heads;
    const size_t tokens = in->total * sizeof(float);
    struct rlhf__filled filled;
    rlhf_loss_in passed = *in;
    rlhf_loss_out *result = RLHF__FILLED(rlhf_loss_out, &filled, minor), took = {0};
    rlhf_head_values values = *in->heads;
    rlhf_head_gradients slopes = *d;
    passed.heads = &values;
    result->d_heads = &slopes;
    struct rlhf__call call = rlhf__call_begin(algo, "loss()");
    struct rlhf__tails tails = {.n = 0};
    RLHF__LEND(rlhf_loss_in, &passed, minor, &tails);
    RLHF__LEND(rlhf_head_values, &values, minor, &tails);
    RLHF__LEND(rlhf_head_gradients, &slopes, minor, &tails);
    rlhf__tails_mark(&tails, "out->d_heads->logp", d->logp, tokens);
    rlhf__tails_mark(&tails, "out->d_heads->entropy", d->entropy, tokens);
    rlhf__tails_mark(&tails, "out->d_heads->kl", d->kl, tokens);
    rlhf__tails_mark(&tails, "out->d_heads->value", d->value, tokens);
    rlhf__tails_mark(&tails, "out->d_heads->score", d->score,
                     (size_t)in->n * in->n_labels * sizeof(float));
    rlhf_status st = algo->plugin->ops.algo.loss(algo->self, &passed, result);
    st = rlhf__call_kept(&call, &tails, st);
    RLHF_TRY(rlhf__call_end_filled(&call, st, &filled, &took, err));
    const struct rlhf__lent lent = {"d_heads", &slopes, took.d_heads};
    if (rlhf__lent_kept("rlhf_loss_out", &lent, 1, err) < 0) return rlhf__call_context(&call, err);
    out->loss = took.loss;
    return RLHF_OK;
}

static rlhf_status algo_stepped(void *self, const rlhf_step_info *info, int32_t *stop,
                                struct rlhf__error *err) {
    const struct rlhf__instance *algo = self;
    const rlhf_algo_ops *ops = &algo->plugin->ops.algo;
    if (!ops->minibatch_end) return RLHF_OK;
    const uint32_t minor = algo->plugin->abi_minor;
    struct rlhf__filled filled;
    rlhf_step_info passed = *info;
    rlhf_step_out *out = RLHF__FILLED(rlhf_step_out, &filled, minor), took = {0};
    struct rlhf__tails tails = {.n = 0};
    RLHF__LEND(rlhf_step_info, &passed, minor, &tails);
    struct rlhf__call call = rlhf__call_begin(algo, "minibatch_end()");
    const rlhf_status st =
        rlhf__call_kept(&call, &tails, ops->minibatch_end(algo->self, &passed, out));
    RLHF_TRY(rlhf__call_end_filled(&call, st, &filled, &took, err));
    *stop = took.stop;
    if (took.stop == 0 || took.stop == 1) return RLHF_OK;
    rlhf__fail(err, RLHF_E_UNSUPPORTED, "out->stop is %d; it must be 0 or 1", took.stop);
    return rlhf__call_context(&call, err);
}

struct rlhf__objective rlhf__algo_objective(struct rlhf__instance *algo) {
    return (struct rlhf__objective){algo_loss, algo_stepped, algo, rlhf__plugin_name(algo->plugin)};
}

rlhf_status rlhf__algo_phase_end(const struct rlhf__instance *algo, const rlhf_phase_info *info,
                                 struct rlhf__error *err) {
    const rlhf_algo_ops *ops = &algo->plugin->ops.algo;
    if (!ops->phase_end) return RLHF_OK;
    rlhf_phase_info passed = *info;
    struct rlhf__tails tails = {.n = 0};
    RLHF__LEND(rlhf_phase_info, &passed, algo->plugin->abi_minor, &tails);
    struct rlhf__call call = rlhf__call_begin(algo, "phase_end()");
    return rlhf__call_wrote(&call, &tails, ops->phase_end(algo->self, &passed), err);
}
