// grown.h: the entry of a plugin whose structs are older or newer than the host's. Included after
// <rlhf/...> and before the plugin's own source. With -DLONGER, every struct that can grow has two
// more members in the plugin's headers. They are zero, except in the struct that the environment
// variable GROWN_SET names.
#ifndef GROWN_H
#define GROWN_H

#include <rlhf/plugin.h>

#include <stdlib.h>
#include <string.h>

// While v0 lasts, the host accepts only its own minor version. So a plugin must state the host's
// minor version, whichever headers it was built with.
#undef RLHF_ABI_MINOR
#define RLHF_ABI_MINOR HOST_MINOR

#ifdef LONGER
#define GROWN_TAIL(s, name) ((s)->later_number = grown_sets(name))
static inline uint64_t grown_sets(const char *name) {
    const char *set = getenv("GROWN_SET");
    return set && strcmp(set, name) == 0;
}
#else
#define GROWN_TAIL(s, name) ((void)(s))
#endif

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
    plugin = *descriptor;
    plugin.ops = ops;
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
