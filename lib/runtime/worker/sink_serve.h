// sink_serve.h: the calls of a sink, in its worker.
#ifndef RLHF_LIB_RUNTIME_WORKER_SINK_SERVE_H
#define RLHF_LIB_RUNTIME_WORKER_SINK_SERVE_H

#include "base/error.h"
#include "plugin/load.h"
#include "wire/wire.h"

// Serve RLHF__ASK_SINK. Returns the sink's status, or another error with the reason in *why. After
// begin(), *from_phase has the sink's answer. [main]
rlhf_status rlhf__sink_serve(const struct rlhf__plugin *plugin, void *self, struct rlhf__wire *in,
                             int64_t *from_phase, struct rlhf__error *why);

#endif
