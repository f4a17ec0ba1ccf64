// kernels.h: is what a compute backend says of itself sound? For the file that was opened and for
// its note alike.
#ifndef RLHF_HOST_PLUGIN_KERNELS_H
#define RLHF_HOST_PLUGIN_KERNELS_H

#include "base/error.h"

#include <rlhf/compute.h>

// Copy and check what rlhf_kernels_v0() returned (NULL: nothing), by the growth rule. Messages name
// path: RLHF_E_INVALID, RLHF_E_UNSUPPORTED. [main]
rlhf_status rlhf__kernels_check(const char *path, const rlhf_kernels *src, rlhf_kernels *out,
                                struct rlhf__error *err);

#endif
