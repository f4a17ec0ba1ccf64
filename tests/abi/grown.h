// grown.h: the entry of a plugin whose structs are older or newer than the host's. Included after
// <rlhf/...> and before the plugin's own source. With -DLONGER, every struct that can grow has two
// more members in the plugin's headers. They are zero, except in the struct that GROWN_SET in the
// environment names.
#ifndef GROWN_H
#define GROWN_H

#include <rlhf/plugin.h>

#include <stdlib.h>
#include <string.h>

// v0 requires the host's exact minor, whatever headers a plugin was built with.
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

// The bundle of one plugin with its own table.
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

// The templates end with this macro. Here it defines no entry, because the file that includes a
// template does.
#undef RLHF_DEFINE_PLUGIN
#define RLHF_DEFINE_PLUGIN(descriptor)                                                             \
    static inline const rlhf_plugin *grown_descriptor(void) { return &(descriptor); }

#endif
