// device_info.h: what a backend's describe() says of a device, read from its JSON and checked.
#ifndef RLHF_HOST_MODEL_DEVICE_INFO_H
#define RLHF_HOST_MODEL_DEVICE_INFO_H

#include "base/json.h"

// Texts are printable; "" = none or unknown. Zero-initialise.
struct rlhf__device_info {
    // number of devices, usable or not; 0: see `missing`. An answer without a number means 1, or 0
    // if it has `missing`
    uint32_t devices;
    int32_t capability;           // CUDA's, 10 * major + minor; 0: none
    uint64_t memory, memory_free; // bytes; host memory if the device shares it
    const char *name;             // "NVIDIA H100 80GB HBM3"
    const char *driver, *runtime; // versions
    const char *library;          // matrix-product library
    const char *missing;          // one sentence: why open() would fail; "" = it would not
    const json_t *levels;         // a list, lowest first (rlhf_kernels_ops); empty without a choice
    json_t *all;                  // owns the members above
};

// Read a describe()'s answer, NULL = nothing is known of its one device. Errors: RLHF_E_INVALID
// names a member that is not as rlhf_kernels_ops says. *out needs finish in any case. [any]
rlhf_status rlhf__device_info_read(const char *json, struct rlhf__device_info *out,
                                   struct rlhf__error *err);
void rlhf__device_info_finish(struct rlhf__device_info *); // accepts a zeroed one [any]

#endif
