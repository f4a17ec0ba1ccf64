// tracker.h: a sink that sends the run's numbers to an experiment tracker. It runs a program
// (driver.py) that calls the tracker's Python package. The plugins of the different trackers differ
// only in the package and its options.
#ifndef RLHF_PLUGINS_SINKS_TRACKER_H
#define RLHF_PLUGINS_SINKS_TRACKER_H

#include "process/program.h"

#include <rlhf/sink.h>

// This struct must be the first member of the plugin's config.
struct rlhf__tracker_config {
    const char *project, *name, *python;
    double timeout_s;
};

// A named argument of the package's init(). If the value is NULL, the argument is omitted.
struct rlhf__tracker_word {
    const char *key, *value;
};

enum { RLHF__TRACKER_WORDS = 2 };

struct rlhf__tracker_spec {
    const char *package; // "wandb"
    const struct rlhf__tracker_config *config;
    struct rlhf__tracker_word more[RLHF__TRACKER_WORDS];
};

// Implements create() of a tracker's plugin. *self is passed to the functions below. Finds the
// Python interpreter but does not start it. [main]
rlhf_status rlhf__tracker_open(const rlhf_host *, const struct rlhf__tracker_spec *, void **self);
void rlhf__tracker_close(void *self);

extern const rlhf_sink_ops rlhf__tracker_ops;

// The rows of an option table for struct rlhf__tracker_config. T is the plugin's config, whose
// first member is `common`.
#define RLHF__TRACKER_OPTIONS(T, tracker)                                                          \
    {.key = "project",                                                                             \
     .help = "the project that the run belongs to in " tracker,                                    \
     .type = RLHF_T_STR,                                                                           \
     .offset = offsetof(T, common.project),                                                        \
     .s_def = "rlhf-host"},                                                                        \
        {.key = "name",                                                                            \
         .help = "the run's name there; empty: that of its directory",                             \
         .type = RLHF_T_STR,                                                                       \
         .offset = offsetof(T, common.name),                                                       \
         .s_def = ""},                                                                             \
        {.key = "python",                                                                          \
         .help = "the interpreter that has the package, found on PATH or given by path, as one "   \
                 "of a venv is",                                                                   \
         .type = RLHF_T_STR,                                                                       \
         .flags = RLHF_OPT_TRUSTED,                                                                \
         .offset = offsetof(T, common.python),                                                     \
         .s_def = "python3"},                                                                      \
    {                                                                                              \
        .key = "timeout_s",                                                                        \
        .help = "seconds that a phase may wait for it; then the run goes on without this sink",    \
        .type = RLHF_T_F64, .offset = offsetof(T, common.timeout_s), .f_def = 10, .f_min = 0.1,    \
        .f_max = 3600                                                                              \
    }

#endif
