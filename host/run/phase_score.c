// phase_score.c: see phase_score.h.
#include "run/phase_score.h"

#include "base/clock.h"
#include "episode/episode_metrics.h"
#include "run/phase_passes.h"
#include "sample/mixing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- episodes ----

static void report_episodes(const struct rlhf__phase *p, const struct rlhf__experience *x) {
    const struct rlhf__episode_counts *c = &x->replies;
    const int plays = !p->recorded || p->trusts == RLHF__TRUST_SCORES;
    rlhf__episode_metrics(&x->rows, plays ? c : NULL, rlhf__metrics_put, p->report->metrics);
    if (!plays) return;
    if (x->rows.turn && p->report->times.rollout > 0)
        rlhf__metrics_set(p->report->metrics, "episodes/waiting",
                          c->seconds / p->report->times.rollout);
}

// ---- the rewards ----

rlhf_status rlhf__phase_score(const struct rlhf__phase *p, struct rlhf__experience *x, int more,
                              struct rlhf__error *err) {
    struct rlhf__scorer s = {.config = p->config,
                             .rewards = p->cast->rewards,
                             .metric = more ? NULL : rlhf__metrics_put,
                             .reported = more ? NULL : rlhf__metrics_reported,
                             .metric_ctx = p->report->metrics,
                             .phase = p->count->phase,
                             .may_drop_all = more,
                             .each = (p->cast->plan.flags & RLHF_PLAN_EACH_REWARD) != 0,
                             .watch = rlhf__progress_watch(p->report->progress),
                             .log = p->report->log,
                             .tally = p->report->rewards.phase,
                             .overlap = x->overlap,
                             .team = p->cast->share.team};
    const struct rlhf__scored_by by = {&p->config->response, p->cast->rules, p->feed->prompts};
    if (!rlhf__cast_samples(p->cast)) return RLHF_OK;
    if (!more) report_episodes(p, x);
    if (!rlhf__cast_has_rewards(p->cast) || !rlhf__phase_scores(p)) // only texts: scores are 0
        return rlhf__scored_init(&x->scored, &by, &x->rows, err);
    rlhf__progress_note(p->report->progress, "reward");
    const uint32_t n_reward = (uint32_t)p->config->n_reward;
    uint8_t *keep = calloc(x->rows.n ? x->rows.n : 1, 1);
    float *raw = calloc((size_t)x->rows.n * n_reward + 1, sizeof *raw);
    if (!keep || !raw) {
        free(keep);
        free(raw);
        return RLHF__NOMEM(err, "out of memory scoring");
    }
    rlhf_status st = rlhf__scored_init(&x->scored, &by, &x->rows, err);
    if (st == RLHF_OK) st = rlhf__score(&s, &x->scored, &x->rows, keep, raw, err);
    if (st == RLHF_OK) st = rlhf__scored_take_paid(&x->scored, raw, n_reward, err);
    if (st == RLHF_OK) st = rlhf__experience_keep(x, keep, err);
    if (st == RLHF_OK && p->feed->choice)
        rlhf__prompt_choice_scored(p->feed->choice, p->count->phase, &x->rows);
    free(keep);
    free(raw);
    rlhf__overlap_close(x->overlap);
    x->overlap = NULL;
    return st;
}

// ---- groups without spread ----

// The rounds of fresh prompts in a phase.
struct rounds {
    // rounds; prompts sampled in total; groups without spread in total
    int64_t rounds, prompts, flat;
    uint32_t live; // groups with spread in the newest round
};

// Set keep[i] = 1 for the rows of groups with spread. Returns the number of these groups, and sets
// `*groups` to the number of all groups.
static uint32_t mark_live(const struct rlhf__rows *e, uint8_t *keep, uint32_t *groups) {
    uint32_t live = 0;
    *groups = 0;
    for (uint32_t i = 0, end; i < e->n; i = end) {
        end = rlhf__rows_group_end(e, i);
        const int spread = !rlhf__rows_flat(e, i, end);
        live += spread != 0;
        ++*groups;
        for (uint32_t k = i; k < end; k++)
            keep[k] = spread != 0;
    }
    return live;
}

