// scoring.c: see scoring.h.
#include "sample/scoring.h"

#include "sample/mixing.h"
#include "sample/reward_share.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

rlhf_status rlhf__score_alone(struct rlhf__team *team, const struct rlhf__reward_call *q,
                              const struct rlhf__scored *x, const struct rlhf__rows *e, float *raw,
                              uint8_t *failed, struct rlhf__error *err) {
    struct rlhf__reward_rows r = {0};
    struct rlhf__reward_answer a = {0};
    rlhf_status st = rlhf__reward_rows_init(&r, x, e, q->plugin->plugin->ops.reward.flags, err);
    if (st == RLHF_OK) st = rlhf__reward_answer_init(&a, &r, err);
    if (st == RLHF_OK) st = rlhf__reward_share(team, q, NULL, &r, &a, err);
    for (uint32_t i = 0; st == RLHF_OK && i < e->n; i++) {
        failed[i] = a.failed[i];
        raw[i] = failed[i] ? NAN : rlhf__reward_answer_paid(&a, &r, i);
    }
    rlhf__reward_answer_finish(&a);
    rlhf__reward_rows_finish(&r);
    return st;
}

// ---- all rewards of a run ----

struct totals {
    // [n_reward] pointers into `numbers`, but `row` may point into the caller's array `raw`
    struct rlhf__reward_parts *parts;
    float *numbers;
    struct rlhf__reward_rows rows;
    struct rlhf__reward_answer answer; // of the current reward
    uint8_t *keep;                     // [n]
    uint8_t *missing;                  // [(n_reward + 1) * n] of `parts`; then [n] rows without any
    int64_t not_finite, failed;        // rows, added up over the rewards
};

static int has_token_rewards(const struct rlhf__scorer *s, size_t k) {
    return (s->rewards[k]->plugin->ops.reward.flags & RLHF_REWARD_PER_TOKEN) != 0;
}

// Returns 1 if an environment rewards the rows. Its rewards are treated like those of an additional
// reward plugin.
static int is_paid(const struct rlhf__scorer *s, const struct rlhf__rows *e) {
    return s->config->environment.plugin && e->paid;
}

static rlhf_status totals_init(struct totals *l, const struct rlhf__scorer *s,
                               const struct rlhf__scored *x, const struct rlhf__rows *e, float *raw,
                               struct rlhf__error *err) {
    size_t n_reward = s->config->n_reward, cells = 2 * n_reward * e->n;
    for (size_t k = 0; k < n_reward; k++)
        if (has_token_rewards(s, k)) cells += e->total;
    cells += 2 * (size_t)e->n; // for the environment's rewards
    l->parts = calloc(n_reward + 1, sizeof *l->parts);
    l->numbers = calloc(cells + 1, sizeof *l->numbers);
    l->missing = calloc((n_reward + 2) * (size_t)e->n + 1, 1);
    if (!l->parts || !l->numbers || !l->missing)
        return RLHF__NOMEM(err, "out of memory scoring %u rows", e->n);
    float *seq = l->numbers, *row = seq + n_reward * e->n, *token = row + n_reward * e->n;
    if (raw) row = raw;
    for (size_t k = 0; k < n_reward; k++) {
        l->parts[k] = (struct rlhf__reward_parts){.seq = seq + k * e->n, .row = row + k * e->n};
        l->parts[k].missing = l->missing + k * e->n;
        if (!has_token_rewards(s, k)) continue;
        l->parts[k].token = token;
        token += e->total;
    }
    float *own = l->numbers + cells - 2 * (size_t)e->n;
    l->parts[n_reward] = (struct rlhf__reward_parts){
        .seq = own, .row = own + e->n, .token = e->paid, .missing = l->missing + n_reward * e->n};
    uint32_t flags = 0;
    for (size_t k = 0; k < n_reward; k++)
        flags |= s->rewards[k]->plugin->ops.reward.flags;
    RLHF_TRY(rlhf__reward_rows_init(&l->rows, x, e, flags, err));
    for (uint32_t i = 0; s->held_out && i < e->n; i++)
        l->rows.source[i] = -1;
    return rlhf__reward_answer_init(&l->answer, &l->rows, err);
}

