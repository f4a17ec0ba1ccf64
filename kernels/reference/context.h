// context.h: what one reference backend instance holds, and how a table function enters it.
//
// Every table function lists the device ranges it was given with rlhf__ref_enter and ends with
// rlhf__ref_leave. That checks the ranges (a host pointer passed as device memory, or a buffer that
// is too short, is an error with a sentence) and, in guard mode, makes exactly those buffers
// accessible for the time between. What it is not: thread-safe; the table is [step].
#ifndef RLHF_KERNELS_REFERENCE_CONTEXT_H
#define RLHF_KERNELS_REFERENCE_CONTEXT_H

#include "registry.h"
#include <rlhf/compute.h>

#define RLHF__REF_MAX_USES 16

// The memory behind a device address, and back: where this backend knows what an rlhf_dev is.
static inline void *rlhf__ref_mem(rlhf_dev p) { return p; }
static inline rlhf_dev rlhf__ref_dev(void *p) { return p; }

// A device range a call works on. bytes 0: anything inside the buffer that holds p, p may be NULL.
struct rlhf__ref_use {
    rlhf_dev p;
    uint64_t bytes;
};

struct rlhf__ref {
    struct rlhf__ref_registry buffers;
    uint64_t weight_bytes;
    uint64_t tickets; // given out by mark
    const char *op;   // table function that runs now
    uint32_t n_open;
    struct rlhf__ref_buffer *open[RLHF__REF_MAX_USES];
    void *own;              // of a backend that begins with this one (rlhf/reference.h)
    int64_t calls, fail_at; // since rlhf_reference_fail_at; which one is to fail, 0 = none
    int32_t fail_on, reserved;
    char error[512];
};

// Formats "<op>: <text>" as the last error and returns code. r->op must be set.
rlhf_status rlhf__ref_fail(struct rlhf__ref *r, rlhf_status code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

// Begins table function `op` on n ranges. RLHF_E_INVALID when one is not inside a buffer of this
// instance, or is NULL with bytes > 0; then nothing was opened.
rlhf_status rlhf__ref_enter(struct rlhf__ref *r, const char *op, const struct rlhf__ref_use *uses,
                            uint32_t n);

// Counts a call of r->op, and fails where it was planned (RLHF_E_DEVICE). rlhf__ref_enter does, so
// this is for functions that allocate.
rlhf_status rlhf__ref_count_call(struct rlhf__ref *r);

// Ends what rlhf__ref_enter began. Returns st, so that a function can end with it.
rlhf_status rlhf__ref_leave(struct rlhf__ref *r, rlhf_status st);

// Bytes from p to the end of its buffer; 0 when p is in none.
uint64_t rlhf__ref_extent(struct rlhf__ref *r, rlhf_dev p);

// malloc(n * size) for scratch, never NULL for n = 0; fails with RLHF_E_NOMEM. free() it.
rlhf_status rlhf__ref_scratch(struct rlhf__ref *r, uint64_t n, uint64_t size, void *out);

// RLHF_E_INVALID unless dtype is f32 or bf16.
rlhf_status rlhf__ref_check_dtype(struct rlhf__ref *r, const char *op, int32_t dtype);

// RLHF_E_INVALID unless a width or count is at least 1.
rlhf_status rlhf__ref_check_width(struct rlhf__ref *r, const char *op, int32_t width);

// rlhf_copy_in with a sentence.
rlhf_status rlhf__ref_copy_in(struct rlhf__ref *r, const char *op, void *dst, uint32_t own,
                              const void *src, uint32_t first);

static inline struct rlhf__ref_use rlhf__ref_range(rlhf_dev p, uint64_t n, uint64_t size) {
    return (struct rlhf__ref_use){p, n * size};
}

// An argument that may be NULL.
static inline struct rlhf__ref_use rlhf__ref_optional(rlhf_dev p, uint64_t n, uint64_t size) {
    return (struct rlhf__ref_use){p, p ? n * size : 0};
}

#define RLHF__REF_COUNT(a) ((uint32_t)(sizeof(a) / sizeof(*(a))))

#endif