// Also keep the first `room` groups without spread.
static void keep_flat(const struct rlhf__rows *e, uint8_t *keep, uint32_t room) {
    for (uint32_t i = 0, end; i < e->n && room > 0; i = end) {
        end = rlhf__rows_group_end(e, i);
        if (keep[i]) continue;
        for (uint32_t k = i; k < end; k++)
            keep[k] = 1;
        room--;
    }
}

// Replace groups of x that lack spread by groups of y that have spread. Other groups of y are
// dropped.
static rlhf_status take(struct rlhf__experience *x, struct rlhf__experience *y, uint32_t want,
                        struct rounds *b, struct rlhf__error *err) {
    uint32_t groups, more;
    uint8_t *keep = calloc((size_t)x->rows.n + y->rows.n + 1, 1);
    if (!keep) return RLHF__NOMEM(err, "out of memory for %u rows", x->rows.n + y->rows.n);
    more = mark_live(&y->rows, keep, &groups);
    b->live = more;
    rlhf_status st = rlhf__experience_keep(y, keep, err);
    const uint32_t live = mark_live(&x->rows, keep, &groups);
    keep_flat(&x->rows, keep, live + more < want ? want - live - more : 0);
    if (st == RLHF_OK) st = rlhf__experience_keep(x, keep, err);
    if (st == RLHF_OK) st = rlhf__experience_join(x, y, err);
    free(keep);
    return st;
}

static rlhf_status draw_and_score(struct rlhf__phase *p, uint32_t groups,
                                  struct rlhf__experience *y, struct rlhf__error *err) {
    struct rlhf__phase_times *times = &p->report->times;
    const double from = rlhf__seconds();
    rlhf_status st = p->feed->ops->more(p->feed, groups, (uint64_t)p->count->sequences + p->x.drawn,
                                        p->learner->optim->count.step, y, err);
    p->x.drawn += y->drawn;
    times->rollout += rlhf__seconds() - from;
    if (st == RLHF_OK) st = rlhf__phase_refer(p, y, err);
    const double referred = rlhf__seconds();
    if (st == RLHF_OK) st = rlhf__phase_score(p, y, 1, err);
    times->reward += rlhf__seconds() - referred;
    return st;
}

static rlhf_status round_of(struct rlhf__phase *p, uint32_t want, uint32_t missing,
                            struct rounds *b, struct rlhf__error *err) {
    struct rlhf__experience y = {.phase = p->x.phase};
    rlhf_status st = draw_and_score(p, missing, &y, err);
    b->rounds++;
    b->prompts += missing;
    if (st == RLHF_OK) st = take(&p->x, &y, want, b, err);
    rlhf__experience_finish(&y);
    return st;
}

static void report_rounds(const struct rlhf__phase *p, const struct rounds *b, uint32_t left) {
    struct rlhf__metrics *m = p->report->metrics;
    rlhf__metrics_set(m, "sampling/fresh_rounds", (double)b->rounds);
    rlhf__metrics_set(m, "sampling/prompts", (double)b->prompts);
    rlhf__metrics_set(m, "sampling/flat_ratio", (double)b->flat / (double)b->prompts);
    rlhf__metrics_set(m, "sampling/flat_left", (double)left);
    if (left == 0 || p->report->said_left) return;
    p->report->said_left = 1;
    rlhf__logf(p->report->log, RLHF_LOG_WARN,
               "phase %lld: after %lld rounds of fresh prompts, %u groups still have no spread and "
               "stay in the batch; sampling/flat_left counts them",
               (long long)p->count->phase + 1, (long long)b->rounds, left);
}

