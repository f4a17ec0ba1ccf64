// compute_load.h: finds the shared object of a compute backend by name, loads it and describes its
// devices, without creating a table. rlhf__compute_open starts with it.
#ifndef RLHF_HOST_COMPUTE_LOAD_H
#define RLHF_HOST_COMPUTE_LOAD_H

#include "base/dirs.h"
#include "base/file.h"

#include <rlhf/compute.h>

// The absolute path of backend `name`, which is a path to a .so, or short for kernels_<name>.so in
// the directories of RLHF_PLUGIN_PATH, then in <lib>/kernels. RLHF_E_INVALID if it does not exist
// or other users may change it. [any]
rlhf_status rlhf__compute_find(const struct rlhf__dirs *dirs, const char *name,
                               char out[RLHF__PATH_CAP], struct rlhf__error *err);

// Load the file and read its description. *object is never closed, because worker threads may run
// its code. [main]
rlhf_status rlhf__compute_load(const char *path, void **object, rlhf_kernels *out,
                               struct rlhf__error *err);

// Describes device `gpu` of the backend. A backend without describe() has one device, of which
// nothing is known. Errors: those of describe(). [main]
rlhf_status rlhf__compute_describe(const rlhf_kernels *, const char *path, uint32_t gpu,
                                   rlhf_device_info *out, struct rlhf__error *err);

// Number of NVIDIA display controllers and accelerators below `root` ("/sys/bus/pci/devices"), with
// or without a driver. [any]
int rlhf__nvidia_cards(const char *root);

// True if a GPU may be usable: `root` ("" for the machine itself) has a device file or the driver's
// folder, a card is on the PCI bus, or CUDA_VISIBLE_DEVICES names one. Otherwise CUDA need not be
// loaded. [any]
int rlhf__nvidia_signs(const char *root);

#endif
