// devices.h: which cards exist and whether this backend can use them, without creating a context of
// the backend.
#ifndef RLHF_CUDA_DEVICES_H
#define RLHF_CUDA_DEVICES_H

#include "context.h"

// rlhf_kernels.describe. Does not change the calling thread's current card. [main]
rlhf_status rlhf__cuda_describe(uint32_t gpu, rlhf_device_info *out);

// Makes card `gpu` the thread's current one, and fills in cu's gpu, sm and detail. Calls of the
// context do not select the card again: they come only from this thread, which must not select
// another. With the text of describe's `missing`: RLHF_E_INVALID if this machine has no such card
// that this backend can use, RLHF_E_DEVICE for a card that fails. [main]
rlhf_status rlhf__cuda_device_open(struct rlhf__cuda *cu, uint32_t gpu);

#endif
