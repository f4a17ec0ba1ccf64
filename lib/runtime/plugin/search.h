// search.h: finds the file of a plugin from the name that a user typed.
#ifndef RLHF_HOST_PLUGIN_SEARCH_H
#define RLHF_HOST_PLUGIN_SEARCH_H

#include "base/dirs.h"
#include "base/file.h"
#include "plugin/trust.h"

#include <rlhf/plugin.h>

// Stands for collectives (rlhf/draft/collective.h). The contract does not list them as a kind of
// plugin, but their files are found like those of plugins.
enum { RLHF__KIND_COLLECTIVE = 1000 };

// Returns "algorithm", "reward", "model", "environment", "kernels" or "sink" (RLHF_KIND_*),
// otherwise "unknown kind". [any]
const char *rlhf__kind_name(int32_t kind);

// Returns the name of the directory with plugins of this kind ("algos", ...). <lib>, the user's
// directory and each directory of RLHF_PLUGIN_PATH can contain such a directory. Plugins may also
// be directly in the user's directory or in a directory of RLHF_PLUGIN_PATH. [any]
const char *rlhf__kind_dir(int32_t kind);

// Find the plugin file with this name (rlhf__plugin_open has the search order) and return its
// absolute path, heap-allocated. If `kind` is 0, the file may be of any kind. `from` is an enum
// rlhf__name_from. If only a file of another kind is found, that file is returned, so that the
// caller can report its kind. Errors: RLHF_E_INVALID if RLHF_PLUGIN_PATH is wrong, or if nothing is
// found; the message then has the places that were searched and the file with the most similar
// name. [main]
rlhf_status rlhf__plugin_find(const struct rlhf__dirs *dirs, const char *name, int32_t kind,
                              int32_t from, const char *asker, char **path,
                              struct rlhf__error *err);

// Look for `file` in the directories of a kind. *path is heap-allocated, or NULL if no directory
// contains the file. Fails if RLHF_PLUGIN_PATH or one of its directories is rejected. [main]
rlhf_status rlhf__plugin_look(const struct rlhf__dirs *dirs, const char *file, int32_t kind,
                              char **path, struct rlhf__error *err);

// Returns the length of `name` without "#id", which chooses one of several plugins in a file.
// [main]
size_t rlhf__plugin_name_len(const char *name, int32_t from);

// Returns 1 if `name` (with or without "#id") is the path of a file to open, not a name to look up.
// `file` receives the path without "#id", and with ".so" if that was missing. [main]
int rlhf__plugin_is_path(const char *name, int32_t from, char file[1024]);

// Returns 1 if the existing file `path` is in a directory where names are looked up. [main]
int rlhf__plugin_is_installed(const struct rlhf__dirs *dirs, const char *path);

// Returns 1 if the existing file `path` hides another file with the same name, because a lookup by
// name finds `path`. `out` receives the path of the hidden file, which can be opened only by that
// path. [main]
int rlhf__plugin_hidden(const struct rlhf__dirs *dirs, const char *path, char out[RLHF__PATH_CAP]);

// Returns 1 if the existing file `path` is below <lib>, i.e. one of the program's own plugins.
// [main]
int rlhf__plugin_is_shipped(const struct rlhf__dirs *dirs, const char *path);

// Returns RLHF_E_INVALID if RLHF_PLUGIN_PATH has an entry that is not absolute. [main]
rlhf_status rlhf__plugin_path_check(struct rlhf__error *err);

// Call `visit` with the path of every *.so in the directories of all kinds. The directories come in
// search order, and the files of a directory are sorted by name. Stops at the first negative status
// of `visit` and returns that status. [main]
rlhf_status rlhf__plugin_each_file(const struct rlhf__dirs *dirs,
                                   rlhf_status (*visit)(void *arg, int32_t kind, const char *path),
                                   void *arg);

#endif
