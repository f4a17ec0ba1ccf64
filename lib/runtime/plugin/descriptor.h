// descriptor.h: checks what a plugin file exports, copies its tables by the growth rule, and
// rejects invalid ones with a reason.
#ifndef RLHF_HOST_PLUGIN_DESCRIPTOR_H
#define RLHF_HOST_PLUGIN_DESCRIPTOR_H

#include "plugin/load.h"

// Copy and check a bundle: its ABI and its list of plugins. [main]
rlhf_status rlhf__bundle_check(const char *path, const rlhf_bundle *src, rlhf_bundle *out,
                               struct rlhf__error *err);

// Check one descriptor, its option table and its ops, and copy them to *out with the file's path
// and checksum; out->abi_minor is set. Messages begin with `path`. Call rlhf__plugin_finish on *out
// even after a failure. [main]
rlhf_status rlhf__plugin_init(struct rlhf__plugin *out, const char *path, const char sha256[65],
                              const rlhf_plugin *src, struct rlhf__error *err);
void rlhf__plugin_finish(struct rlhf__plugin *p); // accepts a zeroed struct [main]

#endif
