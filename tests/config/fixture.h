// fixture.h: a share directory that has only the configs of a test, and a function that turns
// arguments into a config.
#ifndef RLHF_TESTS_CONFIG_FIXTURE_H
#define RLHF_TESTS_CONFIG_FIXTURE_H

#include "plugin/modules.h"

#include "config/config.h"

struct fixture {
    struct scratch *scratch;
    struct rlhf__dirs dirs;
    struct rlhf__plugins *plugins;
    struct rlhf__config config;
    struct rlhf__config_request req;
    const char *reward[4], *set[8];
    char sample[1024], algo[1024]; // paths of the modules
};

static inline int fixture_setup(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    struct rlhf__error err = {0};
    void *s;
    if (!f || scratch_setup(&s) != 0) return -1;
    f->scratch = s;
    f->plugins = loader(&f->dirs, f->scratch->dir);
    f->req.dirs = &f->dirs;
    f->req.reward = f->reward;
    f->req.set = f->set;
    module_path("sample.so", f->sample);
    module_path("algo.so", f->algo);
    *state = f;
    return rlhf__make_dirs(scratch_path(f->scratch, "configs/presets"), &err);
}

static inline int fixture_teardown(void **state) {
    struct fixture *f = *state;
    void *s = f->scratch;
    rlhf__config_finish(&f->config);
    rlhf__plugins_close(f->plugins);
    int failed = scratch_teardown(&s);
    free(f);
    return failed;
}

static inline void add_set(struct fixture *f, const char *text) { f->set[f->req.n_set++] = text; }
static inline void add_reward(struct fixture *f, const char *text) {
    f->reward[f->req.n_reward++] = text;
}

static inline rlhf_status load(struct fixture *f, struct rlhf__error *err) {
    rlhf__config_finish(&f->config);
    return rlhf__config_load(&f->req, &f->config, err);
}

// Loads the config, then opens the plugins.
static inline rlhf_status resolve(struct fixture *f, struct rlhf__error *err) {
    const struct rlhf__plugin *algo, **rewards, *judge;
    RLHF_TRY(load(f, err));
    RLHF_TRY(rlhf__config_resolve(&f->config, f->plugins, &algo, &rewards, &judge, err));
    free(rewards);
    return RLHF_OK;
}

// The value of an option in a plugin's entry, as a number.
static inline double option(const struct rlhf__plugin_config *p, const char *key) {
    return json_number_value(json_object_get(p->options, key));
}

#endif
