// stand_in.h: a reward, an environment or a sink whose file is not open in this process. The
// stand-in has a descriptor and ops of the host, which let a worker (process.h) run the plugin. To
// the rest of the host, the stand-in is a plugin like any other.
//
// If a worker crashes, exits, hangs or sends invalid messages, the current call fails with a
// reason. The next call starts another worker with the state after the last successful batch.
// Episodes that were open in the failed worker fail, too (episode_calls.h).
#ifndef RLHF_HOST_WORKER_STAND_IN_H
#define RLHF_HOST_WORKER_STAND_IN_H

#include "plugin/load.h"
#include "worker/worker_rules.h"

// Find the reward, environment or sink `name` as rlhf__plugin_open does, but run it in workers.
// Calls with the same file, kind and network setting return the same plugin. Errors: those of
// rlhf__plugin_open; RLHF_E_INVALID if the worker fails. [main]
rlhf_status rlhf__worker_plugin(struct rlhf__plugins *p, const struct rlhf__worker_rules *rules,
                                const char *name, int32_t kind, int32_t from, const char *asker,
                                const struct rlhf__plugin **out, struct rlhf__error *err);

#endif
