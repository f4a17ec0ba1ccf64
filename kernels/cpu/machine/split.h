// split.h: how loops are divided among the threads.
//
// The pieces depend only on the size of the work. So a result has the same bits whatever the number
// of threads is, and whichever thread computes a piece.
#ifndef RLHF_CPU_MACHINE_SPLIT_H
#define RLHF_CPU_MACHINE_SPLIT_H

#include "context.h"

#include <stdint.h>

// Elements in a piece of an elementwise kernel: 16 KiB of f32. With larger pieces, small operations
// are divided unequally among the threads.
#define RLHF__PIECE 4096u

// Returns how many threads should work on `elements` elements. Waking the other threads costs about
// as much as processing 32 Ki elements.
static inline int rlhf__split_threads(const struct rlhf__cpu *cpu, uint64_t elements) {
    return elements < 32768u ? 1 : cpu->threads;
}

static inline uint64_t rlhf__split_count(uint64_t n, uint64_t piece) {
    return n / piece + (n % piece != 0);
}

// The length of piece i of n elements.
static inline size_t rlhf__split_len(uint64_t n, uint64_t piece, uint64_t i) {
    uint64_t left = n - i * piece;
    return (size_t)(left < piece ? left : piece);
}

// The number of rows in a piece, such that a piece has about RLHF__PIECE elements.
static inline uint64_t rlhf__split_rows(uint64_t d) {
    if (d == 0) return RLHF__PIECE;
    return d < RLHF__PIECE ? RLHF__PIECE / d : 1;
}

// Calls `body` for each i from 0 to n - 1. Each of up to `threads` threads gets a range of
// consecutive i. Ranges differ by at most one i in length, and the longer ones come first. `body`
// must not divide a loop. [step]
void rlhf__split_run(const struct rlhf__cpu *cpu, int threads, int64_t n,
                     void (*body)(const void *job, int64_t i), const void *job);

// The body of a loop that uses scratch memory. Calls that run at the same time have different
// numbers `own`, from 0 to threads - 1.
typedef void rlhf__split_body(const void *job, int64_t i, int own);

// Like rlhf__split_run, for such a body.
void rlhf__split_run_own(const struct rlhf__cpu *cpu, int threads, int64_t n,
                         rlhf__split_body *body, const void *job);

// Like rlhf__split_run_own, but a thread gets `chunk` consecutive i at a time, and more when it has
// finished them. For loops whose bodies take different times.
void rlhf__split_deal(const struct rlhf__cpu *cpu, int threads, int64_t n, int64_t chunk,
                      rlhf__split_body *body, const void *job);

// Returns RLHF_E_INVALID, with the operation in the message, unless dtype is an activation dtype.
static inline rlhf_status rlhf__cpu_check_dtype(struct rlhf__cpu *cpu, const char *op,
                                                int32_t dtype) {
    if (dtype == RLHF_F32 || dtype == RLHF_BF16) return RLHF_OK;
    return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: dtype is %d, allowed are f32 and bf16", op,
                          dtype);
}

static inline rlhf_status rlhf__cpu_check_d(struct rlhf__cpu *cpu, const char *op, int32_t d) {
    if (d > 0) return RLHF_OK;
    return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: d is %d, must be positive", op, d);
}

#endif
