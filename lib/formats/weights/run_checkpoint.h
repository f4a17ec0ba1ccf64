// run_checkpoint.h: which checkpoint of a run directory represents it as a model.
//
// A run directory is data that may come from others: its config.json identifies it as a run, and
// nothing else is read here.
#ifndef RLHF_HOST_WEIGHTS_RUN_CHECKPOINT_H
#define RLHF_HOST_WEIGHTS_RUN_CHECKPOINT_H

#include "base/file.h"
#include "base/log.h"

// *run = 1 when dir's config.json is that of a run. Errors: RLHF_E_INVALID (not a JSON object),
// RLHF_E_IO. [main]
rlhf_status rlhf__run_is(const char *dir, int *run, struct rlhf__error *err);

// The run that the directory `dir` is a checkpoint of (RUN/checkpoints/NAME), absolute and without
// links, in run; "" = of none. Errors: those of rlhf__run_is. [main]
rlhf_status rlhf__run_above(const char *dir, char run[RLHF__PATH_CAP], struct rlhf__error *err);

// A checkpoint that was found.
struct rlhf__run_checkpoint {
    char dir[RLHF__PATH_CAP]; // absolute, without links
    int32_t is_best, reserved;
};

// Find a checkpoint of the run `run`, which was given as `given`: choice is "best", "last" or a
// name; NULL = the best if the run keeps one, else the last. newest: for the log, how to ask for
// the newest when the best is taken by default. Logs which one it is. Errors: RLHF_E_INVALID with
// `command` in front. [main]
rlhf_status rlhf__run_checkpoint_find(const char *command, const char *given, const char *run,
                                      const char *choice, const char *newest, struct rlhf__log *log,
                                      struct rlhf__run_checkpoint *out, struct rlhf__error *err);

// The model of a directory, given for `what` (a setting or a flag, which messages begin with): of a
// run directory the best checkpoint or, if it keeps none, the newest, stored in room; other paths
// are returned unchanged, missing ones too. The log (NULL allowed) says which checkpoint it is.
// Errors: RLHF_E_INVALID (a run without a checkpoint). [main]
rlhf_status rlhf__run_model(const char *what, const char **path, char room[RLHF__PATH_CAP],
                            struct rlhf__log *log, struct rlhf__error *err);

#endif
