// rlhf/plugin.h: what a shared object must export to be a plugin of rlhf-host.
//
// Plugin contract 1.0, frozen: it only grows.
//
// A plugin exports one function, `rlhf_plugin_v1`, which returns static const data: a bundle of
// plugin descriptors. That function must not allocate, and nothing else may be exported
// (-fvisibility=hidden). The ops tables of the kinds are in reward.h, algo.h, environment.h,
// sink.h, model.h and compute.h.
//
// Smallest plugin: see sdk/templates/reward.c. [R:exports]
//
// The life of a plugin, in a run and in every command that uses it:
//   1. The host loads the file, calls rlhf_plugin_v1() and checks the bundle, the descriptors, the
//      ops tables and the options. Nothing else of the plugin runs before this.
//   2. It reads the user's settings into the config struct, and calls why_unused() for each.
//   3. create(): the instance gets the host and its config, looks up services, allocates.
//   4. Before the first phase: plan() and check_row(), for the kinds that have them. Then, in a
//      resumed run, load() gets the bytes that save() wrote at the checkpoint.
//   5. The calls of the phases, in the order that the header of the kind says.
//   6. Algorithms and rewards: at each checkpoint, save(). It may be called between any two calls.
//   load() may be called
//      then, too, to return to an earlier save(), for example before a failed call is repeated. It
//      replaces the whole state.
//   7. destroy(), also after a failure, but not after a failed create(). The file stays loaded.
// One file may have several instances at a time; they share only the static data.
#ifndef RLHF_PLUGIN_H
#define RLHF_PLUGIN_H

#include "base.h"
#include "host.h"
#include "log.h"
#include "option.h"

enum rlhf_kind {
    RLHF_KIND_ALGO = 1,
    RLHF_KIND_REWARD = 2,
    RLHF_KIND_MODEL = 3,
    RLHF_KIND_ENVIRONMENT = 4,
    RLHF_KIND_KERNELS = 5,
    RLHF_KIND_SINK = 6
};

// A byte sink, valid during the save() call that received it. `write` returns 0, or a negative
// status that save() must return unchanged. [R:save]
typedef struct rlhf_ostream rlhf_ostream;
struct rlhf_ostream {
    uint32_t size, reserved;
    rlhf_status (*write)(const rlhf_ostream *, const void *bytes, uint64_t n); // [main]
};

// A byte source, valid during the load() call that received it. `read` reads n bytes, or returns
// RLHF_E_IO if fewer remain; `left` returns the number of bytes that remain. [R:load]
typedef struct rlhf_istream rlhf_istream;
struct rlhf_istream {
    uint32_t size, reserved;
    rlhf_status (*read)(const rlhf_istream *, void *bytes, uint64_t n); // [main]
    uint64_t (*left)(const rlhf_istream *);                             // [main]
};

// An option that the user has set, for why_unused().
typedef struct rlhf_option_in {
    uint32_t size, reserved;
    const void *config; // with all options
    const char *key;    // the option's
} rlhf_option_in;

// For rlhf_plugin.host_minor_min: the plugin runs on hosts of minor version k and later.
#define RLHF_MINOR(k) ((k) + 1u)

