// run_checkpoint.h: chooses the checkpoint that represents a run directory as a model.
//
// A run directory is data that may come from others. Its config.json identifies it as a run;
// nothing else of it is read here.
#ifndef RLHF_HOST_WEIGHTS_RUN_CHECKPOINT_H
#define RLHF_HOST_WEIGHTS_RUN_CHECKPOINT_H

#include "base/file.h"
#include "base/log.h"

// *run = 1 if dir's config.json is that of a run. Errors: RLHF_E_INVALID (not a JSON object),
// RLHF_E_IO. [main]
rlhf_status rlhf__run_is(const char *dir, int *run, struct rlhf__error *err);

// If `dir` is a checkpoint of a run (RUN/checkpoints/NAME), put the run's absolute path without
// links into run, else "". Errors: those of rlhf__run_is. [main]
rlhf_status rlhf__run_above(const char *dir, char run[RLHF__PATH_CAP], struct rlhf__error *err);

// The result of rlhf__run_checkpoint_find.
struct rlhf__run_checkpoint {
    char dir[RLHF__PATH_CAP]; // absolute, without links
    int32_t is_best, reserved;
};

// Find a checkpoint of the run `run`, which the user gave as `given`. choice is "best", "last" or a
// name. NULL means the best if the run keeps one, otherwise the last. `newest` is a text that tells
// the user how to get the newest checkpoint; it is logged if the best was chosen by default. Logs
// the choice. Errors: RLHF_E_INVALID; the message begins with `command`. [main]
rlhf_status rlhf__run_checkpoint_find(const char *command, const char *given, const char *run,
                                      const char *choice, const char *newest, struct rlhf__log *log,
                                      struct rlhf__run_checkpoint *out, struct rlhf__error *err);

// Replace *path, a directory that the user gave, by the directory of its model. If it is a run
// directory, this is the best checkpoint or, if the run does not keep one, the newest; its path is
// stored in room. Other paths stay unchanged, even if they do not exist. what is the setting or
// flag that gave the path; messages begin with it. The log (NULL allowed) names the checkpoint.
// Errors: RLHF_E_INVALID (a run without a checkpoint). [main]
rlhf_status rlhf__run_model(const char *what, const char **path, char room[RLHF__PATH_CAP],
                            struct rlhf__log *log, struct rlhf__error *err);

#endif
