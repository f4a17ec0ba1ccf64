// held_out_prompts.c: see feed.h.
#include "feed/feed.h"

#include "episode/episode_metrics.h"
#include "episode/episode_share.h"
#include "learn/pass_share.h"
#include "sample/mixing.h"
#include "sample/rollout_share.h"
#include "sample/scoring.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

rlhf_status rlhf__held_out_prompts_open(const struct rlhf__feed_env *env,
                                        struct rlhf__prompts **out, struct rlhf__error *err) {
    const struct rlhf__config *c = env->config;
    struct rlhf__prompts_config rules = c->prompts;
    *out = NULL;
    if (!c->data.eval_path[0]) return RLHF_OK;
    rules.path = c->data.eval_path;
    rules.text = "";
    rules.limit = c->data.eval_limit;
    return rlhf__rollout_prompts(&rules, "data.eval_path", env->cast->policy, &c->sampling,
                                 env->dirs, env->log, env->loading, out, err);
}

// Scores of the held-out responses.
struct result {
    double mean;     // of the rewards
    uint32_t scored; // responses that have a reward
    double correct;  // share of right answers; NaN if no reward verifies answers
};

// A measurement.
struct measured {
    const struct rlhf__feed_env *env;
    const struct rlhf__prompts *prompts;
    const struct rlhf__held_out *h;
    int32_t whole; // 1: log-probs are over the whole vocabulary
};

// Returns the destination of the metrics, with the prefix "eval/".
static struct rlhf__metrics_under under_eval(const struct rlhf__held_out *h) {
    return (struct rlhf__metrics_under){h->metrics, "eval/"};
}

// ---- samples ----

static int wants_samples(const struct rlhf__feed_env *env, const struct rlhf__held_out *h) {
    return h->samples && env->config->log.samples > 0 && env->config->log.samples_every > 0;
}

// Compute the reference's log-probs of the rows that become samples.
static rlhf_status refer_samples(const struct rlhf__feed_env *env, struct rlhf__rows *e,
                                 struct rlhf__error *err) {
    const struct rlhf__cast *cast = env->cast;
    const int64_t most = env->config->log.samples;
    struct rlhf__rows part = {0};
    uint32_t *pick = calloc(e->n ? e->n : 1, sizeof *pick);
    if (!pick) return RLHF__NOMEM(err, "out of memory for samples");
    const uint32_t n = rlhf__sample_choice_even(e->n, most < e->n ? (uint32_t)most : e->n, pick);
    rlhf_status st = rlhf__rows_pick(&part, e, pick, n, err);
    const struct rlhf__pass_out out = {.logp = part.token[RLHF__LOGP_REF]};
    const int64_t tokens =
        rlhf__model_microbatch(cast->reference, env->config->batch.microbatch_tokens);
    if (st == RLHF_OK) st = rlhf__pass(cast->reference, &part, &cast->logp_dist, tokens, &out, err);
    if (st == RLHF_OK) rlhf__model_trim(cast->reference);
    for (uint32_t i = 0; st == RLHF_OK && i < n; i++)
        memcpy(e->token[RLHF__LOGP_REF] + e->offset[pick[i]], out.logp + part.offset[i],
               (size_t)(part.offset[i + 1] - part.offset[i]) * sizeof(float));
    rlhf__rows_finish(&part);
    free(pick);
    return st;
}

// Write some of the responses to samples.jsonl. The reference's log-probs are written only if they
// are normalized over the whole vocabulary, because this function does not know which tokens
// sampling kept.
static rlhf_status write_samples(const struct measured *m, struct rlhf__rows *e,
                                 const struct rlhf__scored *x, struct rlhf__error *err) {
    const struct rlhf__feed_env *env = m->env;
    const struct rlhf__held_out *h = m->h;
    const struct rlhf__cast *cast = env->cast;
    const int refers = rlhf__cast_wants_reference(cast) && (m->whole || cast->rewards_refer);
    struct rlhf__sample_choice chosen = {0};
    const struct rlhf__sample_choice_from from = {.rows = e,
                                                  .source = RLHF_SOURCE_ROLLOUT,
                                                  .flags = RLHF__CHOICE_HELD_OUT |
                                                           RLHF__CHOICE_REWARDS |
                                                           (refers ? RLHF__CHOICE_REFERENCE : 0),
                                                  .scored = x,
                                                  .prompts = m->prompts,
                                                  .tok = cast->policy->tok,
                                                  .config = env->config};
    rlhf_status st = refers && !cast->rewards_refer ? refer_samples(env, e, err) : RLHF_OK;
    if (st == RLHF_OK) st = rlhf__sample_choice_take(&chosen, &from, err);
    if (st == RLHF_OK && chosen.n > 0)
        st = rlhf__samples_write(h->samples, h->phase, chosen.rows, chosen.n, err);
    rlhf__sample_choice_finish(&chosen);
    return st;
}

