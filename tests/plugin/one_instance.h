// one_instance.h: an instance of sample.so, a reward, with the metrics that it reports.
#ifndef RLHF_TESTS_PLUGIN_ONE_INSTANCE_H
#define RLHF_TESTS_PLUGIN_ONE_INSTANCE_H

#include "plugin/modules.h"

#include "plugin/services.h"

struct fixture {
    struct rlhf__dirs dirs;
    struct rlhf__plugins *plugins;
    const struct rlhf__plugin *sample;
    struct rlhf__services services;
    struct rlhf__instance *instance;
    const char *owner;
    char metric[512];
    double value, weight;
    int64_t combine;
};

static const struct rlhf__origin from = {"test", "reward.0", NULL, 0, 0};

static inline void take_metric(void *ctx, const char *name, double value, double weight,
                               int32_t combine) {
    struct fixture *f = ctx;
    f->weight = weight;
    f->combine = combine;
    snprintf(f->metric, sizeof f->metric, "%s", name);
    f->value = value;
}

static inline int setup(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    struct rlhf__error err = {0};
    char path[1024];
    if (!f) return -1;
    f->plugins = loader(&f->dirs, "/nowhere");
    f->services.metric = take_metric;
    f->services.metric_ctx = f;
    f->services.seed = 7;
    f->services.phase = -1;
    f->owner = "rewards/one";
    *state = f;
    return rlhf__plugin_open(f->plugins, module_path("sample.so", path), RLHF_KIND_REWARD,
                             RLHF__NAME_TYPED, "test", &f->sample, &err);
}

static inline int teardown(void **state) {
    struct fixture *f = *state;
    rlhf__instance_close(f->instance);
    rlhf__plugins_close(f->plugins);
    free(f);
    return 0;
}

static inline rlhf_status make(struct fixture *f, const char *options, struct rlhf__error *err) {
    json_t *o = options ? json_loads(options, 0, NULL) : NULL;
    rlhf__instance_close(f->instance);
    rlhf_status st =
        rlhf__instance_open(f->sample, &f->services, f->owner, o, &from, &f->instance, err);
    json_decref(o);
    return st;
}

// Scores one response. Returns the status, and sets *out to the score.
static inline rlhf_status score(struct fixture *f, const char *response, float *out) {
    rlhf_str text = {response, strlen(response)};
    rlhf_reward_in in = {.size = sizeof in, .n = 1, .prompt = &text, .response = &text};
    rlhf_reward_out result = {.size = sizeof result, .seq = out};
    const struct rlhf__call call = rlhf__call_begin(f->instance, "score()");
    const rlhf_status st = f->sample->ops.reward.score(f->instance->self, &in, &result);
    rlhf__call_end(&call, RLHF_OK, NULL);
    return st;
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
