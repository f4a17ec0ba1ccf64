// walled.h: a reward whose programs are isolated: the plugin is open in this process, as it came
// with it, and the programs that it starts are behind the walls that workers have (programs.h).
#ifndef RLHF_HOST_WORKER_WALLED_H
#define RLHF_HOST_WORKER_WALLED_H

#include "plugin/load.h"
#include "worker/programs.h"

// The plugin `open`, which has the extension RLHF_EXT_PROGRAM, with walls around its programs;
// network: 1 = the network is open to them. The same plugin and network give the same *out, which
// lives as long as p. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__walled_plugin(struct rlhf__plugins *p, const struct rlhf__plugin *open,
                                int32_t network, const struct rlhf__plugin **out,
                                struct rlhf__error *err);

// The walls around the programs of an instance, NULL = none. [any]
struct rlhf__program_walls *rlhf__walls_of(const rlhf_host *plugin);

#endif
