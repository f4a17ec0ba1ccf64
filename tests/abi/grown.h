// grown.h: the entry of a plugin for test_growth.c. Included after <rlhf/...> and before the
// plugin's own source.
//
// With -DLONGER, the headers are those of the next minor version: every struct that can grow has
// two more members. The plugin promises to run on the present host. The members are zero, except in
// the struct that the environment variable GROWN_SET names.
#ifndef GROWN_H
#define GROWN_H

#include <rlhf/plugin.h>
#include <rlhf/service.h>

#include "copying.h"

#include <stdlib.h>

#ifdef LONGER
#define GROWN_TAIL(s, name) ((s)->later_number = grown_sets(name))
static inline uint64_t grown_sets(const char *name) {
    const char *set = getenv("GROWN_SET");
    return set && strcmp(set, name) == 0;
}
#else
#define GROWN_TAIL(s, name) ((void)(s))
#endif

static rlhf_plugin grown_real; // the plugin's own descriptor

#define SEE_SERVICE(T, host, id)                                                                   \
    do {                                                                                           \
        const T *table = (const T *)host->service(host, id);                                       \
        if (table) SEE(T, table);                                                                  \
    } while (0)

// No table of the host is longer than in these headers.
static inline rlhf_status grown_create(const rlhf_host *host, const void *config, void **self) {
    SEE(rlhf_host, host);
    SEE_SERVICE(rlhf_row_service, host, RLHF_SVC_ROW);
    SEE_SERVICE(rlhf_limits, host, RLHF_SVC_LIMITS);
    SEE_SERVICE(rlhf_tokenizer_service, host, RLHF_SVC_TOKENIZER);
    SEE_SERVICE(rlhf_classifier_service, host, RLHF_SVC_CLASSIFIER);
    SEE_SERVICE(rlhf_reward_model_service, host, RLHF_SVC_REWARD_MODEL);
    SEE_SERVICE(rlhf_language_model_service, host, RLHF_SVC_LANGUAGE_MODEL);
    if (grown_real.create) return grown_real.create(host, config, self);
    *self = (void *)(uintptr_t)config;
    return RLHF_OK;
}

static inline const char *grown_why_unused(const rlhf_option_in *in) {
    rlhf_option_in copy;
    TAKE_STRUCT(rlhf_option_in, copy, in);
    return grown_real.why_unused(&copy);
}

static inline rlhf_status grown_save(void *self, const rlhf_ostream *out) {
    SEE(rlhf_ostream, out);
    return grown_real.save(self, out);
}

static inline rlhf_status grown_load(void *self, const rlhf_istream *in, uint32_t version) {
    SEE(rlhf_istream, in);
    return grown_real.load(self, in, version);
}

// Returns a bundle that holds one plugin, with the given table.
static inline const rlhf_bundle *grown_bundle(const rlhf_plugin *descriptor, const void *ops) {
    static rlhf_plugin plugin;
    static const rlhf_plugin *const list[] = {&plugin};
    static rlhf_bundle bundle = {.size = sizeof(rlhf_bundle),
                                 .abi_major = RLHF_ABI_MAJOR,
                                 .abi_minor = RLHF_ABI_MINOR,
                                 .n_plugins = 1,
                                 .plugins = list,
                                 .built_with = RLHF_SDK_VERSION};
    plugin = grown_real = *descriptor;
    plugin.ops = ops;
#ifdef LONGER
    if (!getenv("GROWN_PROMISES_NOTHING")) plugin.host_minor_min = RLHF_MINOR(RLHF_ABI_MINOR - 1);
#endif
    plugin.create = grown_create;
    if (plugin.why_unused) plugin.why_unused = grown_why_unused;
    if (plugin.save) plugin.save = grown_save;
    if (plugin.load) plugin.load = grown_load;
    GROWN_TAIL(&plugin, "descriptor");
    GROWN_TAIL(&bundle, "bundle");
    return &bundle;
}

// Every template ends with this macro. Here it does not define the plugin's entry, because the file
// that includes a template defines one itself.
#undef RLHF_DEFINE_PLUGIN
#define RLHF_DEFINE_PLUGIN(descriptor)                                                             \
    static inline const rlhf_plugin *grown_descriptor(void) { return &(descriptor); }

#endif
