// begun.h: the settings that a run began with, as its directory holds them, and how those of a new
// run differ from them.
#ifndef RLHF_HOST_BEGUN_H
#define RLHF_HOST_BEGUN_H

#include "base/buf.h"
#include "base/folder.h"
#include "config/config.h"

// The directory's config.json, which the caller releases; NULL when it cannot be read. [main]
json_t *rlhf__begun_settings(const struct rlhf__folder *run);

// How many settings of `config` differ from the stored ones (run.dir does not count, as a directory
// has several names); 1 also when memory ran out. When `first` is given, "run.seed was 1 and is now
// 2" of the first one is appended to it. [main]
size_t rlhf__begun_differ(const json_t *stored, const struct rlhf__config *config,
                          struct rlhf__buf *first);

#endif
