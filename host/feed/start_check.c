// start_check.c: see start_check.h.
#include "feed/start_check.h"

#include "learn/pass.h"
#include "model/compute.h"

#include <math.h>

#define CHECK_ROWS   4
#define CHECK_TOKENS 8

static double largest_difference(const struct rlhf__rows *e, const float *a, const float *b) {
    double max = 0;
    for (uint32_t i = 0; i < e->n; i++)
        for (int32_t k = e->offset[i] + e->prompt_len[i]; k < e->offset[i + 1]; k++) {
            if (!rlhf__rows_is_response(e, k)) continue;
            double d = fabs((double)a[k] - (double)b[k]);
            if (!(d <= max)) max = d;
        }
    return max;
}

static rlhf_status compare(const struct rlhf__feed_env *env, const struct rlhf__model *m,
                           const struct rlhf__rows *e, const char *what, struct rlhf__error *err) {
    // All log-probs come from the same function, so they are equal on a backend with exact rows. On
    // other backends they may differ by rounding error.
    const double rounding = m->env->dtype == RLHF_BF16 ? 0.1 : 1e-3;
    double allowed = m->compute->flags & RLHF_COMPUTE_ROW_EXACT ? 0 : rounding;
    struct rlhf__pass_out out = {.logp = e->token[RLHF__LOGP_REF]};
    const int64_t tokens = rlhf__model_microbatch(m, env->config->batch.microbatch_tokens);
    RLHF_TRY(rlhf__pass(m, e, &env->cast->logp_dist, tokens, &out, err));
    double d = largest_difference(e, e->token[RLHF__LOGP_OLD], e->token[RLHF__LOGP_REF]);
    if (d <= allowed) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INTERNAL,
                      "before the first update the log-probs of sampling and of %s differ by %g",
                      what, d);
}

rlhf_status rlhf__start_check(const struct rlhf__start_check *c, struct rlhf__error *err) {
    const struct rlhf__feed_env *env = c->env;
    const struct rlhf__cast *cast = env->cast;
    const int64_t n = rlhf__prompts_count(c->request.prompts);
    struct rlhf__rollout_request q = c->request;
    // If prompts can be shared, use two rows per prompt, so that sharing is checked too.
    uint32_t each = c->share ? 2 : 1, prompts = CHECK_ROWS / each;
    if (prompts > n) prompts = (uint32_t)n;
    int64_t row[CHECK_ROWS];
    rlhf__progress_note(env->progress, "checking");
    q.n = prompts * each;
    for (uint32_t i = 0; i < q.n; i++)
        row[i] = i / each;
    if (q.max_new > CHECK_TOKENS) q.max_new = CHECK_TOKENS;
    q.stream = "check";
    q.group = each;
    struct rlhf__rows e = {0};
    rlhf_status st = rlhf__rollout(&q, row, &e, NULL, err);
    if (c->share) e.flags |= RLHF__SHARE_PROMPTS;
    if (st == RLHF_OK) st = compare(env, cast->policy, &e, "the training forward", err);
    if (st == RLHF_OK && cast->reference && c->reference_is_start)
        st = compare(env, cast->reference, &e, "the reference", err);
    rlhf__rows_finish(&e);
    return st;
}
