// rlhf/plugin.h: what a shared object must export to be a plugin of rlhf-host.
//
// One symbol, `rlhf_plugin_v0`, returning static const data: a bundle of plugin descriptors. It
// must not allocate, and nothing else may be exported (-fvisibility=hidden). A note beside it
// (elf_note.h) says the same to whoever does not want to run it. The ops tables of the
// three kinds are in reward.h, algo.h and model.h.
//
// Smallest plugin: see sdk/templates/reward.c. [R:exports]
#ifndef RLHF_PLUGIN_H
#define RLHF_PLUGIN_H

#include "base.h"
#include "elf_note.h"
#include "host.h"
#include "log.h"
#include "option.h"

enum rlhf_kind { RLHF_KIND_ALGO = 1, RLHF_KIND_REWARD = 2, RLHF_KIND_MODEL = 3 };

// A byte sink, for the save() that it was given to: returns 0, or a negative status that save()
// must return unchanged. [R:save]
typedef struct rlhf_ostream rlhf_ostream;
struct rlhf_ostream {
    uint32_t size, reserved;
    rlhf_status (*write)(const rlhf_ostream *, const void *bytes, uint64_t n); // [main]
};

// A byte source, for the load() that it was given to: fills n bytes, or returns RLHF_E_IO when
// fewer are left. [R:load]
typedef struct rlhf_istream rlhf_istream;
struct rlhf_istream {
    uint32_t size, reserved;
    rlhf_status (*read)(const rlhf_istream *, void *bytes, uint64_t n); // [main]
};

typedef struct rlhf_plugin {
    uint32_t size, kind;
    uint32_t host_minor_min;       // oldest host minor this plugin runs on
    uint32_t state_version;        // bump when save()'s bytes change; 0 = no save and no load
    const char *id;                // reverse DNS, e.g. "org.example.period" [R:id]
    const char *version, *summary; // [R:summary]
    const rlhf_opt *opts;          // NULL when n_opts is 0
    uint32_t n_opts, opt_stride, config_size, flags;
    // config and host outlive the instance. NULL create: self is the config, and there is neither
    // destroy nor state. [main] [R:create]
    rlhf_status (*create)(const rlhf_host *, const void *config, void **self);
    void (*destroy)(void *self); // NULL allowed as self [main] [R:destroy]
    // State that a resumed run needs (controllers, running statistics): both, or neither when
    // state_version is 0; a plugin with one of the three alone is refused. load may refuse a
    // state_version it does not know. [main] [R:state] [R:unsaved-state]
    rlhf_status (*save)(void *self, const rlhf_ostream *);
    rlhf_status (*load)(void *self, const rlhf_istream *, uint32_t state_version);
    const void *ops; // rlhf_algo_ops, rlhf_reward_ops or rlhf_model_ops, after kind
    // Why option `key` changes nothing beside the others of config ("kl_controller is fixed",
    // static text), NULL: it acts. What a user gave in vain is then refused with that reason, or
    // warned of when it comes from a file; options at their default are not asked about. NULL: all
    // act. [any]
    const char *(*idle)(const void *config, const char *key);
} rlhf_plugin;

typedef struct rlhf_bundle {
    uint32_t size, abi_major, abi_minor, n_plugins;
    const rlhf_plugin *const *plugins; // [n_plugins]
    const char *built_with;            // RLHF_SDK_VERSION, for messages
} rlhf_bundle;

typedef const rlhf_bundle *(*rlhf_entry_fn)(void);
#define RLHF_ENTRY_SYMBOL "rlhf_plugin_v0"
#ifdef __cplusplus
extern "C" {
#endif
RLHF_EXPORT const rlhf_bundle *rlhf_plugin_v0(void);
#ifdef __cplusplus
}
#endif

// Defines the entry of a .so, and the note that it can be read by without being run: the one plugin
// `descriptor`, or several by their addresses (&one, &other). Descriptors are static const data.
#define RLHF_DEFINE_PLUGIN(descriptor) RLHF_DEFINE_PLUGINS(&(descriptor))
#define RLHF_DEFINE_PLUGINS(...)                                                                   \
    static const rlhf_plugin *const rlhf_own_list[] = {__VA_ARGS__};                               \
    static const rlhf_bundle rlhf_own_bundle = {                                                   \
        sizeof(rlhf_bundle), RLHF_ABI_MAJOR,                                                       \
        RLHF_ABI_MINOR,      sizeof rlhf_own_list / sizeof *rlhf_own_list,                         \
        rlhf_own_list,       RLHF_SDK_VERSION};                                                    \
    const rlhf_bundle *rlhf_plugin_v0(void) {                                                      \
        RLHF_ELF_NOTE(RLHF_NOTE_PLUGIN, &rlhf_own_bundle);                                         \
        return &rlhf_own_bundle;                                                                   \
    }

#endif
