// pg.c: see pg.h.
#include "common/pg.h"

#include "common/terms.h"
#include "common/why_unused.h"

#include <math.h>
#include <rlhf/log.h>

const char *rlhf__pg_why_unused(const struct rlhf__pg_options *o, const char *key) {
    const int nowhere = o->kl_placement == RLHF__KL_NOWHERE;
    const int fixed = o->kl_controller == RLHF__KL_FIXED;
    const int measured = o->kl_estimator == RLHF__KL_FULL || o->kl_coef > 0;
    const struct rlhf__unused rules[] = {
        {"kl_coef", nowhere && o->kl_coef > 0, "kl_placement is none"},
        {"kl_estimator", nowhere, "kl_placement is none"},
        {"kl_estimator", !measured, "kl_coef is 0"},
        {"kl_target", fixed, "kl_controller is fixed"},
        {"kl_horizon", fixed, "kl_controller is fixed"},
        {"kl_unit", fixed, "kl_controller is fixed"},
        {"kl_measure", !nowhere, "kl_placement is not none, which needs the KL"},
        {"target_kl", o->epochs * o->minibatches == 1, "a phase has one minibatch and one epoch"},
        {"old_logp", o->correction > RLHF__CORRECT_NONE,
         "the correction needs log-probs of a second forward"},
        {"correction_cap", o->correction == RLHF__CORRECT_NONE, "correction is none"},
        {"correction_mode", o->correction == RLHF__CORRECT_NONE, "correction is none"},
        {"correction_mode", o->correction_cap == 0, "correction_cap is 0"},
    };
    return rlhf__why_unused(rules, sizeof rules / sizeof *rules, key);
}

static rlhf_status check_clip(const rlhf_host *host, const struct rlhf__clip *clip) {
    if (clip->dual <= 0 || clip->dual > 1.0 + clip->high) return RLHF_OK;
    return rlhf_failf(host, RLHF_E_INVALID,
                      "dual_clip is %g; it must be 0 or above 1 + clip_range_high = %g", clip->dual,
                      1.0 + clip->high);
}

static rlhf_status check_cap(const rlhf_host *host, double cap) {
    if (cap == 0 || cap >= 1) return RLHF_OK;
    return rlhf_failf(host, RLHF_E_INVALID,
                      "correction_cap is %g; it must be 0 (no cap) or at least 1, which is the "
                      "weight of a token that the same policy sampled",
                      cap);
}

rlhf_status rlhf__pg_create(const rlhf_host *host, const struct rlhf__pg_method *method,
                            const struct rlhf__pg_options *o, uint64_t bytes, void **self) {
    struct rlhf__clip clip = {
        o->clip_range, o->clip_range_high < 0 ? o->clip_range : o->clip_range_high, o->dual_clip};
    struct rlhf__kl_control kl = {0,
                                  o->kl_coef,
                                  o->kl_target,
                                  o->kl_horizon,
                                  o->kl_placement,
                                  o->kl_estimator,
                                  o->kl_controller,
                                  o->kl_unit};
    RLHF_TRY(check_clip(host, &clip));
    RLHF_TRY(check_cap(host, o->correction_cap));
    RLHF_TRY(rlhf__kl_control_init(host, &kl));
    struct rlhf__pg *g = host->alloc(host, bytes);
    if (!g) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    g->host = host;
    g->method = method;
    g->opt = *o;
    g->clip = clip;
    g->kl = kl;
    g->rows = -1;
    rlhf__pg_metrics_reset(&g->metrics);
    *self = g;
    return RLHF_OK;
}

void rlhf__pg_destroy(void *self) {
    struct rlhf__pg *g = self;
    if (!g) return;
    rlhf__pg_metrics_finish(g->host, &g->metrics);
    g->host->free(g->host, g->scratch);
    g->host->free(g->host, g);
}

