// memory.cu: allocations of the CUDA backend, counted, its workspaces, and moves to and from the
// host.
#include "table.h"

#include <new>

struct rlhf__cuda_block {
    struct rlhf__cuda_block *prev, *next;
    uint64_t bytes;
    void *ptr;
};

rlhf_status rlhf__cuda_mem_alloc(struct rlhf__cuda *cu, uint64_t bytes, void **out) {
    *out = NULL;
    rlhf__cuda_block *b = new (std::nothrow) rlhf__cuda_block();
    if (!b) return rlhf__cuda_fail(cu, RLHF_E_NOMEM, "out of host memory for a block");
    const cudaError_t e = cudaMalloc(&b->ptr, bytes ? bytes : 1);
    if (e != cudaSuccess) {
        delete b;
        if (e != cudaErrorMemoryAllocation) return rlhf__cuda_check(cu, "cudaMalloc", e);
        cudaGetLastError(); // an allocation that failed harms nothing later
        size_t left = 0, total = 0;
        cudaMemGetInfo(&left, &total);
        return rlhf__cuda_fail(cu, RLHF_E_NOMEM,
                               "out of device memory: %llu bytes asked for, %llu in use here, %llu "
                               "free of %llu",
                               (unsigned long long)bytes, (unsigned long long)cu->bytes,
                               (unsigned long long)left, (unsigned long long)total);
    }
    b->bytes = bytes;
    b->next = cu->blocks;
    if (b->next) b->next->prev = b;
    cu->blocks = b;
    cu->bytes += bytes;
    *out = b->ptr;
    return RLHF_OK;
}

// The block that begins at ptr, or NULL.
static rlhf__cuda_block *block_of(const struct rlhf__cuda *cu, const void *ptr) {
    rlhf__cuda_block *b = cu->blocks;
    while (b && b->ptr != ptr)
        b = b->next;
    return b;
}

void rlhf__cuda_mem_free(struct rlhf__cuda *cu, void *ptr) {
    rlhf__cuda_block *b = ptr ? block_of(cu, ptr) : NULL;
    if (!b) return;
    rlhf__cuda_wrote(cu, b->ptr, b->bytes);
    if (b->prev)
        b->prev->next = b->next;
    else
        cu->blocks = b->next;
    if (b->next) b->next->prev = b->prev;
    cu->bytes -= b->bytes;
    cudaFree(b->ptr);
    delete b;
}

void rlhf__cuda_mem_free_all(struct rlhf__cuda *cu) {
    while (cu->blocks)
        rlhf__cuda_mem_free(cu, cu->blocks->ptr);
}

uint64_t rlhf__cuda_extent(const struct rlhf__cuda *cu, const void *p) {
    for (const rlhf__cuda_block *b = cu->blocks; b; b = b->next) {
        const uint64_t at = (uint64_t)((uintptr_t)p - (uintptr_t)b->ptr);
        if (at < b->bytes) return b->bytes - at;
    }
    return 0;
}

rlhf_status rlhf__cuda_workspace(struct rlhf__cuda *cu, enum rlhf__cuda_ws which, uint64_t bytes,
                                 void **out) {
    struct rlhf__cuda_buffer *w = &cu->ws[which];
    if (w->bytes < bytes) {
        rlhf__cuda_mem_free(cu, w->ptr);
        w->ptr = NULL;
        w->bytes = 0;
        RLHF_TRY(rlhf__cuda_mem_alloc(cu, bytes, &w->ptr));
        w->bytes = bytes;
    }
    *out = w->ptr;
    return RLHF_OK;
}

// ---- the table's functions ----

static rlhf_status alloc(void *ctx, uint64_t bytes, rlhf_dev *out) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    void *p = NULL;
    *out = NULL;
    RLHF_TRY(rlhf__cuda_mem_alloc(cu, bytes, &p));
    rlhf_status st =
        bytes ? rlhf__cuda_check(cu, "cudaMemset", cudaMemsetAsync(p, 0, bytes, cu->stream))
              : RLHF_OK;
    if (st < 0) {
        rlhf__cuda_mem_free(cu, p);
        return st;
    }
    *out = rlhf__cuda_dev(p);
    return RLHF_OK;
}

static void release(void *ctx, rlhf_dev p) {
    rlhf__cuda_mem_free((struct rlhf__cuda *)ctx, rlhf__cuda_mem(p));
}

static uint64_t bytes_in_use(void *ctx) { return ((struct rlhf__cuda *)ctx)->bytes; }

static rlhf_status upload(void *ctx, rlhf_dev dst, const void *host_src, uint64_t bytes) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    if (!bytes) return RLHF_OK;
    rlhf__cuda_wrote(cu, rlhf__cuda_mem(dst), bytes);
    return rlhf__cuda_check(
        cu, "upload",
        cudaMemcpyAsync(rlhf__cuda_mem(dst), host_src, bytes, cudaMemcpyHostToDevice, cu->stream));
}

static rlhf_status download(void *ctx, void *host_dst, rlhf_dev src, uint64_t bytes) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    if (bytes)
        RLHF_TRY(rlhf__cuda_check(cu, "download",
                                  cudaMemcpyAsync(host_dst, rlhf__cuda_mem(src), bytes,
                                                  cudaMemcpyDeviceToHost, cu->stream)));
    return rlhf__cuda_wait(cu);
}

static rlhf_status wait_for_all(void *ctx) { return rlhf__cuda_wait((struct rlhf__cuda *)ctx); }

void rlhf__cuda_fill_memory(rlhf_compute *t) {
    t->alloc = alloc;
    t->release = release;
    t->bytes_in_use = bytes_in_use;
    t->upload = upload;
    t->download = download;
    t->sync = wait_for_all;
}
