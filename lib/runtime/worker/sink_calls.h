// sink_calls.h: the functions of a sink whose file is not open in this process.
#ifndef RLHF_LIB_RUNTIME_WORKER_SINK_CALLS_H
#define RLHF_LIB_RUNTIME_WORKER_SINK_CALLS_H

#include "wire/describe.h"

#include <rlhf/sink.h>

// Fill in the ops table of a stand-in from the worker's description. [any]
void rlhf__sink_calls_ops(const struct rlhf__description *, rlhf_sink_ops *out);

#endif
