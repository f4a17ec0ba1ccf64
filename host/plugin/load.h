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
    char *path;      // absolute
    char *file;      // last part of path
    char *stem;      // file without ".so": "imdb"
    char sha256[65]; // of the file
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
// file; else looked up in the directories of RLHF_PLUGIN_PATH, then <lib>/<kind>s; ".so" is added
// when it is missing, and "#id" chooses one of several in a file. `asker` is who wants it, for
// messages ("--algo", "config.json's model_type"). A file that is open already gives the same
// plugin; one that others may change is refused (trust.h). *out lives as long as p. [main]
rlhf_status rlhf__plugin_open(struct rlhf__plugins *p, const char *name, int32_t kind, int32_t from,
                              const char *asker, const struct rlhf__plugin **out,
                              struct rlhf__error *err);

// The names without ".so" of the plugins in the directories of a kind, in search order, as "a, b";
// *there = 1 when a plugin file of any directory is called name. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__plugin_stems(const struct rlhf__plugins *p, int32_t kind, const char *name,
                               struct rlhf__buf *out, int *there);

// Every plugin of one file, whatever its kind: *out is [*n], borrowed from p; free(*out). [main]
rlhf_status rlhf__plugin_open_file(struct rlhf__plugins *p, const char *path,
                                   const struct rlhf__plugin ***out, size_t *n,
                                   struct rlhf__error *err);

// "algorithm", "reward", "model", "kernels" (RLHF_KIND_*, RLHF__KIND_KERNELS), else "unknown kind".
// [any]
const char *rlhf__kind_name(int32_t kind);

// rlhf_copy_in with a sentence; `what` names the struct. Errors: RLHF_E_UNSUPPORTED. [any]
rlhf_status rlhf__copy_in(void *dst, uint32_t cap, const void *src, uint32_t min, const char *what,
                          struct rlhf__error *err);

#endif
