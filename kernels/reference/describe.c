// describe.c: rlhf_kernels.describe for the reference backend, which runs on the host.
#include "ops.h"

#include <stdio.h>
#include <unistd.h>

rlhf_status rlhf__ref_describe(uint32_t gpu, rlhf_device_info *out) {
    rlhf_device_info info = {.size = sizeof info, .devices = 1};
    const long page = sysconf(_SC_PAGESIZE), all = sysconf(_SC_PHYS_PAGES);
    if (page > 0 && all > 0) info.memory = (uint64_t)page * (uint64_t)all;
    snprintf(info.name, sizeof info.name, "naive C, for checking other backends");
    if (gpu) snprintf(info.missing, sizeof info.missing, "there is one device, 0");
    return rlhf_copy_out(out, &info, sizeof info, RLHF_SIZE_TO(rlhf_device_info, missing));
}
