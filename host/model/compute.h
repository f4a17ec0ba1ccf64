// compute.h: finds a compute backend (kernels_*.so) by name, opens it and creates its table.
//
// Device memory is accessed only through the table's functions.
#ifndef RLHF_HOST_MODEL_COMPUTE_H
#define RLHF_HOST_MODEL_COMPUTE_H

#include "model/compute_load.h"

// Memory of a device or of the machine, in bytes. Both members are 0 if the memory is not known, or
// if the device uses the machine's memory.
struct rlhf__free_memory {
    uint64_t left, total; // left: available to this process
};

struct rlhf__compute {
    struct rlhf__kernels kernels;
    rlhf_compute *made;                     // made by the backend's open(), for its close()
    rlhf_compute read;                      // a copy of *made with the members that this host knows
    rlhf_compute *table;                    // &read: the table to use
    char path[RLHF__PATH_CAP];              // resolved path of the shared object
    char sha256[65];                        // of the shared object
    char arithmetic[2][16];                 // names for f32 and bf16; "": no promise of equal bits
    uint32_t gpu;                           // index of the card; 0 for a CPU
    int32_t passed_level;                   // log level for passed_over
    char passed_over[1024];                 // why "auto" chose the CPU; else ""
    struct rlhf__free_memory device_memory; // measured when the backend was opened
};

// What to open. All fields except `backend` and `dirs` may be 0.
struct rlhf__compute_spec {
    const struct rlhf__dirs *dirs; // kernels are in <lib>/kernels
    const char *backend;           // "auto", or a backend as in compute_load.h
    uint32_t threads;              // 0 = all cores
    uint32_t guard;                // for the backends reference and cuda
    uint32_t gpu;                  // index of the card
    uint64_t workspace_bytes;      // 0 = the backend's own default
    const char *arithmetic;        // name of the arithmetic to use; NULL = the fastest
    struct rlhf__log *log;         // gets the backend's log lines; NULL = silent
};

// Open kernels_<backend>.so and create its table. "auto" means the GPU if the CUDA backend is built
// and finds a driver and a usable card. Otherwise it means the CPU, and `passed_over` has the
// reason. Errors:
// - RLHF_E_INVALID, with the name: the file is missing, is not a backend, was built for another
//   contract version, or can be changed by other users; or the card does not exist.
// - RLHF_E_NOMEM and RLHF_E_DEVICE from the backend. [main]
rlhf_status rlhf__compute_open(const struct rlhf__compute_spec *, struct rlhf__compute **out,
                               struct rlhf__error *err);

// Close the backend. All buffers and weights of its table must have been released. NULL allowed.
// [main]
void rlhf__compute_close(struct rlhf__compute *);

// Returns RLHF_E_UNSUPPORTED, with a message, if the backend does not implement one of the sampling
// rules. [any]
rlhf_status rlhf__compute_draws(const rlhf_compute *, const rlhf_dist *, struct rlhf__error *);

// Returns the name of the backend's arithmetic for matrix products in this dtype, or "" if it has
// no name. Two backends whose arithmetic has the same name give bit-identical products. [any]
const char *rlhf__compute_arithmetic(const struct rlhf__compute *, int32_t dtype);

// Return the number of rows decoded at once and the number of tokens in a microbatch. If the
// configured value is 0, the device's hint is used. Without a hint, the results are 64 rows and
// 4096 tokens, or fewer tokens if the vocabulary is larger than 65,536: as many as have logits of
// 384 MiB, so that the CPU backend can keep them for the backward pass. `vocab` is 0 for a model
// without an LM head. [any]
uint32_t rlhf__compute_slots(const rlhf_compute *, int64_t configured);
int64_t rlhf__compute_microbatch(const rlhf_compute *, int64_t configured, int64_t vocab);

// Returns RLHF_F32 or RLHF_BF16 for a configured "auto", "f32" or "bf16". "auto" is bf16 if the
// table lists bf16 as a dtype with full speed. [any]
int32_t rlhf__compute_dtype(const rlhf_compute *, const char *configured);

// Writes the message of the backend's last failure into out[cap]. `st` is the status of the call
// that failed. If the last failure had another status, writes "". Returns `out`. [any]
const char *rlhf__compute_said(const struct rlhf__compute *, rlhf_status st, char *out, size_t cap);

// Reports a failed call of a compute table as a host error: "<what>: <the backend's own message>".
// Returns st. `kernels` is the instance of the backend. If `kernels` is NULL or the backend gave no
// message, the text of the status is used. [any]
rlhf_status rlhf__compute_fail(const struct rlhf__instance *kernels, rlhf_status st,
                               const char *what, struct rlhf__error *err);

#endif
