// begun.h: the settings that a run began with, as stored in its directory, and how a new run's
// settings differ from them.
#ifndef RLHF_HOST_BEGUN_H
#define RLHF_HOST_BEGUN_H

#include "base/buf.h"
#include "base/folder.h"
#include "config/config.h"

// The directory's config.json, to be released by the caller; NULL if it cannot be read. [main]
json_t *rlhf__begun_settings(const struct rlhf__folder *run);

// Number of settings in `config` that differ from the stored ones; run.dir is ignored, because a
// directory has several names. 1 also if out of memory. If `first` is given, a text such as
// "run.seed was 1 and is now 2" about the first one is appended to it. [main]
size_t rlhf__begun_differ(const json_t *stored, const struct rlhf__config *config,
                          struct rlhf__buf *first);

#endif
