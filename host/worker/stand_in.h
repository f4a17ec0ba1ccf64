// stand_in.h: a reward whose file is not open in this process: a descriptor and ops of the host's
// own, behind which a worker (process.h) does what the plugin would. Who scores with it does not
// know the difference.
//
// A worker that crashes, ends, hangs or speaks nonsense fails the call that it was in, with a
// sentence; the next call starts another one, with the state that was kept after the last good
// batch.
#ifndef RLHF_HOST_WORKER_STAND_IN_H
#define RLHF_HOST_WORKER_STAND_IN_H

#include "plugin/load.h"

enum { RLHF__MOST_WORKERS = 64 };

// How workers are made and how long they may take.
struct rlhf__worker_rules {
    double timeout_s;    // of a call, 0 = no limit
    uint64_t memory_mib; // 0 = no limit
    uint32_t workers;    // that share a batch, 1 to RLHF__MOST_WORKERS
    int32_t network;     // 1: they may use it
};

// The reward plugin of that name, as rlhf__plugin_open has it, but in workers. A file of that name
// and the same rules gives the same plugin. Errors: those of rlhf__plugin_open; RLHF_E_INVALID when
// the worker fails. [main]
rlhf_status rlhf__worker_plugin(struct rlhf__plugins *p, const struct rlhf__worker_rules *rules,
                                const char *name, int32_t from, const char *asker,
                                const struct rlhf__plugin **out, struct rlhf__error *err);

#endif