// ---- scores ----

// Score the rows. x has the texts of the rows, and receives the scores of each reward.
static rlhf_status score_texts(const struct rlhf__scorer *s, struct rlhf__scored *x,
                               struct rlhf__rows *e, uint8_t *keep, struct rlhf__error *err) {
    const uint32_t n = (uint32_t)s->config->n_reward;
    float *raw = calloc((size_t)e->n * n + 1, sizeof *raw);
    if (!raw) return RLHF__NOMEM(err, "out of memory for %u held-out responses", e->n);
    rlhf_status st = rlhf__score(s, x, e, keep, raw, err);
    if (st == RLHF_OK) st = rlhf__scored_take_paid(x, raw, n, err);
    free(raw);
    return st;
}

static rlhf_status score_rows(const struct measured *m, struct rlhf__rows *e, struct result *result,
                              struct rlhf__reward_tally *tally, struct rlhf__error *err) {
    const struct rlhf__feed_env *env = m->env;
    const struct rlhf__held_out *h = m->h;
    struct rlhf__config config = *env->config; // its pointers still belong to the run's config
    config.mixing.normalize = RLHF__NORMALIZE_NONE;
    config.mixing.clip = 0;
    struct rlhf__metrics_under to = under_eval(h);
    uint8_t *keep = calloc(2 * (size_t)e->n + 1, 1), *unpaid = keep ? keep + e->n : NULL;
    const struct rlhf__scorer s = {.config = &config,
                                   .rewards = env->cast->rewards,
                                   .metric = rlhf__metrics_under_put,
                                   .reported = rlhf__metrics_under_reported,
                                   .metric_ctx = &to,
                                   .phase = h->phase > 0 ? h->phase - 1 : 0,
                                   .held_out = 1,
                                   .unpaid = unpaid,
                                   .watch = rlhf__progress_watch(env->progress),
                                   .log = env->log,
                                   .tally = tally,
                                   .team = env->cast->share.team};
    const struct rlhf__scored_by by = {&config.response, env->cast->rules, m->prompts};
    struct rlhf__scored x = {0};
    double std;
    if (!keep) return RLHF__NOMEM(err, "out of memory for %u held-out responses", e->n);
    rlhf_status st = rlhf__scored_init(&x, &by, e, err);
    if (st == RLHF_OK) st = score_texts(&s, &x, e, keep, err);
    if (st == RLHF_OK)
        result->scored = rlhf__mean_std(e->reward, keep, unpaid, e->n, &result->mean, &std);
    result->correct = rlhf__scored_correct(&x, keep);
    if (st == RLHF_OK && wants_samples(env, h)) st = write_samples(m, e, &x, err);
    rlhf__scored_finish(&x);
    free(keep);
    return st;
}

// Score the rows. Counts their reward calls separately, then adds the counts to the run's totals.
static rlhf_status score_and_tally(const struct measured *m, struct rlhf__rows *e,
                                   struct result *result, struct rlhf__error *err) {
    const struct rlhf__feed_env *env = m->env;
    const struct rlhf__held_out *h = m->h;
    const size_t n = env->config->n_reward;
    char owner[192];
    struct rlhf__metrics_under to = under_eval(h);
    struct rlhf__reward_tally *tally = calloc(n + 1, sizeof *tally);
    if (!tally) return RLHF__NOMEM(err, "out of memory for %u held-out responses", e->n);
    rlhf_status st = score_rows(m, e, result, tally, err);
    for (size_t k = 0; k < n; k++) {
        snprintf(owner, sizeof owner, "rewards/%s", env->config->reward[k].name);
        if (st == RLHF_OK)
            rlhf__reward_tally_report(&tally[k], owner, rlhf__metrics_under_put, &to);
        rlhf__reward_tally_add(&h->tallies->run[k], &tally[k]);
    }
    free(tally);
    return st;
}

