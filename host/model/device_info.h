// device_info.h: reads and checks the JSON with which a backend's describe() describes a device.
#ifndef RLHF_HOST_MODEL_DEVICE_INFO_H
#define RLHF_HOST_MODEL_DEVICE_INFO_H

#include "base/json.h"

// Strings are printable; "" = none or unknown. Zero-initialize.
struct rlhf__device_info {
    // number of devices, usable or not; if it is 0, `missing` has the reason. A backend's answer
    // without this number means 0 devices if the answer has `missing`, otherwise 1
    uint32_t devices;
    int32_t capability;           // CUDA compute capability, 10 * major + minor; 0: none
    uint64_t memory, memory_free; // bytes; host memory if the device shares it
    const char *name;             // "NVIDIA H100 80GB HBM3"
    const char *driver, *runtime; // versions
    const char *library;          // matrix-product library
    const char *missing;          // one sentence: why open() would fail; "" if it would not fail
    const json_t *levels; // levels, lowest first (rlhf_kernels_ops); empty if there is only one
    json_t *all;          // owns the members above
};

// Read the answer of describe(). If `json` is NULL, there is one device about which nothing is
// known. Call rlhf__device_info_finish on *out even after a failure. Errors: RLHF_E_INVALID, with
// the name of the member that does not have the form described at rlhf_kernels_ops. [any]
rlhf_status rlhf__device_info_read(const char *json, struct rlhf__device_info *out,
                                   struct rlhf__error *err);
void rlhf__device_info_finish(struct rlhf__device_info *); // accepts a zeroed struct [any]

#endif
