// registry.h: the device buffers of one reference backend instance.
//
// In guard mode every buffer is a separate mapping, which is accessible only between open and shut.
// It ends with a guard page that is never accessible. So host code that dereferences device memory
// crashes at once, even on a machine without a GPU, and so does a kernel that runs past a buffer's
// end. This is not an allocator: each buffer costs one system call or malloc.
#ifndef RLHF_KERNELS_REFERENCE_REGISTRY_H
#define RLHF_KERNELS_REFERENCE_REGISTRY_H

#include <rlhf/compute.h>

struct rlhf__ref_buffer {
    char *base;     // 64-byte aligned
    uint64_t bytes; // as requested
    char *map;      // guard mode: the mapping, without its last (guard) page
    uint64_t map_bytes;
    uint32_t opened; // open calls minus shut calls
    uint32_t reserved;
};

struct rlhf__ref_registry {
    struct rlhf__ref_buffer **sorted; // by base
    uint64_t n, cap, bytes;
    uint32_t guard, reserved;
};

// Bytes of physical memory: larger allocations are not attempted.
uint64_t rlhf__ref_machine_bytes(void);

// Add a zeroed buffer. RLHF_E_NOMEM, without effect, if memory runs out or the buffer is larger
// than the machine's memory.
rlhf_status rlhf__ref_registry_add(struct rlhf__ref_registry *g, uint64_t bytes,
                                   struct rlhf__ref_buffer **out);

// Frees the buffer that starts at base. Returns 0 if base is not the start of a buffer.
int rlhf__ref_registry_remove(struct rlhf__ref_registry *g, const char *base);

// The buffer with base <= p <= base + bytes, or NULL. An empty range may be at the end.
struct rlhf__ref_buffer *rlhf__ref_registry_find(const struct rlhf__ref_registry *g, const char *p);

// Make a buffer accessible. It is inaccessible again once a shut has matched every open.
void rlhf__ref_registry_open(const struct rlhf__ref_registry *g, struct rlhf__ref_buffer *b);
void rlhf__ref_registry_shut(const struct rlhf__ref_registry *g, struct rlhf__ref_buffer *b);

// Frees all buffers.
void rlhf__ref_registry_finish(struct rlhf__ref_registry *g);

#endif
