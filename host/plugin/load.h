// load.h: finds, opens and checks plugins. A refused file is reported in one sentence with the
// reason.
//
// Files are never dlclosed: code that has run threads may still be needed at exit.
#ifndef RLHF_HOST_PLUGIN_LOAD_H
#define RLHF_HOST_PLUGIN_LOAD_H

#include "base/dirs.h"
#include "option/options.h"
#include "plugin/trust.h"

#include <rlhf/algo.h>
#include <rlhf/model.h>
#include <rlhf/reward.h>
#include <rlhf/sink.h>

struct rlhf__plugin;

// Implements a plugin whose work is done in another process (worker/). The process is a worker that
// has the file open; or, if `worker` is 0, a program that the plugin starts from this process.
struct rlhf__outside {
    // As rlhf_plugin.why_unused, for that plugin. [any]
    const char *(*why_unused)(const struct rlhf__plugin *, const void *config, const char *key);
    // Like rlhf_plugin.extension, but returns a table of the host. NULL: the descriptor's function
    // is used. [any]
    const void *(*extension)(const struct rlhf__plugin *, void *self, const char *id);
    void (*destroy)(struct rlhf__outside *); // [main]
    const char *confined;                    // what that process must not do, in words
    // The row at which the plugin's process ended during the last score(): the batch's n if it
    // ended after the last row, -1 if it did not end. NULL: not known. [as score()]
    int64_t (*ended_at)(void *self);
    int32_t worker, reserved; // 1: the plugin itself is in another process
};

// One plugin of a file. Tables are copied by the growth rule: missing fields are zero.
struct rlhf__plugin {
    rlhf_plugin desc;
    union {
        rlhf_algo_ops algo;
        rlhf_reward_ops reward;
        rlhf_model_ops model;
        rlhf_kernels_ops kernels;
        rlhf_sink_ops sink;
    } ops; // after desc.kind
    struct rlhf__opt_table table;
    char *path;                    // absolute
    char *file;                    // last part of path
    char *stem;                    // file without ".so": "imdb"
    struct rlhf__outside *outside; // NULL: it works in this process
    char sha256[65];               // of the file; "" after rlhf__plugins_leave_sums
    char reserved[7];
};

// All plugins opened by this process; owns them.
struct rlhf__plugins;

// [main]
rlhf_status rlhf__plugins_create(const struct rlhf__dirs *dirs, struct rlhf__plugins **out,
                                 struct rlhf__error *err);
void rlhf__plugins_destroy(struct rlhf__plugins *p); // NULL allowed; files stay mapped

// Files opened after this get no sha256. It is for callers that only describe plugins: the sum of a
// large file takes longer than opening the file. [main]
void rlhf__plugins_leave_sums(struct rlhf__plugins *p);

// Returns the number of open plugins; *out is an array of them in the order in which they were
// opened, valid until the next is. [main]
size_t rlhf__plugins_list(const struct rlhf__plugins *p, const struct rlhf__plugin *const **out);

// Open the plugin of that kind. name is an existing file, if `from` (enum rlhf__name_from) allows
// one. Otherwise it is looked up in the directories of RLHF_PLUGIN_PATH, then in the user's
// (dirs->user), then in <lib>/<kind>s; a missing ".so" is added, and "#id" chooses one of several
// plugins in a file. `asker` is the origin of the name, for messages ("--algo", "config.json's
// model_type"). A file that is already open gives the same plugin. A file that others may change is
// refused (trust.h). *out lives as long as p. [main]
rlhf_status rlhf__plugin_open(struct rlhf__plugins *p, const char *name, int32_t kind, int32_t from,
                              const char *asker, const struct rlhf__plugin **out,
                              struct rlhf__error *err);

// Find the file for a name, as rlhf__plugin_open does; *path and *id (after "#", NULL if there is
// none) are heap-allocated. [main]
rlhf_status rlhf__plugins_find(const struct rlhf__plugins *p, const char *name, int32_t kind,
                               int32_t from, const char *asker, char **path, char **id,
                               struct rlhf__error *err);

// rlhf__trust_code for a file. [main]
rlhf_status rlhf__plugins_trust(const struct rlhf__plugins *p, const char *path,
                                struct rlhf__error *err);

// rlhf__dirs.program. Borrowed. [main]
const char *rlhf__plugins_program(const struct rlhf__plugins *p);

// 1 if the file is among the plugins that came with the program. [main]
int rlhf__plugins_shipped(const struct rlhf__plugins *p, const char *path);

// rlhf__plugin_open for a file that the parent process has checked: its permissions are not checked
// again. id: the plugin's, "" = the only one. [main]
rlhf_status rlhf__plugin_open_trusted(struct rlhf__plugins *p, const char *path, const char *id,
                                      int32_t kind, const char *asker,
                                      const struct rlhf__plugin **out, struct rlhf__error *err);

// Add the plugin that `src` describes, from a file that is not opened here; it is checked like an
// opened one. Takes ownership of *outside, except after an error. [main]
rlhf_status rlhf__plugins_add_outside(struct rlhf__plugins *p, const char *path,
                                      const char sha256[65], const rlhf_plugin *src,
                                      struct rlhf__outside *outside,
                                      const struct rlhf__plugin **out, struct rlhf__error *err);

// Why option `key` has no effect given the other options of config; NULL: it has one. [any]
const char *rlhf__plugin_why_unused(const struct rlhf__plugin *, const void *config,
                                    const char *key);

// The plugin's table for an optional interface, or NULL; self NULL: without an instance. [any]
const void *rlhf__plugin_extension(const struct rlhf__plugin *, void *self, const char *id);

// The names without ".so" of the plugins in the directories of a kind, in search order, as "a, b";
// *there = 1 if a plugin file in any directory has this name. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__plugin_stems(const struct rlhf__plugins *p, int32_t kind, const char *name,
                               struct rlhf__buf *out, int *there);

// All plugins of one file, of any kind: *out is [*n], borrowed from p; free(*out). [main]
rlhf_status rlhf__plugin_open_file(struct rlhf__plugins *p, const char *path,
                                   const struct rlhf__plugin ***out, size_t *n,
                                   struct rlhf__error *err);

// The ABI's major number by the name of an opened object's entry function, -1 = it is not a plugin.
// [main]
int rlhf__plugin_abi(void *object);

// "algorithm", "reward", "model", "kernels", "sink" (RLHF_KIND_*), else "unknown kind".
// [any]
const char *rlhf__kind_name(int32_t kind);

// rlhf_copy_in with an error message; `what` names the struct. Errors: RLHF_E_UNSUPPORTED. [any]
rlhf_status rlhf__copy_in(void *dst, uint32_t cap, const void *src, uint32_t min, const char *what,
                          struct rlhf__error *err);

#endif