// Choose the level of the correction. If the run does not sample ahead, `auto` means no correction.
// Otherwise, `auto` means one weight per response if ratio=sequence or loss=gmpo is set, and one
// weight per token if neither is set.
static rlhf_status plan_correction(struct rlhf__pg *g, const rlhf_run_info *info) {
    const struct rlhf__pg_options *o = &g->opt;
    const int ahead = RLHF_HAS(rlhf_run_info, info, ahead) && info->ahead > 0;
    const int whole = g->whole_rows || o->ratio == RLHF__RATIO_SEQUENCE;
    const int32_t chosen = whole ? RLHF__CORRECT_SEQUENCE : RLHF__CORRECT_TOKEN;
    const int32_t automatic = ahead ? chosen : RLHF__CORRECT_NONE;
    g->correction.level = o->correction == RLHF__CORRECT_AUTO ? automatic : o->correction;
    g->correction.mode = o->correction_mode;
    g->correction.cap = o->correction_cap;
    const int excludes =
        g->correction.level == RLHF__CORRECT_SEQUENCE && o->correction_mode == RLHF__CORRECT_MASK;
    if (!excludes || g->aggregation != RLHF__AGG_DAPO || g->scope != RLHF__SCOPE_MINIBATCH)
        return RLHF_OK;
    return g->host->fail(g->host, RLHF_E_INVALID,
                         "correction_mode mask, which excludes whole responses, and a mean over "
                         "the tokens of the phase need advantages over the phase's batch: in "
                         "scope minibatch it is not known which tokens are left");
}

rlhf_status rlhf__pg_plan(void *self, const rlhf_run_info *info, rlhf_plan *out) {
    struct rlhf__pg *g = self;
    const struct rlhf__pg_options *o = &g->opt;
    RLHF_TRY(rlhf__minibatches_check(g->host, o->minibatches, info));
    RLHF_TRY(rlhf__kl_control_plan(g->host, &g->kl, info->batch_size));
    RLHF_TRY(rlhf__pg_metrics_plan(g->host, &g->metrics, info));
    struct rlhf__choices choices = {o->kl_placement, o->kl_measure,          g->scope,
                                    o->old_logp,     o->logprob_temperature, o->logprob_support};
    out->source = RLHF_SOURCE_ROLLOUT;
    out->heads = RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY;
    if (g->critic) out->heads |= RLHF_HEAD_VALUE;
    if (o->kl_estimator == RLHF__KL_FULL) out->heads |= RLHF_HEAD_KL;
    RLHF_TRY(plan_correction(g, info));
    out->flags = rlhf__plan_flags(&choices) | RLHF_PLAN_STALE;
    if (g->correction.level != RLHF__CORRECT_NONE) out->flags |= RLHF_PLAN_RECOMPUTE_LOGP;
    if (g->each) out->flags |= RLHF_PLAN_EACH_REWARD;
    out->carry_rows = g->correction.level == RLHF__CORRECT_SEQUENCE;
    out->carry_tokens = g->correction.level == RLHF__CORRECT_TOKEN;
    out->epochs = (uint32_t)o->epochs;
    out->minibatches = (uint32_t)o->minibatches;
    out->group_size = (uint32_t)o->group_size;
    out->resample_rounds = o->dynamic_sampling ? (uint32_t)o->dynamic_rounds : 0;
    return RLHF_OK;
}

static rlhf_status check_rollout(const struct rlhf__pg *g, const rlhf_rollout *in,
                                 const rlhf_advantages *out) {
    const rlhf_host *h = g->host;
    const char *wrong = rlhf__rows_check(in->offset, in->prompt_len, in->n, in->total);
    if (wrong) return h->fail(h, RLHF_E_INTERNAL, wrong);
    if (!in->score || !in->token_reward || !in->logp_old || !out->advantage || !out->returns)
        return h->fail(h, RLHF_E_INTERNAL, "an array of the rollout is missing");
    if (!in->value_old && g->critic) return h->fail(h, RLHF_E_INTERNAL, "value_old is missing");
    if (!in->group && g->opt.group_size > 1) return h->fail(h, RLHF_E_INTERNAL, "group is missing");
    if (g->each && (!in->reward_score || !in->reward_weight))
        return h->fail(h, RLHF_E_INTERNAL, "reward_score or reward_weight is missing");
    if (!in->logp_ref && g->opt.kl_placement == RLHF__KL_IN_REWARD)
        return h->fail(h, RLHF_E_INTERNAL, "logp_ref is missing");
    return RLHF_OK;
}

