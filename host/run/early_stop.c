// early_stop.c: see early_stop.h.
#include "run/early_stop.h"

#include "option/nearest.h"
#include "report/metrics.h"

#include <rlhf/draft/iteration.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static rlhf_status watch_init(struct rlhf__stop_rule *w, int64_t window, struct rlhf__error *err) {
    w->ring = calloc((size_t)window, sizeof *w->ring);
    if (w->ring) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for a window of %lld phases",
                      (long long)window);
}

rlhf_status rlhf__early_stop_init(struct rlhf__early_stop *s,
                                  const struct rlhf__early_stop_config *config,
                                  struct rlhf__error *err) {
    *s = (struct rlhf__early_stop){.config = config};
    rlhf_status st = watch_init(&s->kl, config->window, err);
    if (st == RLHF_OK) st = watch_init(&s->reward, config->window, err);
    if (st != RLHF_OK) rlhf__early_stop_finish(s);
    return st;
}

void rlhf__early_stop_finish(struct rlhf__early_stop *s) {
    free(s->kl.ring);
    free(s->reward.ring);
    *s = (struct rlhf__early_stop){0};
}

int rlhf__early_stop_looks_at(const struct rlhf__early_stop_config *c, int32_t what) {
    return what == RLHF__EARLY_STOP_KL ? c->kl > 0 : c->reward != 0;
}

rlhf_status rlhf__early_stop_check(const struct rlhf__early_stop_config *c, const char *algo,
                                   int samples, int rewards, int reference,
                                   struct rlhf__error *err) {
    if (samples && !rewards && rlhf__early_stop_looks_at(c, RLHF__EARLY_STOP_REWARD))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "early_stop.reward is %g, but the run has no rewards; 0 switches it off",
                          c->reward);
    if (!samples && rlhf__early_stop_looks_at(c, RLHF__EARLY_STOP_REWARD))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "early_stop.reward is %g, but %s trains on rows of a file and has no "
                          "rewards; 0 switches it off",
                          c->reward, algo);
    if (!(samples && reference) && rlhf__early_stop_looks_at(c, RLHF__EARLY_STOP_KL))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "early_stop.kl is %g, but %s measures no KL from a reference with these "
                          "settings; 0 switches it off",
                          c->kl, algo);
    return RLHF_OK;
}

static rlhf_status check_rule(const struct rlhf__early_stop_config *c,
                              const struct rlhf__stop_rule *w, const char *name, int64_t left,
                              struct rlhf__error *err) {
    const int64_t measured = w->seen + left, most = w->beyond + left;
    if (c->patience > most)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "early_stop.%s cannot end this run: early_stop.patience is %lld and %lld "
                          "phase%s left; give a patience of at most %lld, or more phases "
                          "(run.phases)",
                          name, (long long)c->patience, (long long)left,
                          left == 1 ? " is" : "s are", (long long)most);
    if (c->window > measured)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "early_stop.%s averages early_stop.window=%lld phases, and %lld phase%s "
                          "left; give a window of at most %lld, or more phases (run.phases)",
                          name, (long long)c->window, (long long)left, left == 1 ? " is" : "s are",
                          (long long)measured);
    return RLHF_OK;
}

rlhf_status rlhf__early_stop_check_left(const struct rlhf__early_stop *s, int64_t left,
                                        struct rlhf__error *err) {
    const struct rlhf__early_stop_config *c = s->config;
    if (left > 0 && rlhf__early_stop_looks_at(c, RLHF__EARLY_STOP_KL))
        RLHF_TRY(check_rule(c, &s->kl, "kl", left, err));
    if (left > 0 && rlhf__early_stop_looks_at(c, RLHF__EARLY_STOP_REWARD))
        RLHF_TRY(check_rule(c, &s->reward, "reward", left, err));
    return RLHF_OK;
}

static double mean(const double *x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum / (double)n;
}

int rlhf__early_stop_offer(struct rlhf__early_stop *s, int32_t what, double value, char why[160]) {
    const struct rlhf__early_stop_config *c = s->config;
    int is_kl = what == RLHF__EARLY_STOP_KL;
    struct rlhf__stop_rule *w = is_kl ? &s->kl : &s->reward;
    double limit = is_kl ? c->kl : c->reward;
    w->ring[w->seen % c->window] = isfinite(value) ? value : INFINITY;
    w->seen++;
    double average = mean(w->ring, w->seen < c->window ? w->seen : c->window);
    w->beyond = rlhf__early_stop_looks_at(c, what) && average > limit ? w->beyond + 1 : 0;
    if (w->beyond < c->patience) return 0;
    snprintf(why, 160, "the mean %s %.4g is above early_stop.%s %.4g",
             is_kl ? "sequence KL" : "reward", average, is_kl ? "kl" : "reward", limit);
    return 1;
}

// ---- the metrics of a phase ----

// Check one quantity of the phase. Returns 1 if the run must end.
static int stops(const struct rlhf__phase *p, struct rlhf__early_stop *s, int32_t what,
                 const char *metric) {
    char why[160];
    double value;
    if (!rlhf__metrics_get(p->report->metrics, metric, &value) ||
        !rlhf__early_stop_offer(s, what, value, why))
        return 0;
    rlhf__logf(p->report->log, RLHF_LOG_INFO, "early stop: %s", why);
    return 1;
}

