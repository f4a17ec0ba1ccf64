// compute_load.h: the shared object of a compute backend, found by name and read, before any table
// is made: what rlhf__compute_open begins with, and all that looking at devices needs.
#ifndef RLHF_HOST_COMPUTE_LOAD_H
#define RLHF_HOST_COMPUTE_LOAD_H

#include "base/dirs.h"
#include "base/file.h"

#include <rlhf/compute.h>

// The file of backend `name`, absolute: a path to a .so, or kernels_<name>.so in the directories of
// RLHF_PLUGIN_PATH, then <lib>/kernels. RLHF_E_INVALID when there is
// none or others than the user may change it. [any]
rlhf_status rlhf__compute_find(const struct rlhf__dirs *dirs, const char *name,
                               char out[RLHF__PATH_CAP], struct rlhf__error *err);

// Open the file and read what it describes itself with. *object is never closed: worker threads may
// live in it. [main]
rlhf_status rlhf__compute_load(const char *path, void **object, rlhf_kernels *out,
                               struct rlhf__error *err);

// Device `gpu` of the backend; a backend that has no describe() has one device, of which nothing is
// known. Errors: what describe() says. [main]
rlhf_status rlhf__compute_describe(const rlhf_kernels *, const char *path, uint32_t gpu,
                                   rlhf_device_info *out, struct rlhf__error *err);

// How many PCI devices below `root` ("/sys/bus/pci/devices") are display controllers or
// accelerators of NVIDIA, with a driver or without. [any]
int rlhf__nvidia_cards(const char *root);

// True when a GPU may be usable: a device file or the driver's folder is below `root` ("" for the
// machine itself), a card is on its PCI bus, or CUDA_VISIBLE_DEVICES names one. Without any of
// these nothing of CUDA needs to be loaded. [any]
int rlhf__nvidia_signs(const char *root);

#endif
