// memory.cu: allocates and counts the device memory of the CUDA backend, and manages its
// workspaces. Memory comes from the driver's pool in the order of the stream, so allocations and
// releases do not wait.
#include "table.h"

#include <stdlib.h>

// Freed memory stays in the pool until memory runs out.
rlhf_status rlhf__cuda_memory_open(struct rlhf__cuda *cu) {
    int has = 0;
    RLHF_TRY(
        rlhf__cuda_check(cu, "asking for memory pools",
                         cudaDeviceGetAttribute(&has, cudaDevAttrMemoryPoolsSupported, cu->gpu)));
    if (!has) return RLHF_OK; // on some virtual machines; then cudaMalloc is used
    RLHF_TRY(rlhf__cuda_check(cu, "cudaDeviceGetDefaultMemPool",
                              cudaDeviceGetDefaultMemPool(&cu->pool, cu->gpu)));
    uint64_t keep = UINT64_MAX;
    return rlhf__cuda_check(
        cu, "cudaMemPoolSetAttribute",
        cudaMemPoolSetAttribute(cu->pool, cudaMemPoolAttrReleaseThreshold, &keep));
}

cudaError_t rlhf__cuda_memory_spare(struct rlhf__cuda *cu) {
    cudaGetLastError();
    const cudaError_t e = cudaStreamSynchronize(cu->stream);
    return e == cudaSuccess && cu->pool ? cudaMemPoolTrimTo(cu->pool, 0) : e;
}

static cudaError_t take(struct rlhf__cuda *cu, uint64_t bytes, void **out) {
    const size_t n = bytes ? bytes : 1;
    if (!cu->pool) return cudaMalloc(out, n);
    cudaError_t e = cudaMallocAsync(out, n, cu->stream);
    if (e != cudaErrorMemoryAllocation) return e;
    e = rlhf__cuda_memory_spare(cu);
    return e == cudaSuccess ? cudaMallocAsync(out, n, cu->stream) : e;
}

static rlhf_status out_of_memory(struct rlhf__cuda *cu, uint64_t bytes) {
    const double mib = 1.0 / (1 << 20);
    size_t left = 0, total = 0;
    cudaGetLastError(); // clears the error of the failed allocation
    if (cudaMemGetInfo(&left, &total) != cudaSuccess) cudaGetLastError();
    return rlhf__cuda_fail(
        cu, RLHF_E_NOMEM,
        "out of device memory: %llu bytes (%.1f MiB) asked for, %.1f MiB in use here, %.1f MiB "
        "free of %.1f",
        (unsigned long long)bytes, (double)bytes * mib, (double)cu->bytes * mib, (double)left * mib,
        (double)total * mib);
}

rlhf_status rlhf__cuda_mem_alloc(struct rlhf__cuda *cu, uint64_t bytes, void **out) {
    *out = NULL;
    RLHF_TRY(rlhf__cuda_not_capturing(cu, "an allocation"));
    void *p = NULL;
    const cudaError_t e = take(cu, bytes, &p);
    if (e == cudaErrorMemoryAllocation) return out_of_memory(cu, bytes);
    RLHF_TRY(rlhf__cuda_check(cu, "allocating device memory", e));
    if (!rlhf__cuda_blocks_add(&cu->device, p, bytes, ++cu->serial)) {
        if (cu->pool)
            cudaFreeAsync(p, cu->stream);
        else
            cudaFree(p);
        return rlhf__cuda_fail(cu, RLHF_E_NOMEM, "out of host memory for a block");
    }
    cu->bytes += bytes;
    *out = p;
    return RLHF_OK;
}

void rlhf__cuda_mem_free(struct rlhf__cuda *cu, void *ptr) {
    struct rlhf__cuda_block *b = ptr ? rlhf__cuda_blocks_find(&cu->device, ptr) : NULL;
    if (!b || b->at != ptr) return;
    rlhf__cuda_wrote(cu, b->at, b->bytes);
    rlhf__cuda_recordings_drop(cu, b->serial);
    cu->bytes -= b->bytes;
    rlhf__cuda_blocks_remove(&cu->device, b);
    if (cu->pool)
        cudaFreeAsync(ptr, cu->stream);
    else
        cudaFree(ptr);
}