typedef struct rlhf_plugin {
    uint32_t size, kind; // enum rlhf_kind
    // In reverse DNS, e.g. "org.example.period" [R:id]: a domain backwards and a name. At
    // least two parts, and usually three or more, with dots between them, of letters, digits, '_'
    // and '-', in all at most 127 characters.
    // The plugins of a bundle have different ids.
    const char *id;
    // The texts below are UTF-8 without control characters. `version` has 1 to 63 bytes, and each
    // other text at most 1,023.
    const char *version, *summary; // not NULL [R:summary]
    // Shown by `plugin info`; NULL: not stated. `license` is an SPDX expression ("Apache-2.0").
    const char *vendor, *url, *license;
    // The oldest host that this plugin runs on: RLHF_MINOR(k) for hosts of minor version k and
    // later. 0: of the minor version that it was built with. A plugin that promises an older host
    // tests for later fields with RLHF_HAS, and leaves later fields of its own structs 0, because
    // that host would reject them.
    uint32_t host_minor_min;
    uint32_t flags; // no flag is defined; must be 0

    // ---- options ----
    // All four are 0 if there are no options.
    const rlhf_opt *opts;
    uint32_t n_opts;
    uint32_t opt_stride;    // bytes of a row of opts, sizeof(rlhf_opt)
    uint32_t config_size;   // bytes of the config struct
    uint32_t state_version; // format of save()'s bytes; 0 = without save and load
    // Returns NULL if the option has an effect with the other options of its config. Otherwise
    // returns the reason, a static text such as "kl_controller is fixed". The host then rejects the
    // option with this reason or, if the option comes from a file, only warns. The host does not
    // ask about options that have their default value. If why_unused is NULL, all options take
    // effect. [any]
    const char *(*why_unused)(const rlhf_option_in *);

    // ---- instance ----
    // config and host outlive the instance. If create is NULL, self is the config, and the plugin
    // must not have destroy or state. [main] [R:create]
    rlhf_status (*create)(const rlhf_host *, const void *config, void **self);
    void (*destroy)(void *self); // NULL allowed as self [main] [R:destroy]
    // State that a resumed run needs (controllers, running statistics), only of algorithms and
    // rewards. Provide either all three, i.e. save, load and a state_version of 1 or more, or none;
    // the host rejects anything else, and state of other kinds.
    // `load` may reject a state_version that it does not know. [main] [R:state] [R:unsaved-state]
    rlhf_status (*save)(void *self, const rlhf_ostream *);
    rlhf_status (*load)(void *self, const rlhf_istream *, uint32_t state_version);

    // rlhf_algo_ops, rlhf_reward_ops, rlhf_model_ops, rlhf_environment_ops, rlhf_kernels_ops or
    // rlhf_sink_ops, by kind. Its `size` is a multiple of 8 and at least the table's size in
    // 1.0 (of models and kernels: in the version that the table states).
    const void *ops;
    // Returns the plugin's table for an optional interface, e.g. "rlhf.NAME/1", or NULL if
    // the plugin does not have this interface. Ids have the form of service ids. `self` is NULL
    // if the host calls this before there is an instance; then return NULL for an interface that
    // depends on the instance. The table is valid until destroy(self), or forever if self is NULL.
    // If extension is NULL, there are no extensions. [any] [R:extension]
    const void *(*extension)(void *self, const char *id);
} rlhf_plugin;

// Initializes the four members of a descriptor that describe its options. `rows` is an array of
// rlhf_opt, and T the type of the config struct.
#define RLHF_OPTIONS(T, rows)                                                                      \
    .opts = (rows), .n_opts = sizeof(rows) / sizeof *(rows), .opt_stride = sizeof *(rows),         \
    .config_size = sizeof(T)

typedef struct rlhf_bundle {
    uint32_t size, abi_major, abi_minor, n_plugins;
    const rlhf_plugin *const *plugins; // [n_plugins]
    const char *built_with;            // RLHF_SDK_VERSION or NULL; a text as rlhf_plugin.version
} rlhf_bundle;

typedef const rlhf_bundle *(*rlhf_entry_fn)(void);
#define RLHF_ENTRY_SYMBOL "rlhf_plugin_v1"
// The name of the entry function. To link several plugins into one program, define RLHF_ENTRY
// before including this header, with a different name for each plugin (-DRLHF_ENTRY=my_plugin), and
// call the functions by these names.
#ifndef RLHF_ENTRY
#define RLHF_ENTRY rlhf_plugin_v1
#endif
#ifdef __cplusplus
extern "C" {
#endif
RLHF_EXPORT const rlhf_bundle *RLHF_ENTRY(void);
#ifdef __cplusplus
}
#endif

// Defines the entry function of a .so. RLHF_DEFINE_PLUGIN takes one `descriptor`, and
// RLHF_DEFINE_PLUGINS the addresses of several (&one, &other). Descriptors must be static const
// data.
#define RLHF_DEFINE_PLUGIN(descriptor) RLHF_DEFINE_PLUGINS(&(descriptor))
#define RLHF_DEFINE_PLUGINS(...)                                                                   \
    static const rlhf_plugin *const rlhf_own_list[] = {__VA_ARGS__};                               \
    static const rlhf_bundle rlhf_own_bundle = {                                                   \
        sizeof(rlhf_bundle), RLHF_ABI_MAJOR,                                                       \
        RLHF_ABI_MINOR,      sizeof rlhf_own_list / sizeof *rlhf_own_list,                         \
        rlhf_own_list,       RLHF_SDK_VERSION};                                                    \
    const rlhf_bundle *RLHF_ENTRY(void) { return &rlhf_own_bundle; }

#endif
