// context.h: the state of an instance of the reference backend, and how a table function enters it.
//
// A table function that accesses device memory first calls rlhf__ref_enter with all device ranges
// that it accesses, and finally rlhf__ref_leave. rlhf__ref_enter reports an error if a range is not
// device memory or does not fit into its buffer. In guard mode, only the buffers of these ranges
// are accessible between the two calls. Not thread-safe; the table is [step].
#ifndef RLHF_KERNELS_REFERENCE_CONTEXT_H
#define RLHF_KERNELS_REFERENCE_CONTEXT_H

#include "registry.h"
#include <rlhf/compute.h>

#define RLHF__REF_MAX_USES (RLHF_ADD_ALL_MAX + 8)

// Convert between a device address and a pointer. No other code of this backend depends on what an
// rlhf_dev is.
static inline void *rlhf__ref_mem(rlhf_dev p) { return p; }
static inline rlhf_dev rlhf__ref_dev(void *p) { return p; }

// A device range that a call accesses. If bytes is 0, the call may access the whole buffer that
// contains p, or nothing if p is NULL.
struct rlhf__ref_use {
    rlhf_dev p;
    uint64_t bytes;
};

struct rlhf__ref {
    struct rlhf__ref_registry buffers;
    uint64_t weight_bytes;
    uint64_t tickets; // number of tickets that mark has issued
    const char *op;   // the running table function
    uint32_t n_open;
    struct rlhf__ref_buffer *open[RLHF__REF_MAX_USES];
    void *own;              // for a backend that embeds this one (rlhf/reference.h)
    int64_t calls, fail_at; // calls since rlhf_reference_fail_at; the call that fails, or 0
    int32_t fail_on;
    uint64_t rounding;    // seed of the rounding errors that norms add (number.h); 0 = none
    double rounding_size; // of these errors: 2^-20, about what products in f32 leave, or a multiple
    const rlhf_host *host; // gets the messages
};

// Passes "<op>: <text>" to the host and returns `code`. r->op must be set.
rlhf_status rlhf__ref_fail(struct rlhf__ref *r, rlhf_status code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

// Begin the table function `op`, which accesses n ranges. If a range is outside of the buffers of
// this instance, or is NULL with bytes > 0, returns RLHF_E_INVALID, and no range stays accessible.
rlhf_status rlhf__ref_enter(struct rlhf__ref *r, const char *op, const struct rlhf__ref_use *uses,
                            uint32_t n);

// Count a call of r->op. Returns RLHF_E_DEVICE if rlhf_reference_fail_at has chosen this call to
// fail. rlhf__ref_enter calls this function, so only functions that allocate need to call it
// themselves.
rlhf_status rlhf__ref_count_call(struct rlhf__ref *r);

// Ends the table function that rlhf__ref_enter began. Returns `st`, so that the caller can return
// this call's result.
rlhf_status rlhf__ref_leave(struct rlhf__ref *r, rlhf_status st);

// The number of bytes from p to the end of its buffer; 0 if p is not in a buffer.
uint64_t rlhf__ref_extent(struct rlhf__ref *r, rlhf_dev p);

// Allocates n * size bytes of scratch memory and sets *out to it. Even for n = 0, *out is not NULL.
// The caller frees *out with free(). Errors: RLHF_E_NOMEM.
rlhf_status rlhf__ref_scratch(struct rlhf__ref *r, uint64_t n, uint64_t size, void *out);

// Returns RLHF_E_INVALID unless dtype is f32 or bf16.
rlhf_status rlhf__ref_check_dtype(struct rlhf__ref *r, const char *op, int32_t dtype);

// Returns RLHF_E_INVALID unless `width` (a width or a count) is at least 1.
rlhf_status rlhf__ref_check_width(struct rlhf__ref *r, const char *op, int32_t width);

// Like rlhf_copy_in, but sets an error text.
rlhf_status rlhf__ref_copy_in(struct rlhf__ref *r, const char *op, void *dst, uint32_t own,
                              const void *src, uint32_t first);

static inline struct rlhf__ref_use rlhf__ref_range(rlhf_dev p, uint64_t n, uint64_t size) {
    return (struct rlhf__ref_use){p, n * size};
}

// The use of an argument that may be NULL.
static inline struct rlhf__ref_use rlhf__ref_optional(rlhf_dev p, uint64_t n, uint64_t size) {
    return (struct rlhf__ref_use){p, p ? n * size : 0};
}

#define RLHF__REF_COUNT(a) ((uint32_t)(sizeof(a) / sizeof(*(a))))

#endif