rlhf_status rlhf__fresh_groups(struct rlhf__phase *p, struct rlhf__error *err) {
    const rlhf_plan *plan = &p->cast->plan;
    if (plan->resample_rounds == 0) return RLHF_OK;
    const uint32_t want = p->x.drawn / (uint32_t)plan->group_size;
    uint32_t groups, live;
    struct rounds b = {.prompts = want};
    uint8_t *keep = calloc((size_t)p->x.rows.n + 1, 1);
    if (!keep) return RLHF__NOMEM(err, "out of memory for %u rows", p->x.rows.n);
    live = mark_live(&p->x.rows, keep, &groups);
    free(keep);
    b.flat = want - live;
    rlhf_status st = RLHF_OK;
    while (st == RLHF_OK && live < want && b.rounds < plan->resample_rounds) {
        const uint32_t missing = want - live;
        st = round_of(p, want, missing, &b, err);
        b.flat += missing - b.live; // a group that was dropped entirely counts as one without
                                    // spread
        live += b.live;
    }
    if (st == RLHF_OK) report_rounds(p, &b, want - live);
    return st;
}

// ---- the judge ----

// On entry, finite[i] is 1 if the judge failed to score row i. nan_policy does not apply to such a
// row. On return, finite[i] is 1 if the judge's score of row i is finite, and 0 otherwise.
static rlhf_status check_judged(const struct rlhf__phase *p, uint8_t *finite,
                                struct rlhf__error *err) {
    const float *judged = p->x.judged;
    for (uint32_t i = 0; i < p->x.rows.n; i++) {
        const int failed = finite[i]; // set by rlhf__score_alone
        finite[i] = isfinite(judged[i]);
        if (!finite[i] && !failed && p->config->mixing.nan_policy == RLHF__NAN_STOP)
            return rlhf__fail(err, RLHF_E_NUMERIC,
                              "the judge %s gave %g for row %u of phase %lld; rewards.nan_policy "
                              "says stop (with zero or drop its opinion is left out)",
                              rlhf__plugin_name(p->cast->judge->plugin),
                              isnan(judged[i]) ? (double)NAN : (double)judged[i], i,
                              (long long)p->count->phase + 1);
    }
    return RLHF_OK;
}

static void report_judged(const struct rlhf__phase *p, const uint8_t *finite) {
    uint32_t n = p->x.rows.n;
    double mean, std;
    if (n == 0 || !memchr(finite, 1, n)) return;
    rlhf__mean_std(p->x.judged, finite, NULL, n, &mean, &std);
    rlhf__metrics_set(p->report->metrics, "judge/mean", mean);
    rlhf__metrics_set(p->report->metrics, "judge/std", std);
}

rlhf_status rlhf__judge(struct rlhf__phase *p, struct rlhf__error *err) {
    struct rlhf__experience *x = &p->x;
    uint32_t n = x->rows.n;
    if (!p->cast->judge) return RLHF_OK;
    const struct rlhf__reward_call q = {.rules = &p->config->mixing,
                                        .plugin = p->cast->judge,
                                        .phase = p->count->phase,
                                        .metric = rlhf__metrics_reported,
                                        .metric_ctx = p->report->metrics,
                                        .log = p->report->log,
                                        .tally = &p->report->rewards.phase[p->cast->n_rewards]};
    x->judged = calloc(n ? n : 1, sizeof *x->judged);
    uint8_t *finite = calloc(n ? n : 1, 1);
    rlhf_status st = RLHF_OK;
    if (!x->judged || !finite) st = RLHF__NOMEM(err, "out of memory judging %u responses", n);
    if (st == RLHF_OK)
        st = rlhf__score_alone(p->cast->share.team, &q, &x->scored, &x->rows, x->judged, finite,
                               err);
    if (st == RLHF_OK) st = check_judged(p, finite, err);
    if (st == RLHF_OK) report_judged(p, finite);
    free(finite);
    return st;
}