static rlhf_status scratch_reserve(struct rlhf__pg *g, uint64_t bytes) {
    if (bytes > g->scratch_bytes) {
        g->host->free(g->host, g->scratch);
        g->scratch = g->host->alloc(g->host, bytes);
        g->scratch_bytes = g->scratch ? bytes : 0;
    }
    if (g->scratch) return RLHF_OK;
    g->host->fail(g->host, RLHF_E_NOMEM, "out of memory");
    return RLHF_E_NOMEM; // the result of fail(), written as a constant for static analyzers
}

// The number of response tokens of the phase that the loss counts; 0 = unknown.
static int64_t phase_tokens(const struct rlhf__pg *g, const rlhf_rollout *in, int64_t own) {
    const int whole = !RLHF_HAS(rlhf_rollout, in, batch_tokens);
    if (whole && g->scope != RLHF__SCOPE_BATCH) return 0;
    if (!g->opt.mask_truncated) return whole ? own : in->batch_tokens;
    return RLHF_HAS(rlhf_rollout, in, batch_finished_tokens) ? in->batch_finished_tokens : 0;
}

rlhf_status rlhf__pg_begin(struct rlhf__pg *g, const rlhf_rollout *in, const rlhf_advantages *out,
                           int64_t per_token, int64_t per_row, double **scratch, int32_t *counts) {
    RLHF_TRY(check_rollout(g, in, out));
    int64_t tokens = rlhf__response_tokens(in->offset, in->prompt_len, in->n);
    uint64_t numbers = (uint64_t)(per_token * tokens + per_row * (int64_t)in->n + 1);
    RLHF_TRY(scratch_reserve(g, sizeof **scratch * numbers));
    *scratch = g->scratch;
    // If advantages are computed for each minibatch, each epoch calls this function for all
    // minibatches again, with the same rows. So rows count only in the first epoch.
    int64_t first_epoch = g->scope == RLHF__SCOPE_MINIBATCH ? g->opt.minibatches : 1;
    *counts = g->advantage_calls++ < first_epoch;
    g->phase_tokens = phase_tokens(g, in, tokens);
    return RLHF_OK;
}

// Returns 1 if the loss consists only of the surrogate. The loss and its gradient are then 0 for
// every token whose advantage is 0.
static int surrogate_alone(const struct rlhf__pg *g) {
    const int kl = g->opt.kl_placement == RLHF__KL_IN_LOSS && g->kl.coef != 0;
    return !g->critic && !kl && g->opt.entropy_coef == 0;
}

// The carried arrays that the plan asked for.
static struct rlhf__correction_weights weights_of(const struct rlhf__pg *g, const double *carry_row,
                                                  const double *carry_token) {
    const int32_t level = g->correction.level;
    return (struct rlhf__correction_weights){level == RLHF__CORRECT_SEQUENCE ? carry_row : NULL,
                                             level == RLHF__CORRECT_TOKEN ? carry_token : NULL};
}

// Returns the factor of the advantages of a whole row, or NaN if each token has its own.
static double row_factor(const struct rlhf__pg *g, const struct rlhf__correction_weights *w,
                         int64_t i, struct rlhf__span row) {
    if (!w->token) return rlhf__correction_of(w, i, row.begin);
    return g->whole_rows ? rlhf__correction_mean(w, i, row.begin, row.end) : NAN;
}

// The advantage of token t of row i, times its weight. `factor` is from row_factor.
static float weighted(const struct rlhf__correction_weights *w, double factor, const float *adv,
                      int64_t i, int64_t t) {
    return (float)((isnan(factor) ? rlhf__correction_of(w, i, t) : factor) * (double)adv[t]);
}

static int without_advantage(const struct rlhf__pg *g, const rlhf_advantages *out, int64_t i,
                             struct rlhf__span row) {
    const struct rlhf__correction_weights w = weights_of(g, out->carry_row, out->carry_token);
    if (row.begin == row.end) return 1;
    const double factor = row_factor(g, &w, i, row);
    for (int64_t t = row.begin; t < row.end; t++)
        if (weighted(&w, factor, out->advantage, i, t) != 0) return 0;
    return 1;
}

