// leftover.h: examines what an earlier run left in a directory. These functions recognize the files
// of a run that ended before its first checkpoint and therefore cannot be resumed. They also
// compare a run's current settings with those that the run began with.
#ifndef RLHF_HOST_KEEP_LEFTOVER_H
#define RLHF_HOST_KEEP_LEFTOVER_H

#include "base/buf.h"
#include "base/folder.h"
#include "config/config.h"

// Returns 1 if a run directory contains only files that a run writes before its first checkpoint,
// including unfinished checkpoints. If `rows` is 0, files that already have rows of metrics,
// samples or rollouts count as other files, because they are worth keeping. The function does not
// check whether the run is still alive. [main]
int rlhf__leftover_is_all(const struct rlhf__folder *run, int rows);

// Returns the number of files in the run directory that make rlhf__leftover_is_all return 0. If
// `first` is not NULL, sets it to the name of the alphabetically first of these files, or to "" if
// none exists. Returns 1 if the directory cannot be read. [main]
enum { RLHF__LEFTOVER_NAME = 256 };
size_t rlhf__leftover_others(const struct rlhf__folder *run, int rows,
                             char first[RLHF__LEFTOVER_NAME]);

// Returns 1 if the directory contains only what a run writes before it has its config.json: the
// lock and temporary files. [main]
int rlhf__leftover_is_start(const struct rlhf__folder *run);

// Remove the files of the run, except the lock, which the caller must hold. If `all` is 0, remove
// only temporary files. [main]
rlhf_status rlhf__leftover_remove(const struct rlhf__folder *run, int all, struct rlhf__error *err);

// ---- the settings that a run began with ----

// Returns the directory's config.json, which the caller releases, or NULL if it cannot be read.
// [main]
json_t *rlhf__stored_settings(const struct rlhf__folder *run);

// Returns the number of settings in `config` that differ from the stored ones. Ignores run.dir,
// because a directory can have several names. Returns 1 if out of memory. If `first` is not NULL,
// appends the first difference to it, for example "run.seed was 1 and is now 2". [main]
size_t rlhf__settings_differ(const json_t *stored, const struct rlhf__config *config,
                             struct rlhf__buf *first);

#endif
