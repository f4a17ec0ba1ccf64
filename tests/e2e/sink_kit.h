// sink_kit.h: runs with sinks, and what a sink was told compared with the run's files.
#ifndef E2E_SINK_KIT_H
#define E2E_SINK_KIT_H

#include "e2e.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PPO                                                                                        \
    "--algo ppo.so --policy model --set policy.init=random --prompts prompts.txt --set "           \
    "batch.size=4 --set sampling.max_new_tokens=4 --set algo.minibatches=1 --reward "              \
    "period_count.so --set log.samples_every=2 --set log.samples=2 --set checkpoint.every_s=0 "
// A sink in the host's process, which may write everywhere, with and without further options.
#define SINK "--sink \"$RLHF_TEST_PLUGINS/recording_sink.so:isolate=false\""
#define SINK_WITH(options)                                                                         \
    "--sink \"$RLHF_TEST_PLUGINS/recording_sink.so:isolate=false," options "\" "
// Returns the rows of a file of JSON lines as a new reference.
static inline json_t *rows_of(const struct e2e *t, const char *name) {
    char path[512], *line = NULL;
    size_t cap = 0;
    json_t *rows = json_array();
    snprintf(path, sizeof path, "%s/%s", t->dir, name);
    FILE *f = fopen(path, "re");
    if (!f) fail_msg("%s is missing", path);
    while (getline(&line, &cap, f) > 0) {
        json_error_t why;
        json_t *row = json_loads(line, JSON_ALLOW_NUL, &why);
        if (!row) fail_msg("%s: %s: %s", name, why.text, line);
        json_array_append_new(rows, row);
    }
    free(line);
    fclose(f);
    return rows;
}

static inline const char *text_of(const json_t *row, const char *key) {
    const char *text = json_string_value(json_object_get(row, key));
    return text ? text : "(none)";
}

static inline double number_of(const json_t *row, const char *key) {
    return json_number_value(json_object_get(row, key));
}

static inline int is_time(const char *name) {
    return strncmp(name, "time/", 5) == 0 || strncmp(name, "perf/", 5) == 0 ||
           strstr(name, "/time") != NULL;
}

// Asserts that `told` and `row` have the same names in the same order, with the same values. If
// `times` is 0, values of times may differ.
static inline void assert_metrics(json_t *told, json_t *row, int times) {
    void *a = json_object_iter(told), *b = json_object_iter(row);
    for (; b; b = json_object_iter_next(row, b)) {
        const char *name = json_object_iter_key(b);
        const json_t *value = json_object_iter_value(b);
        if (strcmp(name, "phase") == 0) continue;
        assert_non_null(a);
        assert_string_equal(json_object_iter_key(a), name);
        const json_t *got = json_object_iter_value(a);
        assert_int_equal(json_is_null(got), json_is_null(value));
        if (times || !is_time(name))
            if (json_number_value(got) != json_number_value(value))
                fail_msg("%s is %.17g and %.17g", name, json_number_value(got),
                         json_number_value(value));
        a = json_object_iter_next(told, a);
    }
    assert_null(a);
}

static inline size_t count(const char *text, const char *what) {
    size_t n = 0;
    for (; (text = strstr(text, what)); text++)
        n++;
    return n;
}

#endif
