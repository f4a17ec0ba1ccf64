// checkpoint_dir.h: RUN/checkpoints: how a finished checkpoint gets its name and its links, what a
// crash may leave of that, and which checkpoints are removed or set aside.
//
// A checkpoint of the run's own line is a directory NNNNNN whose state/run.json says that phase.
// Everything else in here is somebody's and is left alone; what would be in the way, and the
// checkpoints of a future that a roll-back leaves, go to aside-<n>/.
#ifndef RLHF_HOST_CHECKPOINT_DIR_H
#define RLHF_HOST_CHECKPOINT_DIR_H

#include "base/folder.h"
#include "base/log.h"

#define RLHF__CHECKPOINT_WRITING ".writing-" // how the name of one begins that is being written

// Nothing is done for a run without checkpoints/. A checkpoint that had its name when the process
// died gets its link, and what was being written or removed goes. [main]
rlhf_status rlhf__checkpoint_dir_recover(const struct rlhf__folder *run, struct rlhf__error *err);

// How many checkpoints of the run there are; *newest = the last one's phase. [main]
size_t rlhf__checkpoint_dir_newest(const struct rlhf__folder *all, int64_t *newest);

// Move the checkpoints after `phase` to aside-<n>/ and say so; `best` follows its own. [main]
rlhf_status rlhf__checkpoint_dir_roll_back(const struct rlhf__folder *all, int64_t phase,
                                           struct rlhf__log *log, struct rlhf__error *err);

// Give the directory `fresh` the name NNNNNN of its phase and point `latest` at it, so that a crash
// at any instant leaves the old link or the new one. On failure the old state stays. [main]
rlhf_status rlhf__checkpoint_dir_commit(const struct rlhf__folder *all, const char *fresh,
                                        int64_t phase, struct rlhf__log *log,
                                        struct rlhf__error *err);

// Point `best` at the checkpoint of a phase, where it does not and there is one. [main]
rlhf_status rlhf__checkpoint_dir_best(const struct rlhf__folder *all, int64_t phase,
                                      struct rlhf__error *err);

// Remove the run's checkpoints up to `phase` except the newest `keep` (0 = all), those that
// `latest` and `best` point at, and those that a process holds (rlhf__folder_hold). What cannot be
// removed is a warning. [main]
void rlhf__checkpoint_dir_prune(const struct rlhf__folder *all, int64_t phase, int64_t keep,
                                struct rlhf__log *log);

// 1 when the checkpoint of that phase is there and `latest` points at it. [main]
int rlhf__checkpoint_dir_is_latest(const struct rlhf__folder *all, int64_t phase);

#endif
