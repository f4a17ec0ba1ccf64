// descriptor.h: a plugin of a file. What the file exports is checked, copied by the growth rule,
// and rejected with a reason if it is invalid.
#ifndef RLHF_HOST_PLUGIN_DESCRIPTOR_H
#define RLHF_HOST_PLUGIN_DESCRIPTOR_H

#include "option/options.h"

#include <rlhf/algo.h>
#include <rlhf/environment.h>
#include <rlhf/model.h>
#include <rlhf/reward.h>
#include <rlhf/sink.h>

struct rlhf__plugin;

// Describes a plugin whose work is done in another process (worker/). If `worker` is 1, that
// process is a worker, which has opened the file. If `worker` is 0, the plugin is open in this
// process, and the other process is a program that the plugin starts.
struct rlhf__outside {
    // Like rlhf_plugin.why_unused, for this plugin. [any]
    const char *(*why_unused)(const struct rlhf__plugin *, const void *config, const char *key);
    // Like rlhf_plugin.extension, but returns a table of the host. If this pointer is NULL, the
    // descriptor's function is used. [any]
    const void *(*extension)(const struct rlhf__plugin *, void *self, const char *id);
    void (*destroy)(struct rlhf__outside *); // [main]
    const char *confined;                    // the confinement of that process, as text
    // Returns the row at which the plugin's process terminated during the last score(), n if it
    // terminated after all n rows, or -1 if it did not terminate. NULL if this is never known. [as
    // score()]
    int64_t (*ended_at)(void *self);
    int32_t worker; // 1: the plugin itself is in another process
};

// One plugin of a file. Tables are copied by the growth rule, so missing fields are zero.
struct rlhf__plugin {
    rlhf_plugin desc;
    union {
        rlhf_algo_ops algo;
        rlhf_reward_ops reward;
        rlhf_model_ops model;
        rlhf_kernels_ops kernels;
        rlhf_sink_ops sink;
        rlhf_environment_ops environment;
    } ops; // the member that desc.kind names
    struct rlhf__opt_table table;
    char *path;                    // absolute
    char *file;                    // last part of path
    char *stem;                    // file without ".so": "imdb"
    struct rlhf__outside *outside; // NULL: the plugin runs in this process
    uint32_t abi_minor;            // minor version of the contract that it was built with
    char sha256[65];               // of the file; "" after rlhf__plugins_leave_sums
};

// Copy and check a bundle: its ABI and its list of plugins. [main]
rlhf_status rlhf__bundle_check(const char *path, const rlhf_bundle *src, rlhf_bundle *out,
                               struct rlhf__error *err);

// Check one descriptor, its option table and its ops, and copy them to *out with the file's path
// and checksum; out->abi_minor is set. Messages begin with `path`. Call rlhf__plugin_finish on *out
// even after a failure. [main]
rlhf_status rlhf__plugin_init(struct rlhf__plugin *out, const char *path, const char sha256[65],
                              const rlhf_plugin *src, struct rlhf__error *err);
void rlhf__plugin_finish(struct rlhf__plugin *p); // accepts a zeroed struct [main]

// Like rlhf_copy_in, but also sets an error message on failure. In the message, `what` is the name
// of the struct. Errors: RLHF_E_UNSUPPORTED. [any]
rlhf_status rlhf__copy_in(void *dst, uint32_t cap, const void *src, uint32_t min, const char *what,
                          struct rlhf__error *err);

#endif
