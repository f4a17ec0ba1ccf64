// registry.h: the device buffers of one instance of the reference backend.
//
// In guard mode every buffer is a separate mapping, which is accessible only while it is opened.
// After each buffer comes a guard page, which is never accessible. So two kinds of errors crash
// immediately, even on a machine without a GPU: host code that dereferences device memory, and a
// kernel that runs past the end of a buffer. This is not an allocator: each buffer costs one system
// call or malloc.
#ifndef RLHF_KERNELS_REFERENCE_REGISTRY_H
#define RLHF_KERNELS_REFERENCE_REGISTRY_H

#include <rlhf/compute.h>

struct rlhf__ref_buffer {
    char *base;     // 64-byte aligned
    uint64_t bytes; // size as requested
    char *map;      // guard mode: the mapping, without the guard page at its end
    uint64_t map_bytes;
    uint32_t opened; // number of open calls minus number of shut calls
};

struct rlhf__ref_registry {
    struct rlhf__ref_buffer **sorted; // sorted by base
    uint64_t n, cap, bytes;
    uint32_t guard;
};

// The size of physical memory in bytes. Larger allocations are refused.
uint64_t rlhf__ref_machine_bytes(void);

// Add a zeroed buffer. If memory runs out or the buffer is larger than the machine's memory,
// returns RLHF_E_NOMEM and changes nothing.
rlhf_status rlhf__ref_registry_add(struct rlhf__ref_registry *g, uint64_t bytes,
                                   struct rlhf__ref_buffer **out);

// Frees the buffer that starts at base. Returns 0 if base is not the start of a buffer.
int rlhf__ref_registry_remove(struct rlhf__ref_registry *g, const char *base);

// Returns the buffer with base <= p <= base + bytes, or NULL. p may be at the end, because a range
// may be empty.
struct rlhf__ref_buffer *rlhf__ref_registry_find(const struct rlhf__ref_registry *g, const char *p);

// Make a buffer accessible. It becomes inaccessible again when rlhf__ref_registry_shut has been
// called as often as this function.
void rlhf__ref_registry_open(const struct rlhf__ref_registry *g, struct rlhf__ref_buffer *b);
void rlhf__ref_registry_shut(const struct rlhf__ref_registry *g, struct rlhf__ref_buffer *b);

// Frees all buffers.
void rlhf__ref_registry_finish(struct rlhf__ref_registry *g);

#endif
