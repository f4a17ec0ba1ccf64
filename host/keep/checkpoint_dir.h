// checkpoint_dir.h: manages the directory RUN/checkpoints. It gives a finished checkpoint its name
// and its links, repairs the directory after a crash, and removes checkpoints or sets them aside.
//
// A checkpoint of this run is a directory NNNNNN whose state/run.json has the phase NNNNNN. All
// other files and directories here belong to the user. They are not touched, with one exception: a
// directory that has a name which the run needs is moved to aside-<n>/. Checkpoints of later phases
// are also moved there after a roll-back.
#ifndef RLHF_HOST_KEEP_CHECKPOINT_DIR_H
#define RLHF_HOST_KEEP_CHECKPOINT_DIR_H

#include "base/folder.h"
#include "base/log.h"

// prefix of the name of a checkpoint that is being written
#define RLHF__CHECKPOINT_WRITING ".writing-"

// Repair the directory after a crash. If a checkpoint already has its name but `latest` was not yet
// pointed at it, set the link. Remove directories whose writing or removal was not finished. Does
// nothing if checkpoints/ does not exist. [main]
rlhf_status rlhf__checkpoint_dir_recover(const struct rlhf__folder *run, struct rlhf__error *err);

// Returns the number of the run's checkpoints, and sets `*newest` to the phase of the last one.
// [main]
size_t rlhf__checkpoint_dir_newest(const struct rlhf__folder *all, int64_t *newest);

// Move the checkpoints of phases after `phase` to aside-<n>/, and log that they were moved. If the
// link `best` points at one of these checkpoints, it is changed to point at the new place. [main]
rlhf_status rlhf__checkpoint_dir_set_aside(const struct rlhf__folder *all, int64_t phase,
                                           struct rlhf__log *log, struct rlhf__error *err);

// Rename the directory `fresh` to NNNNNN, the number of its phase, and point `latest` at it. After
// a crash at any time, `latest` is either the old link or the new one. A failure leaves the old
// state. [main]
rlhf_status rlhf__checkpoint_dir_commit(const struct rlhf__folder *all, const char *fresh,
                                        int64_t phase, struct rlhf__log *log,
                                        struct rlhf__error *err);

// Point `best` at the checkpoint of a phase, if the checkpoint exists and the link differs. [main]
rlhf_status rlhf__checkpoint_dir_best(const struct rlhf__folder *all, int64_t phase,
                                      struct rlhf__error *err);

// Call `visit` with the name of each checkpoint that rlhf__checkpoint_dir_prune may remove, the
// oldest first. `visit` may remove the checkpoint. The first failure of `visit` ends the calls and
// is returned. Other errors: RLHF_E_IO, RLHF_E_NOMEM. [main]
rlhf_status rlhf__checkpoint_dir_each_old(const struct rlhf__folder *all, int64_t phase,
                                          int64_t keep,
                                          rlhf_status (*visit)(void *arg, const char *name,
                                                               struct rlhf__error *err),
                                          void *arg, struct rlhf__error *err);

// Remove the checkpoint of that name, unless a process holds it. [main]
rlhf_status rlhf__checkpoint_dir_remove(const struct rlhf__folder *all, const char *name,
                                        struct rlhf__error *err);

// Remove the run's checkpoints up to `phase`. Keeps the newest `keep` checkpoints (0 = all), the
// checkpoints that `latest` and `best` point at, and the checkpoints that a process holds
// (rlhf__folder_hold). Logs a warning if a checkpoint cannot be removed. [main]
void rlhf__checkpoint_dir_prune(const struct rlhf__folder *all, int64_t phase, int64_t keep,
                                struct rlhf__log *log);

// Returns 1 if the checkpoint of that phase exists and `latest` points at it. [main]
int rlhf__checkpoint_dir_is_latest(const struct rlhf__folder *all, int64_t phase);

#endif
