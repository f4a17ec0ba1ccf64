// split.h: how the work of the row kernels is divided among threads.
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
    return d >= RLHF__PIECE ? 1 : RLHF__PIECE / (d ? d : 1);
}

// Calls `body` for each i from 0 to n - 1. Each thread gets a range of consecutive i. A single
// thread does not use OpenMP, because libgomp allocates and frees a team for each parallel region
// of one thread, which costs about 850 instructions.
static inline void rlhf__split_run(int threads, int64_t n, void (*body)(const void *job, int64_t i),
                                   const void *job) {
    if (threads <= 1) {
        for (int64_t i = 0; i < n; i++)
            body(job, i);
        return;
    }
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < n; i++)
        body(job, i);
}

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
