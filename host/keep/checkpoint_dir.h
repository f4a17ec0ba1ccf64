// checkpoint_dir.h: manages the directory RUN/checkpoints. It gives a finished checkpoint its name
// and its links, repairs the directory after a crash, and removes checkpoints or sets them aside.
//
// A checkpoint of this run is a directory NNNNNN whose state/run.json has the phase NNNNNN. All
// other entries here belong to the user. If the run needs the name of such an entry, it moves the
// entry to a new directory aside-<n>/. It leaves all other entries alone. After a roll-back, the
// run also moves checkpoints of later phases to a new directory aside-<n>/.
#ifndef RLHF_HOST_KEEP_CHECKPOINT_DIR_H
#define RLHF_HOST_KEEP_CHECKPOINT_DIR_H

#include "base/folder.h"
#include "base/log.h"

// prefix of the name of a checkpoint that is being written
#define RLHF__CHECKPOINT_WRITING ".writing-"

// Repair the directory after a crash. If a checkpoint has its name but `latest` does not point at
// it yet, sets the link. Removes directories whose writing or removal was not finished. Does
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
// a crash at any time, `latest` is either the old link or the new one. After a failure, `fresh` and
// `latest` are as before. [main]
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

// Remove old checkpoints of the run. Of the checkpoints of phases up to `phase`, keeps the newest;
// `keep` is their number (0 = all). Keeps all checkpoints of later phases. Also keeps the
// checkpoints that `latest` and `best` point at, and those that a process holds
// (rlhf__folder_hold). Logs a warning if a checkpoint cannot be removed. [main]
void rlhf__checkpoint_dir_prune(const struct rlhf__folder *all, int64_t phase, int64_t keep,
                                struct rlhf__log *log);

// Returns 1 if the checkpoint of that phase exists and `latest` points at it. [main]
int rlhf__checkpoint_dir_is_latest(const struct rlhf__folder *all, int64_t phase);

#endif
