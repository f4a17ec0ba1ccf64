// load.h: finding, opening and checking plugins. A refused file gets one sentence that says why.
//
// Nothing is ever dlclosed: code that ran threads may still be needed at exit.
#ifndef RLHF_HOST_PLUGIN_LOAD_H
#define RLHF_HOST_PLUGIN_LOAD_H

#include "base/dirs.h"
#include "option/options.h"
#include "plugin/trust.h"

#include <rlhf/algo.h>
#include <rlhf/model.h>
#include <rlhf/reward.h>

struct rlhf__plugin;

// What stands for a plugin that does its work in another process (worker/): in a worker that has
// the file open, or, where idle, ended_at and asked are NULL, in programs that it starts from this
// one.
struct rlhf__outside {
    // As rlhf_plugin.idle, of that plugin. [any]
    const char *(*idle)(const struct rlhf__plugin *, const void *config, const char *key);
    void (*destroy)(struct rlhf__outside *); // [main]
    const char *confined;                    // what that process may not do, in words
    // The row of the last score() of the instance at which its process ended, the batch's n when
    // that was behind the last; -1: it did not end. NULL: nobody knows. [as score()]
    int64_t (*ended_at)(void *self);
    // As rlhf__instance_asked, of the plugin in that process, in create(). [main]
    int (*asked)(void *self, const char *service);
};

// One plugin of one file. Tables are copies made by the growth rule: fields the file does not have
// are zero.
struct rlhf__plugin {
    rlhf_plugin desc;
    union {
        rlhf_algo_ops algo;
        rlhf_reward_ops reward;
        rlhf_model_ops model;
    } ops; // after desc.kind
    struct rlhf__opt_table table;
    char *path;                    // absolute
    char *file;                    // last part of path
    char *stem;                    // file without ".so": "imdb"
    struct rlhf__outside *outside; // NULL: it works in this process
    char sha256[65];               // of the file
    char reserved[7];
};

// All plugins opened by this process; owns them.
struct rlhf__plugins;

// [main]
rlhf_status rlhf__plugins_create(const struct rlhf__dirs *dirs, struct rlhf__plugins **out,
                                 struct rlhf__error *err);
void rlhf__plugins_destroy(struct rlhf__plugins *p); // NULL allowed; files stay mapped

// How many are open; *out is [that], in the order they were opened, good until the next is. [main]
size_t rlhf__plugins_list(const struct rlhf__plugins *p, const struct rlhf__plugin *const **out);

// Open the plugin of that kind. name: where `from` (enum rlhf__name_from) allows it an existing
// file; else looked up in the directories of RLHF_PLUGIN_PATH, then the user's (dirs->user), then
// <lib>/<kind>s; ".so" is added when it is missing, and "#id" chooses one of several in a file.
// `asker` is who wants it, for messages ("--algo", "config.json's model_type"). A file that is open
// already gives the same plugin; one that others may change is refused (trust.h). *out lives as
// long as p. [main]
rlhf_status rlhf__plugin_open(struct rlhf__plugins *p, const char *name, int32_t kind, int32_t from,
                              const char *asker, const struct rlhf__plugin **out,
                              struct rlhf__error *err);

// The file that a name stands for, as rlhf__plugin_open finds it; *path and *id (behind "#", NULL
// without one) are heap. [main]
rlhf_status rlhf__plugins_find(const struct rlhf__plugins *p, const char *name, int32_t kind,
                               int32_t from, const char *asker, char **path, char **id,
                               struct rlhf__error *err);

// rlhf__trust_code of a file. [main]
rlhf_status rlhf__plugins_trust(const struct rlhf__plugins *p, const char *path,
                                struct rlhf__error *err);

// rlhf__dirs.program. Borrowed. [main]
const char *rlhf__plugins_program(const struct rlhf__plugins *p);

// 1 when the file lies among the plugins that came with the program. [main]
int rlhf__plugins_shipped(const struct rlhf__plugins *p, const char *path);

// rlhf__plugin_open of a file that whoever started this process has judged: who could have written
// it is not asked again. id: of the plugin, "" = its only one. [main]
rlhf_status rlhf__plugin_open_trusted(struct rlhf__plugins *p, const char *path, const char *id,
                                      int32_t kind, const char *asker,
                                      const struct rlhf__plugin **out, struct rlhf__error *err);

// Add the plugin that `src` describes, of a file that is not opened here; it is checked like one
// that is. Owns *outside from then on, not after an error. [main]
rlhf_status rlhf__plugins_add_outside(struct rlhf__plugins *p, const char *path,
                                      const char sha256[65], const rlhf_plugin *src,
                                      struct rlhf__outside *outside,
                                      const struct rlhf__plugin **out, struct rlhf__error *err);

// Why option `key` changes nothing beside the others of config, NULL: it acts. [any]
const char *rlhf__plugin_idle(const struct rlhf__plugin *, const void *config, const char *key);

// The names without ".so" of the plugins in the directories of a kind, in search order, as "a, b";
// *there = 1 when a plugin file of any directory is called name. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__plugin_stems(const struct rlhf__plugins *p, int32_t kind, const char *name,
                               struct rlhf__buf *out, int *there);

// Every plugin of one file, whatever its kind: *out is [*n], borrowed from p; free(*out). [main]
rlhf_status rlhf__plugin_open_file(struct rlhf__plugins *p, const char *path,
                                   const struct rlhf__plugin ***out, size_t *n,
                                   struct rlhf__error *err);

// The ABI's major number by the name of an opened object's entry function, -1 = it is not a plugin.
// [main]
int rlhf__plugin_abi(void *object);

// "algorithm", "reward", "model", "kernels" (RLHF_KIND_*, RLHF__KIND_KERNELS), else "unknown kind".
// [any]
const char *rlhf__kind_name(int32_t kind);

// rlhf_copy_in with a sentence; `what` names the struct. Errors: RLHF_E_UNSUPPORTED. [any]
rlhf_status rlhf__copy_in(void *dst, uint32_t cap, const void *src, uint32_t min, const char *what,
                          struct rlhf__error *err);

#endif