static void totals_finish(struct totals *l) {
    free(l->parts);
    free(l->numbers);
    free(l->missing);
    rlhf__reward_answer_finish(&l->answer);
    rlhf__reward_rows_finish(&l->rows);
}

// ---- one reward ----

static rlhf_status refuse(const struct rlhf__scorer *s, size_t k, const struct rlhf__scored *x,
                          uint32_t i, float value, int unwritten, struct rlhf__error *err) {
    const struct rlhf__instance *p = s->rewards[k];
    char what[48];
    int shown = (int)(x->response[i].len < 60 ? x->response[i].len : 60);
    snprintf(what, sizeof what, "gave %g for",
             isnan(value) ? (double)NAN : (double)value); // print nan, not -nan
    return rlhf__fail(err, RLHF_E_NUMERIC,
                      "reward %s (%s) %s row %u of phase %llu, response \"%.*s\"; "
                      "rewards.nan_policy says stop (zero and drop are allowed too)",
                      s->config->reward[k].name, rlhf__plugin_name(p->plugin),
                      unwritten ? "did not write" : what, i, (unsigned long long)s->phase + 1,
                      shown, x->response[i].ptr);
}

// Take a reward's values and apply rewards.on_failure and rewards.nan_policy. If this reward could
// not score a row, or gave it a value that is not finite, it adds nothing to the row's reward.
static rlhf_status take_rows(const struct rlhf__scorer *s, const struct rlhf__scored *x, size_t k,
                             struct totals *l, struct rlhf__error *err) {
    const struct rlhf__mixing_config *c = &s->config->mixing;
    const struct rlhf__reward_parts *parts = &l->parts[k];
    struct rlhf__reward_answer *a = &l->answer;
    for (uint32_t i = 0; i < l->rows.n; i++) {
        const float paid = rlhf__reward_answer_paid(a, &l->rows, i);
        parts->missing[i] = a->failed[i] || !isfinite(paid);
        if (a->failed[i]) {
            l->failed++;
            if (c->on_failure == RLHF__FAILURE_DROP) l->keep[i] = 0;
        } else if (!isfinite(paid)) {
            const uint8_t verdict = a->verdict[i]; // keep it even if the reward is not finite
            l->not_finite++;
            if (c->nan_policy == RLHF__NAN_STOP)
                return refuse(s, k, x, i, paid, rlhf__reward_answer_unwritten(a, i), err);
            if (s->tally) s->tally[k].not_finite++;
            if (c->nan_policy == RLHF__NAN_DROP) l->keep[i] = 0;
            rlhf__reward_answer_void(a, &l->rows, i);
            a->verdict[i] = verdict;
        }
        parts->seq[i] = a->seq[i];
        parts->row[i] = rlhf__reward_answer_paid(a, &l->rows, i);
    }
    return RLHF_OK;
}

static void take_tokens(const struct rlhf__rows *e, const struct rlhf__reward_parts *parts,
                        const struct totals *l) {
    const struct rlhf__reward_rows *r = &l->rows;
    for (uint32_t i = 0; parts->token && i < e->n; i++)
        for (int32_t j = e->prompt_len[i]; j < r->offset[i + 1] - r->offset[i]; j++)
            parts->token[e->offset[i] + j] = l->answer.token[r->offset[i] + j];
}

// Combine the current reward's verdicts with the earlier ones. An answer is right if all rewards
// that give a verdict find it right.
static void take_verdicts(struct rlhf__scored *x, const struct rlhf__reward_answer *a) {
    for (uint32_t i = 0; i < x->n; i++)
        if (a->verdict[i] != RLHF_VERDICT_NONE && x->verdict[i] != RLHF_VERDICT_WRONG)
            x->verdict[i] =
                a->verdict[i] == RLHF_VERDICT_RIGHT ? RLHF_VERDICT_RIGHT : RLHF_VERDICT_WRONG;
}

