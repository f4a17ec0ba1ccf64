// devices.h: finds out which cards exist and whether this backend can use them, without creating a
// context of the backend.
#ifndef RLHF_CUDA_MACHINE_DEVICES_H
#define RLHF_CUDA_MACHINE_DEVICES_H

#include "context.h"

// The function rlhf_kernels_ops.describe. Does not change the current card of the calling thread.
// [main]
rlhf_status rlhf__cuda_describe(void *self, uint32_t gpu, const char **json);

// Make card `gpu` the current card of the thread, and fill in gpu, sm and detail of cu. All calls
// of the context must come from this thread. The thread must not select another card, because the
// calls do not select the card again. Returns RLHF_E_INVALID if this machine lacks the card or this
// backend cannot use it, and RLHF_E_DEVICE if the card fails. The error text is the text that
// describe() returns as `missing`. [main]
rlhf_status rlhf__cuda_device_open(struct rlhf__cuda *cu, uint32_t gpu);

#endif
