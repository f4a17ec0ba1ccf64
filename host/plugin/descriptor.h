// descriptor.h: is what a plugin file exports sound? Copies tables by the growth rule and refuses
// the rest with a reason.
#ifndef RLHF_HOST_PLUGIN_DESCRIPTOR_H
#define RLHF_HOST_PLUGIN_DESCRIPTOR_H

#include "plugin/load.h"

// Copy and check a bundle: ABI (v0: exact match), list of plugins. [main]
rlhf_status rlhf__bundle_check(const char *path, const rlhf_bundle *src, rlhf_bundle *out,
                               struct rlhf__error *err);

// Copy and check one descriptor, its option table and its ops, into out->desc, table and ops.
// Messages begin with path. [main]
rlhf_status rlhf__descriptor_check(const char *path, const rlhf_plugin *src,
                                   struct rlhf__plugin *out, struct rlhf__error *err);

#endif
