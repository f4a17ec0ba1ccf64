// rlhf/reference.h: the reference backend as a library, to begin a backend of one's own with: all
// of the table is there and right, and functions are replaced one by one, each checked against the
// one it replaces.
//
// Link librlhf-reference.a (rlhf::reference, pkg-config rlhf-reference). What it is not: fast, or
// part of the contract: it may change in any version.
#ifndef RLHF_REFERENCE_H
#define RLHF_REFERENCE_H

#include "compute.h"

#ifdef __cplusplus
extern "C" {
#endif

// The backend's descriptor: create() a table, change its functions, and destroy() it at the end.
// The table is heap memory of its own, so two of them do not know each other. [any]
const rlhf_kernels *rlhf_reference_kernels(void);

// Device memory that a function of the table was given, and where the host finds it.
typedef struct rlhf_reference_use {
    rlhf_dev at;    // NULL: an argument that was left out
    uint64_t bytes; // that the function reads and writes there
    void *host;     // out: the memory, until rlhf_reference_leave; NULL where `at` is
} rlhf_reference_use;

// Begin function `op` of the table, whose ctx this is, on n ranges (at most 16). RLHF_E_INVALID
// when one is no device memory of this table or is too short; then nothing was begun, and the
// status is to be returned. [step]
rlhf_status rlhf_reference_enter(void *ctx, const char *op, rlhf_reference_use *uses, uint32_t n);

// End what rlhf_reference_enter began; returns st. [step]
rlhf_status rlhf_reference_leave(void *ctx, rlhf_status st);

// Record why a function fails, "<op>: <text>", for last_error; returns code. [step]
rlhf_status rlhf_reference_fail(void *ctx, const char *op, rlhf_status code, const char *text);

// A pointer of the backend's own that the table's ctx carries, borrowed; NULL at first. [any]
void rlhf_reference_set_own(void *ctx, void *own);
void *rlhf_reference_own(const void *ctx);

// Let the n-th call from now of a function that allocates or computes fail (1 = the next) with
// RLHF_E_DEVICE; on != 0: all later ones too; 0: none. And how many calls there were since. [step]
void rlhf_reference_fail_at(void *ctx, int64_t n, int32_t on);
int64_t rlhf_reference_calls(const void *ctx);

#ifdef __cplusplus
}
#endif

#endif
