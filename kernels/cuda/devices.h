// devices.h: which cards exist and whether this backend can use them. Finds out without creating a
// context of the backend.
#ifndef RLHF_CUDA_DEVICES_H
#define RLHF_CUDA_DEVICES_H

#include "context.h"

// rlhf_kernels_ops.describe. Does not change the calling thread's current card. [main]
rlhf_status rlhf__cuda_describe(void *self, uint32_t gpu, const char **json);

// Make card `gpu` the thread's current one, and fill in gpu, sm and detail of cu. Calls of the
// context do not select the card again. They come only from this thread, which must not select
// another card. Errors, with the text of describe's `missing`: RLHF_E_INVALID if this machine has
// no such card that this backend can use, RLHF_E_DEVICE for a card that fails. [main]
rlhf_status rlhf__cuda_device_open(struct rlhf__cuda *cu, uint32_t gpu);

#endif
