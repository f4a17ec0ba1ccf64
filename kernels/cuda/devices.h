// devices.h: which cards there are and whether this backend can use them, found without a context
// of the backend.
#ifndef RLHF_CUDA_DEVICES_H
#define RLHF_CUDA_DEVICES_H

#include "context.h"

// rlhf_kernels.describe. The calling thread's current card stays what it is. [main]
rlhf_status rlhf__cuda_describe(uint32_t gpu, rlhf_device_info *out);

// Makes card `gpu` the thread's current one, and fills in cu's gpu, sm and detail. Calls of the
// context do not choose the card again: they come from this thread alone, where nothing else may
// choose another. With the sentence of describe's `missing`: RLHF_E_INVALID for a machine without
// such a card that this backend can use, RLHF_E_DEVICE for a card that fails. [main]
rlhf_status rlhf__cuda_device_open(struct rlhf__cuda *cu, uint32_t gpu);

#endif
