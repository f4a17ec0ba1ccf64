// run_checkpoint.h: chooses a checkpoint of a run, for use where a model directory is expected.
//
// A run directory may come from a stranger, so its links are checked before a file is read. After
// that only config.json is read here, to find out whether the directory is a run.
#ifndef RLHF_FORMATS_WEIGHTS_RUN_CHECKPOINT_H
#define RLHF_FORMATS_WEIGHTS_RUN_CHECKPOINT_H

#include "base/file.h"
#include "base/log.h"

// If `dir` is a run or a checkpoint of a run, checks that no link leads out of it, and that it has
// no pipes and devices (weights/links.h). Other directories are not checked: the files of a
// downloaded model are often links. Errors: RLHF_E_INVALID, RLHF_E_IO. [main]
rlhf_status rlhf__checkpoint_links(const char *dir, struct rlhf__error *err);

// Set *run to 1 if dir's config.json is that of a run. Errors: RLHF_E_INVALID (not a JSON object),
// RLHF_E_IO, and those of rlhf__checkpoint_links. [main]
rlhf_status rlhf__run_is(const char *dir, int *run, struct rlhf__error *err);

// If `dir` is a checkpoint of a run (RUN/checkpoints/NAME), set `run` to the run's absolute path
// without links, otherwise to "". Errors: those of rlhf__run_is. [main]
rlhf_status rlhf__run_above(const char *dir, char run[RLHF__PATH_CAP], struct rlhf__error *err);

// The result of rlhf__run_checkpoint_find.
struct rlhf__run_checkpoint {
    char dir[RLHF__PATH_CAP]; // absolute, without links
    int32_t is_best;
};

// Find a checkpoint of the run in the directory `run`, for which the user typed the path `given`.
// `choice` is "best", "last" or the name of a checkpoint. NULL means the best checkpoint if the run
// keeps one, otherwise the last. Logs which checkpoint was found. If `choice` is NULL and the best
// checkpoint was found, the line also has `newest`, a text that says how to get the newest one.
// Errors: RLHF_E_INVALID; the message begins with `command`. [main]
rlhf_status rlhf__run_checkpoint_find(const char *command, const char *given, const char *run,
                                      const char *choice, const char *newest, struct rlhf__log *log,
                                      struct rlhf__run_checkpoint *out, struct rlhf__error *err);

// If *path is a run directory, set *path to the best checkpoint if the run keeps one, otherwise to
// the newest checkpoint. The new path is stored in `room`, and the checkpoint's name is logged;
// `log` may be NULL. Other paths stay unchanged, even if they do not exist. `what` is the setting
// or flag that gave the path; messages begin with it. Errors: RLHF_E_INVALID (a run without a
// checkpoint). [main]
rlhf_status rlhf__run_model(const char *what, const char **path, char room[RLHF__PATH_CAP],
                            struct rlhf__log *log, struct rlhf__error *err);

#endif
