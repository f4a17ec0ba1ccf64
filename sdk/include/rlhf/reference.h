// rlhf/reference.h: the reference backend as a library, a starting point for a new backend. The
// reference's table is complete and correct; replace its functions one by one, and check each new
// function against the original.
//
// Link librlhf-reference.a (rlhf::reference, pkg-config rlhf-reference). The reference is slow. It
// is not part of the contract, so it may change in any version.
#ifndef RLHF_REFERENCE_H
#define RLHF_REFERENCE_H

#include "compute.h"

#ifdef __cplusplus
extern "C" {
#endif

// Opens a table of the reference backend. You may replace the table's functions. Close the table at
// the end. `host` receives the table's messages and must outlive the table. Each table is a
// separate heap allocation and independent of other tables. [main]
rlhf_status rlhf_reference_open(const rlhf_host *host, const rlhf_kernels_open *,
                                rlhf_compute **out);
void rlhf_reference_close(rlhf_compute *); // NULL allowed [main]

// A range of device memory that a table function received, and its address in host memory.
typedef struct rlhf_reference_use {
    rlhf_dev at;    // NULL: an omitted argument
    uint64_t bytes; // bytes that the function accesses
    void *host;     // out: the memory, until rlhf_reference_leave; NULL if `at` is NULL
} rlhf_reference_use;

// Call this at the start of the table's function `op`, with the table's ctx and the n ranges (at
// most 16) that `op` uses. If a range is too short or is not device memory of this table, returns
// RLHF_E_INVALID; `op` must then do nothing and return that status. [step]
rlhf_status rlhf_reference_enter(void *ctx, const char *op, rlhf_reference_use *uses, uint32_t n);

// Ends the function that rlhf_reference_enter began, and returns `st`. [step]
rlhf_status rlhf_reference_leave(void *ctx, rlhf_status st);

// Sends the message "<op>: <text>" to fail() of the table's host, and returns `code`. [step]
rlhf_status rlhf_reference_fail(void *ctx, const char *op, rlhf_status code, const char *text);

// A borrowed pointer to the new backend's own data, kept in ctx; initially NULL. [any]
void rlhf_reference_set_own(void *ctx, void *own);
void *rlhf_reference_own(const void *ctx);

// After rlhf_reference_fail_at, the table counts the calls of its functions that allocate or
// compute. The n-th of these calls (1 = the next) fails with RLHF_E_DEVICE. If `on` is not 0, all
// later calls fail too. If n is 0, no call fails. rlhf_reference_calls returns the number of calls
// counted after the last rlhf_reference_fail_at. [step]
void rlhf_reference_fail_at(void *ctx, int64_t n, int32_t on);
int64_t rlhf_reference_calls(const void *ctx);

#ifdef __cplusplus
}
#endif

#endif