int rlhf__early_stop_phase(struct rlhf__early_stop *s, const struct rlhf__phase *p) {
    if (!rlhf__cast_samples(p->cast)) return 0;
    const int kl = stops(p, s, RLHF__EARLY_STOP_KL, RLHF_METRIC_KL);
    const int reward = stops(p, s, RLHF__EARLY_STOP_REWARD, RLHF__REWARD_METRIC);
    return kl || reward;
}

static void offer_name(void *arg, const char *name) { rlhf__nearest_offer(arg, name); }

static rlhf_status no_best(const struct rlhf__phase *p, struct rlhf__error *err) {
    const char *best = p->config->checkpoint.best;
    char hint[300];
    struct rlhf__nearest near = {best, NULL, 0};
    rlhf__metrics_names(p->report->metrics, offer_name, &near);
    return rlhf__fail(err, RLHF_E_INVALID,
                      "checkpoint.best: phase %lld reports no metric \"%.200s\"%s; "
                      "metrics.jsonl has the names",
                      (long long)p->count->phase, best,
                      rlhf__nearest_hint(&near, hint, sizeof hint));
}

// Returns 1 if the metric of checkpoint.best must have had a value by now. After one phase of this
// process every metric has had a value, except metrics that only some phases measure (on held-out
// rows, or for an outer loop).
static int wants_best(const struct rlhf__phase *p, const struct rlhf__best *b) {
    const rlhf_iteration *outer = &p->cast->iteration;
    const char *best = p->config->checkpoint.best;
    return *best && b->phase == 0 && p->count->phase == p->count->first_phase + 1 &&
           !outer->moves_reference && !outer->reward_model && strncmp(best, "eval/", 5) != 0;
}

static rlhf_status no_early_stop(const struct rlhf__phase *p, const char *setting,
                                 const char *metric, struct rlhf__error *err) {
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s: phase %lld reports no metric \"%s\", so it would never end the run; 0 "
                      "switches it off",
                      setting, (long long)p->count->phase, metric);
}

rlhf_status rlhf__early_stop_measured(const struct rlhf__early_stop *s,
                                      const struct rlhf__best *best, const struct rlhf__phase *p,
                                      struct rlhf__error *err) {
    double value;
    if (wants_best(p, best) &&
        !rlhf__metrics_get(p->report->metrics, p->config->checkpoint.best, &value))
        return no_best(p, err);
    if (rlhf__early_stop_looks_at(s->config, RLHF__EARLY_STOP_KL) && s->kl.seen == 0)
        return no_early_stop(p, "early_stop.kl", RLHF_METRIC_KL, err);
    if (rlhf__early_stop_looks_at(s->config, RLHF__EARLY_STOP_REWARD) && s->reward.seen == 0)
        return no_early_stop(p, "early_stop.reward", RLHF__REWARD_METRIC, err);
    return RLHF_OK;
}

// ---- state ----

// JSON cannot hold infinity: it is stored as null.
static json_t *watch_save(const struct rlhf__stop_rule *w, int64_t window) {
    json_t *ring = json_array();
    for (int64_t i = 0; ring && i < window; i++)
        if (json_array_append_new(ring, isfinite(w->ring[i]) ? json_real(w->ring[i])
                                                             : json_null()) != 0) {
            json_decref(ring);
            return NULL;
        }
    return json_pack("{s:I, s:I, s:o}", "seen", (json_int_t)w->seen, "beyond",
                     (json_int_t)w->beyond, "window", ring);
}

json_t *rlhf__early_stop_save(const struct rlhf__early_stop *s) {
    return json_pack("{s:o, s:o}", "kl", watch_save(&s->kl, s->config->window), "reward",
                     watch_save(&s->reward, s->config->window));
}

static rlhf_status watch_load(struct rlhf__stop_rule *w, int64_t window, const json_t *v,
                              const char *name, struct rlhf__error *err) {
    const json_t *ring = json_object_get(v, "window"), *seen = json_object_get(v, "seen");
    const json_t *beyond = json_object_get(v, "beyond");
    if (!json_is_array(ring) || !json_is_integer(seen) || !json_is_integer(beyond) ||
        json_integer_value(seen) < 0 || json_integer_value(beyond) < 0)
        return rlhf__fail(err, RLHF_E_INVALID, "run.json: early_stop.%s is damaged", name);
    // If the setting early_stop.window has changed since the checkpoint, ignore the stored window
    // and start with an empty window. This change is allowed on resume, because the window does not
    // affect the weights.
    if (json_array_size(ring) != (size_t)window) return RLHF_OK;
    w->seen = json_integer_value(seen);
    w->beyond = json_integer_value(beyond);
    for (size_t i = 0; i < (size_t)window; i++) {
        const json_t *x = json_array_get(ring, i);
        w->ring[i] = json_is_null(x) ? INFINITY : json_number_value(x);
    }
    return RLHF_OK;
}

rlhf_status rlhf__early_stop_load(struct rlhf__early_stop *s, const json_t *v,
                                  struct rlhf__error *err) {
    int64_t window = s->config->window;
    RLHF_TRY(watch_load(&s->kl, window, json_object_get(v, "kl"), "kl", err));
    return watch_load(&s->reward, window, json_object_get(v, "reward"), "reward", err);
}
