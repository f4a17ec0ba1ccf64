// search.h: finds the file of a plugin by the name that a user typed.
#ifndef RLHF_HOST_PLUGIN_SEARCH_H
#define RLHF_HOST_PLUGIN_SEARCH_H

#include "base/dirs.h"
#include "base/file.h"
#include "plugin/trust.h"

#include <rlhf/plugin.h>

// Directory of a kind below <lib>, the user's directory and each directory of RLHF_PLUGIN_PATH:
// "algos", ... In the last two a plugin may also be in the directory itself. [any]
const char *rlhf__kind_dir(int32_t kind);

// The absolute path of the plugin file with this name, heap-allocated (see rlhf__plugin_open for
// the order; kind 0 = any). from: enum rlhf__name_from. A file found only among another kind's is
// returned too, so that the caller can say what it is. Errors: RLHF_E_INVALID if it was not found,
// with the places searched and the nearest file, or if RLHF_PLUGIN_PATH is wrong. [main]
rlhf_status rlhf__plugin_find(const struct rlhf__dirs *dirs, const char *name, int32_t kind,
                              int32_t from, const char *asker, char **path,
                              struct rlhf__error *err);

// The path of `file` in the directories of a kind, heap-allocated; *path NULL if none has it.
// Errors: a directory or RLHF_PLUGIN_PATH is refused. [main]
rlhf_status rlhf__plugin_look(const struct rlhf__dirs *dirs, const char *file, int32_t kind,
                              char **path, struct rlhf__error *err);

// Length of name without the "#id" that chooses one of several plugins in a file. [main]
size_t rlhf__plugin_name_len(const char *name, int32_t from);

// 1 if name (with or without "#id") is the path of a file to open rather than a name to look up.
// file receives it without the id, with ".so" added if missing. [main]
int rlhf__plugin_is_path(const char *name, int32_t from, char file[1024]);

// 1 if the existing file `path` is where names are looked up. [main]
int rlhf__plugin_is_installed(const struct rlhf__dirs *dirs, const char *path);

// 1 if the existing file `path` is where names are looked up and shadows another file of its name
// there, which then can be given only by its path: that path in out. [main]
int rlhf__plugin_hidden(const struct rlhf__dirs *dirs, const char *path, char out[RLHF__PATH_CAP]);

// 1 if the existing file `path` is below <lib>, among the program's own plugins. [main]
int rlhf__plugin_is_shipped(const struct rlhf__dirs *dirs, const char *path);

// RLHF_E_INVALID if RLHF_PLUGIN_PATH has an entry that is not absolute. [main]
rlhf_status rlhf__plugin_path_check(struct rlhf__error *err);

// Call visit with the path of every *.so in the directories of all kinds, in search order, sorted
// by name within a directory. Stops at the first negative status and returns it. [main]
rlhf_status rlhf__plugin_each_file(const struct rlhf__dirs *dirs,
                                   rlhf_status (*visit)(void *arg, int32_t kind, const char *path),
                                   void *arg);

#endif