static rlhf_status correct(struct rlhf__pg *g, const rlhf_rollout *in, rlhf_advantages *out,
                           int32_t counts) {
    int64_t excluded;
    if (g->correction.level == RLHF__CORRECT_NONE) return RLHF_OK;
    RLHF_TRY(rlhf__correct(g->host, &g->correction, in, out, g->opt.mask_truncated,
                           counts ? &g->corrected : NULL, &excluded));
    if (g->phase_tokens > 0) g->phase_tokens -= excluded;
    return RLHF_OK;
}

rlhf_status rlhf__pg_uses(struct rlhf__pg *g, const rlhf_rollout *in, rlhf_advantages *out,
                          int32_t counts) {
    const int alone = surrogate_alone(g);
    RLHF_TRY(correct(g, in, out, counts));
    if (!out->use || !in->finished) {
        if (!g->opt.mask_truncated) return RLHF_OK;
        return g->host->fail(g->host, RLHF_E_INTERNAL, "use or finished is missing");
    }
    for (int64_t i = 0; i < in->n; i++) {
        const int masked = g->opt.mask_truncated && !in->finished[i];
        if (masked && counts) g->metrics.rollout.masked++;
        if (masked)
            out->use[i] = RLHF_USE_EXCLUDED;
        else if (out->use[i] == RLHF_USE_TRAINS && alone &&
                 without_advantage(g, out, i, rlhf__response(in->offset, in->prompt_len, i)))
            out->use[i] = RLHF_USE_NO_GRADIENT;
    }
    return RLHF_OK;
}

// Mask the rows of groups whose advantages are all 0. The divisors of the loss then count neither
// these rows nor their tokens. If the loss is divided by a number of rows, and advantages are
// computed over the whole batch, this number is the same for all minibatches: the average number of
// remaining rows per minibatch.
static rlhf_status mask_flat_groups(struct rlhf__pg *g, const rlhf_rollout *in,
                                    rlhf_advantages *out, int64_t *order, const double *advantage,
                                    uint8_t *flat, int32_t counts) {
    if (!out->use || !in->finished)
        return g->host->fail(g->host, RLHF_E_INTERNAL, "use or finished is missing");
    int64_t left = in->n;
    rlhf__flat_groups(advantage, in->group, in->n, order, flat);
    for (int64_t i = 0; i < in->n; i++) {
        if (!flat[i]) continue;
        const struct rlhf__span row = rlhf__response(in->offset, in->prompt_len, i);
        const int counted = out->use[i] != RLHF_USE_EXCLUDED;
        const int truncated = g->opt.mask_truncated && !in->finished[i]; // rlhf__pg_uses counted it
        left--;
        if (counts && !truncated) g->metrics.rollout.masked++;
        out->use[i] = RLHF_USE_EXCLUDED;
        if (g->phase_tokens > 0 && counted) g->phase_tokens -= row.end - row.begin;
    }
    g->rows = left;
    return RLHF_OK;
}

rlhf_status rlhf__pg_advantages(void *self, const rlhf_rollout *in, rlhf_advantages *out) {
    struct rlhf__pg *g = self;
    double *paid;
    int32_t counts;
    RLHF_TRY(rlhf__pg_begin(g, in, out, 0, 9, &paid, &counts));
    double *plain = paid + in->n, *advantage = plain + in->n;
    int64_t *order = (int64_t *)(void *)(advantage + in->n);
    double *work = (double *)(void *)(order + in->n);
    uint8_t *flat = (uint8_t *)(work + 4 * in->n);
    for (int64_t i = 0; i < in->n; i++) {
        plain[i] = paid[i] = rlhf__row_reward(in, i);
        if (g->opt.kl_placement == RLHF__KL_IN_REWARD)
            RLHF_TRY(
                rlhf__penalised_reward(g->host, g->opt.kl_estimator, g->kl.coef, in, i, paid + i));
    }
    g->method->compare(self, in, paid, work, order, advantage);
    if (counts)
        RLHF_TRY(rlhf__count_paid(g->host, &g->metrics, g->opt.kl_estimator, in, plain, paid,
                                  g->each ? advantage : plain));
    rlhf__spread(in, advantage, paid, out);
    RLHF_TRY(rlhf__pg_uses(g, in, out, counts));
    if (!g->opt.mask_zero_advantage_groups) return RLHF_OK;
    return mask_flat_groups(g, in, out, order, advantage, flat, counts);
}

