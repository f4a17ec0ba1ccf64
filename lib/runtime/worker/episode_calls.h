// episode_calls.h: the functions of an environment whose file is not open in this process. The
// states of its episodes are in the worker. If the worker terminates, the episodes that were open
// in it fail at their next call.
#ifndef RLHF_HOST_WORKER_EPISODE_CALLS_H
#define RLHF_HOST_WORKER_EPISODE_CALLS_H

#include "wire/describe.h"

// Fill in the ops table of a stand-in from the worker's description. [any]
void rlhf__episode_calls_ops(const struct rlhf__description *, rlhf_environment_ops *out);

#endif
