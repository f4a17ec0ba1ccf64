// compute_load.h: finds the shared object of a compute backend by name, loads it and describes its
// devices, without creating a table. rlhf__compute_open starts with it.
#ifndef RLHF_HOST_COMPUTE_LOAD_H
#define RLHF_HOST_COMPUTE_LOAD_H

#include "base/file.h"
#include "model/device_info.h"
#include "plugin/services.h"

// A backend is given as NAME[:key=value,...]. NAME is a path to a .so, or short for
// kernels_<NAME>.so in the directories of RLHF_PLUGIN_PATH, then in <lib>/kernels.

// The absolute path of the backend's file. RLHF_E_INVALID if it does not exist or other users may
// change it. [any]
rlhf_status rlhf__compute_find(const struct rlhf__dirs *dirs, const char *backend,
                               char out[RLHF__PATH_CAP], struct rlhf__error *err);

// A loaded backend: its plugin and an instance. The struct must not move in memory.
struct rlhf__kernels {
    struct rlhf__plugins *plugins; // owned, of this file alone; files stay mapped
    const struct rlhf__plugin *plugin;
    struct rlhf__services services;
    json_t *options; // given with the name; an object
    struct rlhf__instance *instance;
};

// Find the file, load it, and create the instance with the options of `backend`. log receives the
// backend's lines; NULL = none. *out needs finish also after a failure. Errors: those of
// rlhf__compute_find, of loading a plugin, of its options and of create(). [main]
rlhf_status rlhf__kernels_load(const struct rlhf__dirs *dirs, const char *backend,
                               struct rlhf__log *log, struct rlhf__kernels *out,
                               struct rlhf__error *err);
void rlhf__kernels_finish(struct rlhf__kernels *); // accepts a zeroed one [main]

// Describes device `gpu` of the backend. A backend without describe() has one device, of which
// nothing is known. *out needs finish. Errors: those of describe(), RLHF_E_INVALID if its answer is
// not as rlhf_kernels_ops says. [main]
rlhf_status rlhf__kernels_describe(const struct rlhf__kernels *, uint32_t gpu,
                                   struct rlhf__device_info *out, struct rlhf__error *err);

// Number of NVIDIA display controllers and accelerators below `root` ("/sys/bus/pci/devices"), with
// or without a driver. [any]
int rlhf__nvidia_cards(const char *root);

// True if a GPU may be usable: `root` ("" for the machine itself) has a device file or the driver's
// folder, a card is on the PCI bus, or CUDA_VISIBLE_DEVICES names one. Otherwise CUDA need not be
// loaded. [any]
int rlhf__nvidia_signs(const char *root);

#endif
