// early_stop.c: see early_stop.h.
#include "train/early_stop.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

rlhf_status rlhf__early_stop_init(struct rlhf__early_stop *s,
                                  const struct rlhf__early_stop_config *config,
                                  struct rlhf__error *err) {
    *s = (struct rlhf__early_stop){.config = config};
    s->kl = calloc((size_t)config->window, sizeof *s->kl);
    s->reward = calloc((size_t)config->window, sizeof *s->reward);
    if (s->kl && s->reward) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for a window of %lld phases",
                      (long long)config->window);
}

void rlhf__early_stop_finish(struct rlhf__early_stop *s) {
    free(s->kl);
    free(s->reward);
    *s = (struct rlhf__early_stop){0};
}

static double mean(const double *x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum / (double)n;
}

int rlhf__early_stop_offer(struct rlhf__early_stop *s, double kl, double reward, char why[160]) {
    const struct rlhf__early_stop_config *c = s->config;
    s->kl[s->seen % c->window] = isfinite(kl) ? kl : 0;
    s->reward[s->seen % c->window] = reward;
    s->seen++;
    if (s->seen < c->window) return 0;
    double mean_kl = mean(s->kl, c->window), mean_reward = mean(s->reward, c->window);
    s->beyond_kl = c->kl > 0 && mean_kl > c->kl ? s->beyond_kl + 1 : 0;
    s->beyond_reward = c->reward != 0 && mean_reward > c->reward ? s->beyond_reward + 1 : 0;
    if (s->beyond_kl >= c->patience) {
        snprintf(why, 160, "the mean sequence KL %.4g is above early_stop.kl %.4g", mean_kl, c->kl);
        return 1;
    }
    if (s->beyond_reward >= c->patience) {
        snprintf(why, 160, "the mean reward %.4g is above early_stop.reward %.4g", mean_reward,
                 c->reward);
        return 1;
    }
    return 0;
}

json_t *rlhf__early_stop_save(const struct rlhf__early_stop *s) {
    json_t *kl = json_array(), *reward = json_array();
    for (int64_t i = 0; i < s->config->window; i++) {
        json_array_append_new(kl, json_real(s->kl[i]));
        json_array_append_new(reward, json_real(s->reward[i]));
    }
    return json_pack("{s:I, s:I, s:I, s:o, s:o}", "seen", (json_int_t)s->seen, "beyond_kl",
                     (json_int_t)s->beyond_kl, "beyond_reward", (json_int_t)s->beyond_reward, "kl",
                     kl, "reward", reward);
}

rlhf_status rlhf__early_stop_load(struct rlhf__early_stop *s, const json_t *v,
                                  struct rlhf__error *err) {
    const json_t *kl = json_object_get(v, "kl"), *reward = json_object_get(v, "reward");
    // Another window was configured since: start it anew, it is no part of the model's state.
    if (json_array_size(kl) != (size_t)s->config->window) return RLHF_OK;
    if (json_array_size(reward) != (size_t)s->config->window)
        return rlhf__fail(err, RLHF_E_INVALID, "run.json: early_stop is damaged");
    s->seen = json_integer_value(json_object_get(v, "seen"));
    s->beyond_kl = json_integer_value(json_object_get(v, "beyond_kl"));
    s->beyond_reward = json_integer_value(json_object_get(v, "beyond_reward"));
    for (size_t i = 0; i < (size_t)s->config->window; i++) {
        s->kl[i] = json_number_value(json_array_get(kl, i));
        s->reward[i] = json_number_value(json_array_get(reward, i));
    }
    if (s->seen >= 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID, "run.json: early_stop.seen is negative");
}
