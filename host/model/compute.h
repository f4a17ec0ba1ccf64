// compute.h: a compute backend (kernels_*.so) opened by name, and its table.
//
// It finds and checks the shared object and creates one table. It does not touch device memory; for
// that use the table's own functions.
#ifndef RLHF_HOST_COMPUTE_H
#define RLHF_HOST_COMPUTE_H

#include "base/dirs.h"
#include "base/file.h"

#include <rlhf/compute.h>

// Memory of a device of its own, in bytes; zeros: it computes in the host's memory.
struct rlhf__room {
    uint64_t left, total; // left: for us, when the backend was opened
};

struct rlhf__compute {
    void *object;              // dlopen handle, never closed (worker threads may live in it)
    rlhf_kernels kernels;      // what the object describes itself with
    rlhf_compute *made;        // by its create(); for its destroy()
    rlhf_compute read;         // made, as far as this host knows it
    rlhf_compute *table;       // &read: what everybody uses
    char path[RLHF__PATH_CAP]; // resolved path of the shared object
    char sha256[65];           // of the file
    char reserved[3];
    int32_t passed_level;   // log level that passed_over is worth
    char passed_over[1024]; // "auto" and no GPU: why; else ""
    struct rlhf__room room;
};

// What to open. Zero in every field but `backend` and `dirs` is a valid default.
struct rlhf__compute_spec {
    const struct rlhf__dirs *dirs; // kernels are in <lib>/kernels
    const char *backend;           // "auto", "cpu", "cuda", "reference", or a path to a .so
    uint32_t threads;              // 0 = all cores
    uint32_t guard;                // reference, cuda
    uint32_t gpu;                  // index of the card
    uint32_t reserved;
    uint64_t workspace_bytes; // 0 = the backend's own default
};

// Open kernels_<backend>.so and create its table; "auto": the GPU where the backend, a driver and a
// card are there that can be used, else the CPU, and passed_over says why. E_INVALID names the file
// when it is missing, is no backend, was built for another contract version or may be changed by
// others, and a card that is not there; E_NOMEM, E_DEVICE from the backend. [main]
rlhf_status rlhf__compute_open(const struct rlhf__compute_spec *, struct rlhf__compute **out,
                               struct rlhf__error *err);

// NULL allowed. Every buffer and weight of the table must have been released. [main]
void rlhf__compute_close(struct rlhf__compute *);

// RLHF_E_UNSUPPORTED, with a sentence, if the backend does not implement one of the sampling rules.
// [any]
rlhf_status rlhf__compute_draws(const rlhf_compute *, const rlhf_dist *, struct rlhf__error *);

// Rows decoded at once, and tokens of a microbatch: what was configured, or where that is 0 what
// suits the device: its hint, else 64 and 4096. [any]
uint32_t rlhf__compute_slots(const rlhf_compute *, int64_t configured);
int64_t rlhf__compute_microbatch(const rlhf_compute *, int64_t configured);

// Bytes of the LM head's workspace: what was configured in MiB, or where that is 0 what a device of
// its own memory takes by default: 8 GiB of 40 and more. 0: see the backend's own default. [any]
uint64_t rlhf__compute_workspace(const struct rlhf__compute *, int64_t configured_mib);

// RLHF_F32 or RLHF_BF16 for a configured "auto", "f32" or "bf16": auto is bf16 where the table says
// that it runs at full speed. [any]
int32_t rlhf__compute_dtype(const rlhf_compute *, const char *configured);

// Turn a failed table call into a host error: "<what>: <the table's own text>". Returns st. [any]
rlhf_status rlhf__compute_fail(const rlhf_compute *, rlhf_status st, const char *what,
                               struct rlhf__error *err);

// Measured speed of a large product in `dtype`, in floating-point operations a second; about 50 ms
// of work on a fast backend. 0 when it cannot be measured. Used only as the base of
// perf/mfu. [step]
double rlhf__compute_peak(const rlhf_compute *, int32_t dtype);
// Bytes of the host's memory that it takes while it measures. [any]
uint64_t rlhf__compute_peak_bytes(const rlhf_compute *, int32_t dtype);

#endif
