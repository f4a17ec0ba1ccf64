// fixture.h: one of the program's own sinks, loaded as the host would, for a run in a folder.
#ifndef RLHF_TESTS_SINKS_FIXTURE_H
#define RLHF_TESTS_SINKS_FIXTURE_H

#include "support/scratch.h"

#include <rlhf/sink.h>
#include <rlhf/test.h>

struct sink {
    struct rlhf_test_host host;
    const rlhf_plugin *plugin;
    const rlhf_sink_ops *ops;
    void *self;
    int64_t from; // as begin() answered
};

static inline void sink_load(struct sink *k, const char *file) {
    char path[4096];
    const char *build = getenv("RLHF_BUILD_DIR");
    snprintf(path, sizeof path, "%s/lib/rlhf/1/sinks/%s", build ? build : ".", file);
    k->plugin = rlhf_test_open(path, 0);
    assert_non_null(k->plugin);
    k->ops = k->plugin->ops;
    rlhf_test_init(&k->host, 1);
}

// Begin a run, or resume it after `done` phases, if done >= 0.
static inline rlhf_status sink_begin(struct sink *k, const char *dir, int64_t done) {
    const rlhf_sink_run run = {.size = sizeof run,
                               .resumed = done >= 0,
                               .phases_done = done < 0 ? 0 : done,
                               .phases = 9,
                               .dir = dir,
                               .own_dir = dir,
                               .name = "run",
                               .config = "{}"};
    rlhf_sink_answer answer = {.size = sizeof answer};
    assert_int_equal(k->plugin->create(&k->host.table, NULL, &k->self), RLHF_OK);
    const rlhf_status st = k->ops->begin(k->self, &run, &answer);
    k->from = answer.from_phase;
    return st;
}

static inline void sink_end(struct sink *k) {
    k->plugin->destroy(k->self);
    assert_int_equal(k->host.live, 0);
}

#endif
