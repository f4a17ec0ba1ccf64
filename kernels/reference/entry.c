// entry.c: the exported symbol of kernels_reference.so.
#include "ops.h"

RLHF_DEFINE_KERNELS(rlhf__ref_kernels)