static rlhf_status score_one(const struct rlhf__scorer *s, struct rlhf__scored *x,
                             const struct rlhf__rows *e, size_t k, struct totals *l,
                             struct rlhf__error *err) {
    const struct rlhf__reward_call q = {.rules = &s->config->mixing,
                                        .plugin = s->rewards[k],
                                        .phase = s->phase,
                                        .trains = 1,
                                        .metric = s->reported,
                                        .metric_ctx = s->metric_ctx,
                                        .log = s->log,
                                        .tally = s->tally ? &s->tally[k] : NULL};
    struct rlhf__overlap_answers *early = s->overlap ? rlhf__overlap_take(s->overlap, k) : NULL;
    RLHF_TRY(rlhf__reward_share(s->team, &q, early, &l->rows, &l->answer, err));
    take_verdicts(x, &l->answer);
    RLHF_TRY(take_rows(s, x, k, l, err));
    take_tokens(e, &l->parts[k], l);
    return RLHF_OK;
}

// ---- the environment ----

static void forgive(struct rlhf__rows *e, uint32_t i) {
    for (int32_t t = e->offset[i]; t < e->offset[i + 1]; t++)
        e->paid[t] = 0;
}

// Take the environment's rewards and verdicts, and apply rewards.nan_policy.
static rlhf_status take_environment(const struct rlhf__scorer *s, struct rlhf__scored *x,
                                    struct rlhf__rows *e, struct totals *l,
                                    struct rlhf__error *err) {
    const struct rlhf__reward_parts *parts = &l->parts[s->config->n_reward];
    const struct rlhf__reward_answer verdicts = {.verdict = e->verdict};
    if (!is_paid(s, e)) return RLHF_OK;
    take_verdicts(x, &verdicts);
    for (uint32_t i = 0; i < e->n; i++) {
        double paid = rlhf__rows_response_sum(e, i, e->paid, NULL);
        if (!isfinite(paid)) {
            parts->missing[i] = 1;
            l->not_finite++;
            if (s->config->mixing.nan_policy == RLHF__NAN_STOP)
                return rlhf__fail(err, RLHF_E_NUMERIC,
                                  "the environment (%s) paid %g for row %u of phase %llu; "
                                  "rewards.nan_policy says stop (zero and drop are allowed too)",
                                  s->config->environment.plugin, isnan(paid) ? (double)NAN : paid,
                                  i, (unsigned long long)s->phase + 1);
            if (s->config->mixing.nan_policy == RLHF__NAN_DROP) l->keep[i] = 0;
            forgive(e, i);
            paid = 0;
        }
        parts->row[i] = (float)paid;
    }
    return RLHF_OK;
}

// ---- all of them ----

static void report(const struct rlhf__scorer *s, const char *reward,
                   const struct rlhf__reward_parts *parts, const uint8_t *keep, uint32_t n) {
    double mean, std;
    char name[192];
    if (rlhf__mean_std(parts->row, keep, parts->missing, n, &mean, &std) == 0) return;
    snprintf(name, sizeof name, "rewards/%s/mean", reward);
    s->metric(s->metric_ctx, name, mean);
    snprintf(name, sizeof name, "rewards/%s/std", reward);
    s->metric(s->metric_ctx, name, std);
}

static void report_all(const struct rlhf__scorer *s, const struct rlhf__scored *x,
                       const struct rlhf__rows *e, const struct totals *l) {
    if (!s->metric) return;
    for (size_t k = 0; k < s->config->n_reward; k++)
        report(s, s->config->reward[k].name, &l->parts[k], l->keep, l->rows.n);
    if (is_paid(s, e)) report(s, "environment", &l->parts[s->config->n_reward], l->keep, l->rows.n);
    s->metric(s->metric_ctx, "rewards/not_finite", (double)l->not_finite);
    const double correct = rlhf__scored_correct(x, l->keep);
    if (!isnan(correct)) s->metric(s->metric_ctx, "objective/verifiable_correct_rate", correct);
}

