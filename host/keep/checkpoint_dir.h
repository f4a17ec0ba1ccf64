// checkpoint_dir.h: RUN/checkpoints: gives a finished checkpoint its name and its links, repairs
// the directory after a crash, and removes or sets aside checkpoints.
//
// A checkpoint of this run is a directory NNNNNN whose state/run.json has that phase. Everything
// else here belongs to the user and is left alone. Entries that are in the way, and checkpoints of
// later phases after a roll-back, are moved to aside-<n>/.
#ifndef RLHF_HOST_CHECKPOINT_DIR_H
#define RLHF_HOST_CHECKPOINT_DIR_H

#include "base/folder.h"
#include "base/log.h"

#define RLHF__CHECKPOINT_WRITING ".writing-" // prefix of a checkpoint's name while it is written

// Does nothing for a run without checkpoints/. Sets the link of a checkpoint that already had its
// name when the process died, and removes directories that were being written or removed. [main]
rlhf_status rlhf__checkpoint_dir_recover(const struct rlhf__folder *run, struct rlhf__error *err);

// Number of checkpoints of the run; *newest = the phase of the last one. [main]
size_t rlhf__checkpoint_dir_newest(const struct rlhf__folder *all, int64_t *newest);

// Move the checkpoints after `phase` to aside-<n>/ and log it; `best` still points at its own.
// [main]
rlhf_status rlhf__checkpoint_dir_set_aside(const struct rlhf__folder *all, int64_t phase,
                                           struct rlhf__log *log, struct rlhf__error *err);

// Rename the directory `fresh` to NNNNNN of its phase and point `latest` at it, so that a crash at
// any time leaves either the old link or the new one. A failure leaves the old state. [main]
rlhf_status rlhf__checkpoint_dir_commit(const struct rlhf__folder *all, const char *fresh,
                                        int64_t phase, struct rlhf__log *log,
                                        struct rlhf__error *err);

// Point `best` at the checkpoint of a phase, if there is one and the link differs. [main]
rlhf_status rlhf__checkpoint_dir_best(const struct rlhf__folder *all, int64_t phase,
                                      struct rlhf__error *err);

// Remove the run's checkpoints up to `phase` except the newest `keep` (0 = all), those that
// `latest` and `best` point at, and those that a process holds (rlhf__folder_hold). If one cannot
// be removed, log a warning. [main]
void rlhf__checkpoint_dir_prune(const struct rlhf__folder *all, int64_t phase, int64_t keep,
                                struct rlhf__log *log);

// 1 if the checkpoint of that phase exists and `latest` points at it. [main]
int rlhf__checkpoint_dir_is_latest(const struct rlhf__folder *all, int64_t phase);

#endif
