// early_stop.c: see early_stop.h.
#include "run/early_stop.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static rlhf_status watch_init(struct rlhf__watched *w, int64_t window, struct rlhf__error *err) {
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
                                   int rewards, int reference, struct rlhf__error *err) {
    if (!rewards && rlhf__early_stop_looks_at(c, RLHF__EARLY_STOP_REWARD))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "early_stop.reward is %g, but %s trains on rows of a file and has no "
                          "rewards; 0 switches it off",
                          c->reward, algo);
    if (!(rewards && reference) && rlhf__early_stop_looks_at(c, RLHF__EARLY_STOP_KL))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "early_stop.kl is %g, but %s measures no KL from a reference with these "
                          "settings; 0 switches it off",
                          c->kl, algo);
    return RLHF_OK;
}

static rlhf_status check_watched(const struct rlhf__early_stop_config *c,
                                 const struct rlhf__watched *w, const char *name, int64_t left,
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
        RLHF_TRY(check_watched(c, &s->kl, "kl", left, err));
    if (left > 0 && rlhf__early_stop_looks_at(c, RLHF__EARLY_STOP_REWARD))
        RLHF_TRY(check_watched(c, &s->reward, "reward", left, err));
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
    struct rlhf__watched *w = is_kl ? &s->kl : &s->reward;
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

// ---- state ----

// JSON knows no infinity: it is null.
static json_t *watch_save(const struct rlhf__watched *w, int64_t window) {
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

static rlhf_status watch_load(struct rlhf__watched *w, int64_t window, const json_t *v,
                              const char *name, struct rlhf__error *err) {
    const json_t *ring = json_object_get(v, "window"), *seen = json_object_get(v, "seen");
    const json_t *beyond = json_object_get(v, "beyond");
    if (!json_is_array(ring) || !json_is_integer(seen) || !json_is_integer(beyond) ||
        json_integer_value(seen) < 0 || json_integer_value(beyond) < 0)
        return rlhf__fail(err, RLHF_E_INVALID, "run.json: early_stop.%s is damaged", name);
    // Another window was configured since: start it anew, it is no part of the model's state.
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
    rlhf_status st = watch_load(&s->kl, window, json_object_get(v, "kl"), "kl", err);
    if (st != RLHF_OK) return st;
    return watch_load(&s->reward, window, json_object_get(v, "reward"), "reward", err);
}