void rlhf__cuda_mem_free_all(struct rlhf__cuda *cu) {
    while (cu->device.n)
        rlhf__cuda_mem_free(cu, cu->device.all[cu->device.n - 1].at);
    free(cu->device.all);
    cu->device = {};
    if (!cu->pool) return;
    cudaStreamSynchronize(cu->stream);
    cudaMemPoolTrimTo(cu->pool, 0);
}

uint64_t rlhf__cuda_extent(const struct rlhf__cuda *cu, const void *p) {
    const struct rlhf__cuda_block *b = rlhf__cuda_blocks_find(&cu->device, p);
    return b ? b->bytes - (uint64_t)((const char *)p - b->at) : 0;
}

// Workspaces grow by at least a quarter, so that slowly growing batches do not need a new
// allocation every time. Workspaces of logits grow only to the requested size, because a quarter of
// them would be a large part of the card's memory. In guard mode, each workspace has exactly the
// requested size, so that writes past its end are detected.
static uint64_t roomy(const struct rlhf__cuda *cu, enum rlhf__cuda_ws which) {
    const uint64_t had = cu->ws[which].bytes;
    const int logits = which == RLHF__CUDA_WS_LOGITS || which == RLHF__CUDA_WS_REF ||
                       which == RLHF__CUDA_WS_DLOGITS;
    return logits || cu->guard ? 0 : had + had / 4;
}

void rlhf__cuda_workspace_drop(struct rlhf__cuda *cu, enum rlhf__cuda_ws which) {
    rlhf__cuda_mem_free(cu, cu->ws[which].ptr);
    cu->ws[which] = {};
}

rlhf_status rlhf__cuda_workspace(struct rlhf__cuda *cu, enum rlhf__cuda_ws which, uint64_t bytes,
                                 void **out) {
    struct rlhf__cuda_buffer *w = &cu->ws[which];
    if (cu->guard ? w->bytes != bytes : w->bytes < bytes) {
        const uint64_t more = roomy(cu, which);
        const rlhf_status before = cu->recordings.status;
        RLHF_TRY(rlhf__cuda_not_capturing(cu, "a workspace that grows"));
        rlhf__cuda_workspace_drop(cu, which);
        rlhf_status st = RLHF_E_NOMEM;
        if (more > bytes) st = rlhf__cuda_mem_alloc(cu, more, &w->ptr);
        w->bytes = more;
        if (st < 0) {
            cu->recordings.status = before; // the size that is really needed may fit
            w->bytes = 0;
            RLHF_TRY(rlhf__cuda_mem_alloc(cu, bytes, &w->ptr));
            w->bytes = bytes;
        }
    }
    *out = w->ptr;
    return RLHF_OK;
}

// ---- the table's functions ----

static rlhf_status alloc(void *ctx, uint64_t bytes, rlhf_dev *out) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    void *p = NULL;
    *out = NULL;
    RLHF_TRY(rlhf__cuda_not_recording(cu, "alloc"));
    RLHF_TRY(rlhf__cuda_mem_alloc(cu, bytes, &p));
    rlhf_status st = bytes ? rlhf__cuda_check(cu, "zeroing device memory",
                                              cudaMemsetAsync(p, 0, bytes, cu->stream))
                           : RLHF_OK;
    if (st < 0) {
        rlhf__cuda_mem_free(cu, p);
        return st;
    }
    *out = rlhf__cuda_dev(p);
    return RLHF_OK;
}

static void release(void *ctx, rlhf_dev p) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    if (p && rlhf__cuda_not_recording(cu, "release") == RLHF_OK)
        rlhf__cuda_mem_free(cu, rlhf__cuda_mem(p));
}

static uint64_t bytes_in_use(void *ctx) { return ((struct rlhf__cuda *)ctx)->bytes; }

void rlhf__cuda_fill_memory(rlhf_compute *t) {
    t->alloc = alloc;
    t->release = release;
    t->bytes_in_use = bytes_in_use;
}