static rlhf_status check_loss(const struct rlhf__pg *g, const rlhf_loss_in *in,
                              const rlhf_loss_out *out) {
    const rlhf_host *h = g->host;
    RLHF_TRY(rlhf__logp_check(h, in, out));
    const rlhf_head_values *x = in->heads;
    const rlhf_head_gradients *d = out->d_heads;
    if (!x->entropy || !d->entropy)
        return h->fail(h, RLHF_E_INTERNAL, "the entropy head is missing");
    if (!in->logp_old || !in->advantage)
        return h->fail(h, RLHF_E_INTERNAL, "logp_old or advantage is missing");
    if ((g->correction.level == RLHF__CORRECT_SEQUENCE && !in->carry_row) ||
        (g->correction.level == RLHF__CORRECT_TOKEN && !in->carry_token))
        return h->fail(h, RLHF_E_INTERNAL, "the weights of the correction are missing");
    if (g->critic && (!x->value || !d->value || !in->value_old || !in->returns))
        return h->fail(h, RLHF_E_INTERNAL, "the value head, value_old or returns is missing");
    if (g->opt.kl_placement == RLHF__KL_IN_LOSS &&
        (g->opt.kl_estimator == RLHF__KL_FULL ? !x->kl || !d->kl : !in->logp_ref))
        return h->fail(h, RLHF_E_INTERNAL, "the kl head or logp_ref is missing");
    if (in->max_new_tokens == 0)
        return h->fail(h, RLHF_E_INTERNAL, "max_new_tokens is not positive");
    return RLHF_OK;
}

// Sets *adv to the advantages of the response `row`, times the weights of the correction.
static rlhf_status row_advantages(struct rlhf__pg *g, const rlhf_loss_in *in, int64_t i,
                                  struct rlhf__span row, const float **adv) {
    const struct rlhf__correction_weights w = weights_of(g, in->carry_row, in->carry_token);
    *adv = in->advantage + row.begin;
    if (g->correction.level == RLHF__CORRECT_NONE) return RLHF_OK;
    RLHF_TRY(scratch_reserve(g, sizeof(float) * (uint64_t)(row.end - row.begin)));
    float *own = (float *)(void *)g->scratch;
    const double factor = row_factor(g, &w, i, row);
    for (int64_t t = row.begin; t < row.end; t++)
        own[t - row.begin] = weighted(&w, factor, in->advantage, i, t);
    *adv = own;
    return RLHF_OK;
}

// Adds all loss terms of row i, whose response `row` must not be empty, to *u and *d. Adds the
// measured KL to *r.
static rlhf_status row_loss(struct rlhf__pg *g, const rlhf_loss_in *in, int64_t i,
                            struct rlhf__span row, double w, const rlhf_head_gradients *d,
                            struct rlhf__pg_update_sums *u, struct rlhf__pg_rollout_sums *r) {
    const float *adv;
    RLHF_TRY(row_advantages(g, in, i, row, &adv));
    g->method->terms(g, in, row, adv, w, d, u);
    if (g->opt.kl_placement == RLHF__KL_IN_LOSS)
        RLHF_TRY(rlhf__kl_term(g->host, g->opt.kl_estimator, g->kl.coef, in, row, w, d, u, r));
    rlhf__entropy_term(g->opt.entropy_coef, in, row, w, d, u);
    return RLHF_OK;
}

