// compute_load.h: finds a compute backend's shared object by name, loads it and describes its
// devices, without creating a table. rlhf__compute_open begins with these calls.
#ifndef RLHF_HOST_MODEL_COMPUTE_LOAD_H
#define RLHF_HOST_MODEL_COMPUTE_LOAD_H

#include "base/file.h"
#include "model/device_info.h"
#include "plugin/services.h"

// A backend is given as NAME[:key=value,...]. NAME is the path of a .so, or a short name. The short
// name means kernels_<NAME>.so in the directories of RLHF_PLUGIN_PATH, then in <lib>/kernels.

// Finds the absolute path of the backend's file. Errors: RLHF_E_INVALID if the file does not exist
// or other users can change it. [any]
rlhf_status rlhf__compute_find(const struct rlhf__dirs *dirs, const char *backend,
                               char out[RLHF__PATH_CAP], struct rlhf__error *err);

// A loaded backend: its plugin and an instance. The struct must not move in memory.
struct rlhf__kernels {
    struct rlhf__plugins *plugins; // owned; has only this file, which stays mapped
    const struct rlhf__plugin *plugin;
    struct rlhf__services services;
    json_t *options; // the options given with the name; an object
    struct rlhf__instance *instance;
};

// Find and load the file, and create an instance with the options in `backend`. `log` receives the
// backend's log lines; it may be NULL. Call rlhf__kernels_finish on *out even after a failure.
// Errors: those of rlhf__compute_find, of loading a plugin, of its options and of create(). [main]
rlhf_status rlhf__kernels_load(const struct rlhf__dirs *dirs, const char *backend,
                               struct rlhf__log *log, struct rlhf__kernels *out,
                               struct rlhf__error *err);
void rlhf__kernels_finish(struct rlhf__kernels *); // accepts a zeroed struct [main]

// Describes the backend's device with the index `gpu`. A backend without describe() has one device
// about which nothing is known. Call rlhf__device_info_finish on *out. Errors: those of describe();
// RLHF_E_INVALID if the answer does not have the form described at rlhf_kernels_ops. [main]
rlhf_status rlhf__kernels_describe(const struct rlhf__kernels *, uint32_t gpu,
                                   struct rlhf__device_info *out, struct rlhf__error *err);

// Returns the number of NVIDIA display controllers and accelerators below `root`
// ("/sys/bus/pci/devices"), with or without a driver. [any]
int rlhf__nvidia_cards(const char *root);

// Returns 1 if there is a sign of a GPU, so that CUDA has to be loaded. A sign is a device file or
// the driver's folder below `root`, a card on the PCI bus, or a card that CUDA_VISIBLE_DEVICES
// names. `root` is "" except in tests. [any]
int rlhf__nvidia_signs(const char *root);

#endif