// Compute the reference's log-probs if a reward needs them.
static rlhf_status refer(const struct rlhf__feed_env *env, struct rlhf__rows *e,
                         struct rlhf__error *err) {
    const struct rlhf__cast *cast = env->cast;
    const struct rlhf__pass_out out = {.logp = e->token[RLHF__LOGP_REF]};
    if (!cast->rewards_refer) return RLHF_OK;
    const int64_t tokens =
        rlhf__model_microbatch(cast->reference, env->config->batch.microbatch_tokens);
    RLHF_TRY(rlhf__pass_share(cast->share.team, cast->reference, e, &cast->logp_dist, tokens, &out,
                              err));
    rlhf__model_trim(cast->reference);
    return RLHF_OK;
}

static void say(const struct rlhf__feed_env *env, const struct rlhf__held_out *h,
                const struct result *result, uint32_t n) {
    char right[40] = "", left[60] = "", when[60] = "before the first phase";
    if (!isnan(result->correct)) snprintf(right, sizeof right, ", %.4f right", result->correct);
    if (h->phase > 0)
        snprintf(when, sizeof when, "after %lld phase%s", (long long)h->phase,
                 h->phase == 1 ? "" : "s");
    if (result->scored == 0) {
        rlhf__logf(env->log, RLHF_LOG_WARN,
                   "no held-out response has a reward %s, so eval/reward is missing", when);
        return;
    }
    if (result->scored < n)
        snprintf(left, sizeof left, ", %u without a reward left out", n - result->scored);
    rlhf__logf(env->log, RLHF_LOG_INFO, "held-out reward %.4f%s (%u response%s%s) %s", result->mean,
               right, result->scored, result->scored == 1 ? "" : "s", left, when);
}

// Play an episode for each prompt. The metrics of the environment get the prefix "eval/", too.
static rlhf_status play(const struct measured *m, const struct rlhf__episode_setup *episodes,
                        const struct rlhf__rollout_request *q, const int64_t *row,
                        struct rlhf__rows *e, struct rlhf__error *err) {
    struct rlhf__metrics_under to = under_eval(m->h);
    struct rlhf__episode_counts counts;
    const struct rlhf__episodes_request of = {.setup = episodes,
                                              .row = row,
                                              .n = q->n,
                                              .group = 1,
                                              .stream = "environment held out",
                                              .phase = m->h->phase > 0 ? m->h->phase - 1 : 0,
                                              .metric = rlhf__metrics_under_reported,
                                              .metric_ctx = &to};
    const rlhf_status st =
        rlhf__playing_share(m->env->cast->share.team, &of, q, e, NULL, &counts, err);
    if (st == RLHF_OK) rlhf__episode_metrics(e, &counts, rlhf__metrics_under_put, &to);
    return st;
}

// Sample one response, or one episode, for each prompt.
static rlhf_status respond(const struct measured *m, const struct rlhf__episode_setup *episodes,
                           const struct rlhf__rollout_request *q, struct rlhf__rows *e,
                           struct rlhf__error *err) {
    int64_t *row = calloc((size_t)q->n + 1, sizeof *row);
    if (!row) return RLHF__NOMEM(err, "out of memory for %u prompts", q->n);
    for (uint32_t i = 0; i < q->n; i++)
        row[i] = i;
    const rlhf_status st =
        episodes ? play(m, episodes, q, row, e, err)
                 : rlhf__rollout_share(m->env->cast->share.team, q, row, e, NULL, err);
    free(row);
    return st;
}

rlhf_status rlhf__held_out_prompts_measure(const struct rlhf__feed_env *env,
                                           struct rlhf__rollout_request q,
                                           const struct rlhf__episode_setup *episodes,
                                           const struct rlhf__held_out *h,
                                           struct rlhf__error *err) {
    struct rlhf__rows e = {0};
    struct result result = {.mean = 0};
    rlhf__progress_note(env->progress, "evaluation");
    q.n = (uint32_t)rlhf__prompts_count(q.prompts);
    q.group = 1;
    const struct measured m = {env, q.prompts, h, !q.keep_support};
    // Keep the supports (the tokens that sampling kept) only if a reward needs log-probs.
    q.keep_support &= env->cast->rewards_refer || env->cast->rewards_sampled;
    q.stream = "eval";
    q.first = 0;
    rlhf_status st = respond(&m, episodes, &q, &e, err);
    if (st == RLHF_OK) st = refer(env, &e, err);
    if (st == RLHF_OK) st = score_and_tally(&m, &e, &result, err);
    if (st == RLHF_OK && result.scored)
        st = rlhf__metrics_set(h->metrics, "eval/reward", result.mean);
    if (st == RLHF_OK) say(env, h, &result, e.n);
    rlhf__rows_finish(&e);
    return st;
}
