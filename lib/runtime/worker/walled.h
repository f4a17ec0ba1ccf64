// walled.h: a reward whose programs are isolated. The plugin itself came with rlhf-host and is open
// in this process, but the programs that it starts are confined like workers (programs.h).
#ifndef RLHF_HOST_WORKER_WALLED_H
#define RLHF_HOST_WORKER_WALLED_H

#include "plugin/load.h"
#include "worker/programs.h"

// Wrap the plugin `open`, which must have the extension RLHF_EXT_PROGRAM, so that its programs are
// confined. If `network` is 1, the programs may use the network. Calls with the same plugin and
// network setting return the same *out, which lives as long as `p`. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__walled_plugin(struct rlhf__plugins *p, const struct rlhf__plugin *open,
                                int32_t network, const struct rlhf__plugin **out,
                                struct rlhf__error *err);

// Returns the confinement of an instance's programs; NULL = none. [any]
struct rlhf__program_walls *rlhf__walls_of(const rlhf_host *plugin);

#endif
