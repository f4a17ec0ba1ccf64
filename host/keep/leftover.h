// leftover.h: what a directory holds of an earlier run: files of a run that ended before its first
// checkpoint, which cannot be resumed, and the settings that a run began with.
#ifndef RLHF_HOST_LEFTOVER_H
#define RLHF_HOST_LEFTOVER_H

#include "base/buf.h"
#include "base/folder.h"
#include "config/config.h"

// Whether a run directory contains only files that a run writes before its first checkpoint,
// including an unfinished checkpoint. Rows of metrics, samples and rollouts are worth keeping
// unless `rows` is 1. Does not check whether the run is alive. [main]
int rlhf__leftover_is_all(const struct rlhf__folder *run, int rows);

// Number of other files in it, and the name of the first of them by the alphabet (NULL allowed, ""
// without any). 1 if the directory cannot be read. [main]
enum { RLHF__LEFTOVER_NAME = 256 };
size_t rlhf__leftover_others(const struct rlhf__folder *run, int rows,
                             char first[RLHF__LEFTOVER_NAME]);

// Remove these files, except the lock, which the caller must hold. [main]
rlhf_status rlhf__leftover_remove(const struct rlhf__folder *run, struct rlhf__error *err);

// ---- the settings that a run began with ----

// The directory's config.json, to be released by the caller; NULL if it cannot be read. [main]
json_t *rlhf__stored_settings(const struct rlhf__folder *run);

// Number of settings in `config` that differ from the stored ones; run.dir is ignored, because a
// directory has several names. 1 also if out of memory. If `first` is given, a text such as
// "run.seed was 1 and is now 2" about the first one is appended to it. [main]
size_t rlhf__settings_differ(const json_t *stored, const struct rlhf__config *config,
                             struct rlhf__buf *first);

#endif
