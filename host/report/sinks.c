// sinks.c: see sinks.h.
#include "report/sinks.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sink {
    struct rlhf__instance *instance;
    int32_t begun, failed;
};

struct rlhf__sinks {
    struct sink *sink; // [n]
    size_t n;
    struct rlhf__log *log;
    // the value of rlhf__seconds when rlhf__sinks_begin was called, minus the seconds that the run
    // had taken in earlier processes
    double began;
    // the current phase's metrics that rlhf__sinks_take copied, [n_taken]
    char **name;
    double *value;
    size_t n_taken, cap;
    int32_t full; // 1: a metric was lost, because memory ran out
};

// A sink may only observe the run, so metrics that it reports are dropped.
static void drop_metric(void *ctx, const char *name, double value, double weight, int32_t combine) {
    (void)ctx;
    (void)name;
    (void)value;
    (void)weight;
    (void)combine;
}

static rlhf_status open_one(const struct rlhf__config *c, size_t i,
                            const struct rlhf__plugin *plugin, struct rlhf__services *services,
                            struct sink *out, struct rlhf__error *err) {
    char section[32];
    snprintf(section, sizeof section, "sink.%zu", i);
    const struct rlhf__origin from = {"the config", section, NULL, 0, 0};
    RLHF_TRY(rlhf__instance_create(plugin, services, section, c->sink[i].options, &from,
                                   &out->instance, err));
    rlhf__instance_metrics_to(out->instance, drop_metric, NULL);
    return RLHF_OK;
}

rlhf_status rlhf__sinks_open(const struct rlhf__config *c, const struct rlhf__plugin *const *plugin,
                             struct rlhf__services *services, struct rlhf__log *log,
                             struct rlhf__sinks **out, struct rlhf__error *err) {
    *out = NULL;
    struct rlhf__sinks *s = calloc(1, sizeof *s);
    if (!s) return RLHF__NOMEM(err, "out of memory for sinks");
    s->log = log;
    s->sink = calloc(c->n_sink + 1, sizeof *s->sink);
    rlhf_status st = s->sink ? RLHF_OK : RLHF__NOMEM(err, "out of memory for sinks");
    for (; st == RLHF_OK && s->n < c->n_sink; s->n++)
        st = open_one(c, s->n, plugin[s->n], services, &s->sink[s->n], err);
    if (st == RLHF_OK)
        *out = s;
    else
        rlhf__sinks_close(s);
    return st;
}

static void forget(struct rlhf__sinks *s) {
    for (size_t i = 0; i < s->n_taken; i++)
        free(s->name[i]);
    s->n_taken = 0;
}

void rlhf__sinks_close(struct rlhf__sinks *s) {
    if (!s) return;
    for (size_t i = 0; i < s->n; i++)
        rlhf__instance_destroy(s->sink[i].instance);
    forget(s);
    free(s->name);
    free(s->value);
    free(s->sink);
    free(s);
}

static const rlhf_sink_ops *ops_of(const struct sink *k) { return &k->instance->plugin->ops.sink; }

// Check how a call ended. The first failure of a sink is logged, and the sink is then marked as
// failed.
static void see(struct rlhf__sinks *s, struct sink *k, const struct rlhf__call *call,
                rlhf_status st) {
    struct rlhf__error err;
    if (rlhf__call_end(call, st, &err) == RLHF_OK) return;
    const int at_end = strcmp(call->function, "end()") == 0;
    if (!k->failed)
        rlhf__logf(s->log, RLHF_LOG_WARN, "sink.%zu failed: %s%s", (size_t)(k - s->sink), err.text,
                   at_end ? "" : "; the run goes on without it");
    k->failed = 1;
}

void rlhf__sinks_begin(struct rlhf__sinks *s, const rlhf_sink_run *run, double elapsed) {
    s->began = rlhf__seconds() - elapsed;
    for (size_t i = 0; i < s->n; i++) {
        struct sink *k = &s->sink[i];
        k->begun = 1;
        const struct rlhf__call call = rlhf__call_begin(k->instance, "begin()");
        see(s, k, &call, ops_of(k)->begin(k->instance->self, run));
    }
}

static int make_room(struct rlhf__sinks *s) {
    if (s->n_taken < s->cap) return 1;
    const size_t cap = s->cap ? 2 * s->cap : 64;
    char **name = realloc(s->name, cap * sizeof *name);
    if (name) s->name = name;
    double *value = realloc(s->value, cap * sizeof *value);
    if (value) s->value = value;
    if (!name || !value) return 0;
    s->cap = cap;
    return 1;
}

static void take_name(void *arg, const char *name) {
    struct rlhf__sinks *s = arg;
    char *copy = make_room(s) ? strdup(name) : NULL;
    if (copy)
        s->name[s->n_taken++] = copy;
    else
        s->full = 1;
}

void rlhf__sinks_take(struct rlhf__sinks *s, const struct rlhf__metrics *m) {
    forget(s);
    if (!s->n) return;
    rlhf__metrics_names(m, take_name, s);
    for (size_t i = 0; i < s->n_taken; i++)
        rlhf__metrics_get(m, s->name[i], &s->value[i]);
}

// The texts and scores of samples in the contract's form.
struct texts {
    rlhf_str *prompt, *response;
    float *score;
};

static void free_texts(struct texts *t) {
    free(t->prompt);
    free(t->response);
    free(t->score);
}

static int split(const struct rlhf__sample *samples, size_t n, struct texts *out) {
    *out = (struct texts){calloc(n + 1, sizeof(rlhf_str)), calloc(n + 1, sizeof(rlhf_str)),
                          calloc(n + 1, sizeof(float))};
    if (!out->prompt || !out->response || !out->score) return 0;
    for (size_t i = 0; i < n; i++) {
        out->prompt[i] = samples[i].prompt;
        out->response[i] = samples[i].response;
        out->score[i] = (float)samples[i].reward;
    }
    return 1;
}

void rlhf__sinks_phase(struct rlhf__sinks *s, int64_t phase, int64_t steps,
                       const struct rlhf__sample *samples, size_t n) {
    struct texts texts = {0};
    if (!s->n) return;
    if (!split(samples, n, &texts) || s->full) {
        rlhf__logf(s->log, RLHF_LOG_WARN, "out of memory for the sinks: phase %lld is not reported",
                   (long long)phase);
        s->full = 0;
        free_texts(&texts);
        return;
    }
    const rlhf_sink_phase p = {.size = sizeof p,
                               .n_metrics = (uint32_t)s->n_taken,
                               .n_samples = (uint32_t)n,
                               .phase = phase,
                               .steps = steps,
                               .elapsed = rlhf__seconds() - s->began,
                               .name = (const char *const *)s->name,
                               .value = s->value,
                               .prompt = texts.prompt,
                               .response = texts.response,
                               .score = texts.score};
    for (size_t i = 0; i < s->n; i++) {
        struct sink *k = &s->sink[i];
        if (k->failed) continue;
        const struct rlhf__call call = rlhf__call_begin(k->instance, "phase()");
        see(s, k, &call, ops_of(k)->phase(k->instance->self, &p));
    }
    free_texts(&texts);
}

void rlhf__sinks_end(struct rlhf__sinks *s, enum rlhf_run_end how, const char *why) {
    for (size_t i = 0; i < s->n; i++) {
        struct sink *k = &s->sink[i];
        if (!k->begun || !ops_of(k)->end) continue;
        const struct rlhf__call call = rlhf__call_begin(k->instance, "end()");
        see(s, k, &call, ops_of(k)->end(k->instance->self, (int32_t)how, why));
    }
}
