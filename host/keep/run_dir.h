// run_dir.h: a run's output directory: its name, its lock, and the files that are written at the
// start. The directory is held open by descriptor, so later changes of the working directory have
// no effect.
#ifndef RLHF_HOST_KEEP_RUN_DIR_H
#define RLHF_HOST_KEEP_RUN_DIR_H

#include "base/folder.h"
#include "base/log.h"
#include "config/config.h"

struct rlhf__run_dir {
    char name[4096];              // as shown in messages
    char path[4096];              // resumed: absolute
    char checkpoint[4096];        // resumed: absolute path of the checkpoint
    char shipped[RLHF__PATH_CAP]; // resumed: directory with what rank 0 sent; "" = none
    struct rlhf__folder *start;   // the working directory at the start; NULL if it cannot be read
    struct rlhf__folder *root;    // NULL until the directory has been created
    int lock;                     // descriptor, -1 = none
    int32_t numbered;             // 1: named runs/<algo>-<date>-<n>, where n may still increase
    int32_t found;                // 1: it exists, with nothing worth keeping
};

// Call this first, before any plugin is opened. It remembers the working directory and opens the
// directory to resume (NULL = a new run). Errors are reported later. Release with
// rlhf__run_dir_finish, even after a failure. [main]
void rlhf__run_dir_begin(struct rlhf__run_dir *d, const char *resume);
void rlhf__run_dir_finish(struct rlhf__run_dir *d);

// Choose the name of a new run: run.dir, or runs/<algo>-<date>-<n>. If run.dir exists, it must be
// empty or have only the files of a run that ended before its first checkpoint (leftover.h). If
// that run completed a phase, its settings must be those of `config`. If one of these conditions is
// not met, returns RLHF_E_INVALID with a message that says what the directory contains. Creates
// nothing. [main]
rlhf_status rlhf__run_dir_choose(struct rlhf__run_dir *d, const struct rlhf__config *config,
                                 const char *algo, struct rlhf__error *err);

// Returns RLHF_E_INVALID if rlhf__run_dir_attach would fail because the run is alive or has no
// checkpoint. Changes nothing. [main]
rlhf_status rlhf__run_dir_can_go_on(const struct rlhf__run_dir *d, struct rlhf__error *err);

// Attach to a run that is to be resumed: take its lock, complete or remove what a crash left
// incomplete, and find its newest checkpoint. A dry run changes nothing. Errors: RLHF_E_INVALID if
// the run is alive, has no checkpoint, or is reached through links. [main]
rlhf_status rlhf__run_dir_attach(struct rlhf__run_dir *d, const char *resume, int dry,
                                 struct rlhf__log *log, struct rlhf__error *err);

// Call this in a process that only reads a run. Uses the checkpoint chosen by the process that is
// attached to the run. Errors: RLHF_E_INVALID if this checkpoint does not exist. [main]
rlhf_status rlhf__run_dir_follow(struct rlhf__run_dir *d, const char *checkpoint,
                                 struct rlhf__error *err);

// Create the directory of a new run, take its lock and write config.json (the resolved config). If
// rlhf__run_dir_choose found an existing directory, clears that directory instead. Errors:
// RLHF_E_INVALID if another process has taken the directory in the meantime. [main]
rlhf_status rlhf__run_dir_make(struct rlhf__run_dir *d, const struct rlhf__config *config,
                               struct rlhf__log *log, struct rlhf__error *err);

// Store the changed settings of a resumed run in config.json, except run.dir and run.stop_after.
// [main]
rlhf_status rlhf__run_dir_store(const struct rlhf__run_dir *d, const struct rlhf__config *config,
                                struct rlhf__error *err);

#endif