// Fail if all rows were dropped, unless that is allowed.
static rlhf_status check_left(const struct rlhf__scorer *s, const struct totals *l,
                              struct rlhf__error *err) {
    for (uint32_t i = 0; i < l->rows.n; i++)
        if (l->keep[i]) return RLHF_OK;
    if (s->may_drop_all) return RLHF_OK;
    if (l->failed == 0)
        return rlhf__fail(err, RLHF_E_NUMERIC, "every reward of phase %llu was not finite",
                          (unsigned long long)s->phase + 1);
    return rlhf__fail(
        err, RLHF_E_IO,
        "no row of phase %llu is left: %lld could not be scored (rewards.on_failure), "
        "%lld had a reward that is not finite (rewards.nan_policy)",
        (unsigned long long)s->phase + 1, (long long)l->failed, (long long)l->not_finite);
}

static rlhf_status score_all(const struct rlhf__scorer *s, struct rlhf__scored *x,
                             struct rlhf__rows *e, struct totals *l, struct rlhf__error *err) {
    for (size_t k = 0; k < s->config->n_reward; k++) {
        char doing[64];
        snprintf(doing, sizeof doing, "reward %.40s", s->config->reward[k].name);
        rlhf__watch_seen(s->watch, doing, 0, 0);
        RLHF_TRY(score_one(s, x, e, k, l, err));
    }
    RLHF_TRY(take_environment(s, x, e, l, err));
    report_all(s, x, e, l);
    return check_left(s, l, err);
}

// Returns an array [n] of flags: 1 = no reward gave the row a value.
static const uint8_t *find_unpaid(const struct rlhf__scorer *s, const struct totals *l,
                                  const struct rlhf__rows *e) {
    const size_t n = s->config->n_reward + (size_t)is_paid(s, e);
    uint8_t *unpaid = l->missing + (s->config->n_reward + 1) * e->n;
    for (uint32_t i = 0; i < e->n; i++) {
        unpaid[i] = 1;
        for (size_t k = 0; k < n; k++)
            unpaid[i] &= l->parts[k].missing[i];
    }
    return unpaid;
}

// Keep each reward's own score of each row, for algorithms that use them.
static rlhf_status keep_each(const struct rlhf__scorer *s, const struct totals *l,
                             struct rlhf__rows *e, struct rlhf__error *err) {
    e->n_rewards = (uint32_t)s->config->n_reward + (uint32_t)is_paid(s, e);
    RLHF_TRY(RLHF__ROWS_ADD(e, reward_score, err));
    for (uint32_t k = 0; k < e->n_rewards; k++)
        for (uint32_t i = 0; i < e->n; i++)
            e->reward_score[i * e->n_rewards + k] =
                l->parts[k].missing[i] ? NAN : l->parts[k].row[i];
    return RLHF_OK;
}

rlhf_status rlhf__score(const struct rlhf__scorer *s, struct rlhf__scored *x, struct rlhf__rows *e,
                        uint8_t *keep, float *raw, struct rlhf__error *err) {
    struct totals l = {.keep = keep};
    memset(keep, 1, e->n);
    rlhf_status st = totals_init(&l, s, x, e, raw, err);
    if (st == RLHF_OK) st = score_all(s, x, e, &l, err);
    const uint8_t *unpaid = st == RLHF_OK ? find_unpaid(s, &l, e) : NULL;
    if (st == RLHF_OK) rlhf__mix(s->config, l.parts, keep, unpaid, x->no_period, e);
    if (st == RLHF_OK && s->unpaid) memcpy(s->unpaid, unpaid, e->n);
    if (st == RLHF_OK && s->each) st = keep_each(s, &l, e, err);
    for (uint32_t i = 0; st == RLHF_OK && i < e->n; i++)
        if (!isfinite(e->reward[i]))
            st = rlhf__fail(err, RLHF_E_NUMERIC,
                            "the rewards of row %u of phase %llu add up to %g: the weights are too "
                            "large for them",
                            i, (unsigned long long)s->phase + 1, (double)e->reward[i]);
    if (st == RLHF_OK && s->missing)
        memcpy(s->missing, l.missing, s->config->n_reward * (size_t)e->n);
    totals_finish(&l);
    return st;
}
