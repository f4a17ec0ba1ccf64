// search.h: from the name a user typed to the file of a plugin.
#ifndef RLHF_HOST_PLUGIN_SEARCH_H
#define RLHF_HOST_PLUGIN_SEARCH_H

#include "base/dirs.h"
#include "base/file.h"

// Directory of a kind below <lib> and below each directory of RLHF_PLUGIN_PATH: "algos", ... [any]
const char *rlhf__kind_dir(int32_t kind);

// The absolute path of the plugin file called name (see rlhf__plugin_open for the order; kind 0 =
// any), heap. A
// file found only among another kind's is returned too, so that the caller can say what it is.
// Not found: RLHF_E_INVALID, naming where it was looked for and the nearest file. [main]
rlhf_status rlhf__plugin_find(const struct rlhf__dirs *dirs, const char *name, int32_t kind,
                              const char *asker, char **path, struct rlhf__error *err);

// Calls visit with the path of every *.so in the directories of all kinds, in search order, sorted
// by name within a directory. Stops at the first negative status and returns it. [main]
rlhf_status rlhf__plugin_each_file(const struct rlhf__dirs *dirs,
                                   rlhf_status (*visit)(void *arg, int32_t kind, const char *path),
                                   void *arg);

#endif