static struct rlhf__totals totals_of(const struct rlhf__pg *g, const rlhf_loss_in *in) {
    const int said = RLHF_HAS(rlhf_loss_in, in, minibatches);
    struct rlhf__totals t = {.sequences = (double)in->batch_sequences,
                             .tokens = in->batch_tokens,
                             .max_len = in->max_new_tokens,
                             .phase_tokens = g->phase_tokens,
                             .minibatches = said ? in->minibatches : g->opt.minibatches};
    if (g->rows < 0) return t;
    t.sequences = (double)g->rows;
    if (g->scope == RLHF__SCOPE_BATCH) t.sequences /= (double)t.minibatches;
    return t;
}

rlhf_status rlhf__pg_loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    struct rlhf__pg *g = self;
    RLHF_TRY(check_loss(g, in, out));
    if (in->shard >= g->metrics.shards)
        return g->host->fail(g->host, RLHF_E_INTERNAL, "a shard that the plan did not know");
    struct rlhf__pg_shard *own = &g->metrics.shard[in->shard];
    struct rlhf__pg_update_sums u = {0};
    const struct rlhf__totals totals = totals_of(g, in);
    for (int64_t i = 0; i < in->n; i++) {
        struct rlhf__span row = rlhf__response(in->offset, in->prompt_len, i);
        if (row.end == row.begin) continue;
        double w = rlhf__token_weight(g->aggregation, &totals, row.end - row.begin);
        RLHF_TRY(row_loss(g, in, i, row, w, out->d_heads, &u, &own->kl));
    }
    if (in->epoch == 0 && g->opt.kl_estimator == RLHF__KL_FULL) own->kl.kl_sequences += in->n;
    out->loss = rlhf__pg_total_loss(&u);
    rlhf__pg_add(&own->minibatch, &u);
    return RLHF_OK;
}

rlhf_status rlhf__pg_minibatch_end(void *self, const rlhf_step_info *step, rlhf_step_out *out) {
    struct rlhf__pg *g = self;
    RLHF_TRY(rlhf__pg_reduce(g->host, &g->metrics));
    double approx_kl = rlhf__pg_approx_kl(&g->metrics.minibatch);
    out->stop = g->opt.target_kl > 0 && approx_kl > g->opt.target_kl;
    rlhf__pg_fold(&g->metrics, step);
    return RLHF_OK;
}

rlhf_status rlhf__pg_phase_end(void *self, const rlhf_phase_info *info) {
    struct rlhf__pg *g = self;
    (void)info;
    if (g->opt.kl_estimator == RLHF__KL_FULL) RLHF_TRY(rlhf__pg_reduce_kl(g->host, &g->metrics));
    struct rlhf__pg_report how = {g->kl.coef,
                                  g->opt.kl_placement != RLHF__KL_NOWHERE,
                                  g->critic,
                                  g->opt.logprob_support == RLHF__SUPPORT_SAMPLED,
                                  g->opt.group_size > 1 || g->together,
                                  g->opt.mask_truncated || g->opt.mask_zero_advantage_groups,
                                  g->unclipped};
    rlhf__pg_report(g->host, &g->metrics, &how);
    rlhf__correction_report(g->host, &g->correction, &g->corrected);
    g->corrected = (struct rlhf__correction_sums){0};
    rlhf__kl_control_update(&g->kl, &g->metrics.rollout);
    rlhf__pg_metrics_reset(&g->metrics);
    g->advantage_calls = 0;
    g->phase_tokens = 0;
    g->rows = -1;
    return RLHF_OK;
}

rlhf_status rlhf__pg_save(void *self, const rlhf_ostream *out) {
    const struct rlhf__pg *g = self;
    return rlhf__kl_control_save(&g->kl, g->method->magic, out);
}

rlhf_status rlhf__pg_load(void *self, const rlhf_istream *in, uint32_t state_version) {
    struct rlhf__pg *g = self;
    if (state_version != g->method->state_version)
        return rlhf_failf(g->host, RLHF_E_UNSUPPORTED, "state version %u; this %s reads version %u",
                          (unsigned)state_version, g->method->name,
                          (unsigned)g->method->state_version);
    return rlhf__kl_control_load(g->host, &g->kl, g->method->magic, in);
}
