// fake_memory.cpp: pinned memory and device memory of the fake runtime. The host cannot access
// device memory: protection keys prevent it or, without them, mprotect.
#include "fake_state.h"

#include <map>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
const size_t ARENA = 1ull << 37;
#else
const size_t ARENA = 1ull << 40;
#endif
const size_t PAGE = 4096;

char *arena, *top;              // addresses are never reused
int key = -1;                   // -1: no protection keys
bool open_now;                  // whether the host can access it, which is only so while work runs
std::map<char *, size_t> live;  // allocated by the backend
std::map<char *, size_t> there; // freed by calls that the stream has not reached
std::map<char *, size_t> pinned;
std::map<char *, size_t> pooled; // the part of `live` that is in the pool
uint64_t used, pool_used, pool_reserved;

char *first_page(char *p) { return (char *)((uintptr_t)p & ~(PAGE - 1)); }
// The size of a block for n bytes.
size_t whole_of(size_t n) {
    // 256 bytes as on a card. EMU_ALIGN=16 leaves the smallest gap after the requested bytes.
    static const size_t unit = getenv("EMU_ALIGN") ? strtoul(getenv("EMU_ALIGN"), NULL, 10) : 256;
    return (n + unit - 1) / unit * unit;
}
size_t pages_of(size_t n) { return (whole_of(n) + PAGE - 1) / PAGE * PAGE; }

void guard(bool open) {
    open_now = open;
    if (key >= 0)
        pkey_set(key, open ? 0 : PKEY_DISABLE_ACCESS);
    else
        for (auto &b : there)
            mprotect(first_page(b.first), pages_of(b.second),
                     open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

bool within(const std::map<char *, size_t> &m, const void *p, size_t n) {
    auto it = m.upper_bound((char *)p);
    return it != m.begin() && (--it, (char *)p + n <= it->first + it->second);
}

char *map_new(size_t n) {
    if (!arena) {
        arena = (char *)mmap(NULL, ARENA, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                             -1, 0);
        if (arena == MAP_FAILED) {
            perror("fake runtime: no address space");
            abort();
        }
        top = arena;
        key = getenv("EMU_NO_PKU") ? -1 : pkey_alloc(0, PKEY_DISABLE_ACCESS);
    }
    const size_t whole = whole_of(n), map = pages_of(n);
    if (top + map + PAGE > arena + ARENA) return NULL;
    if (key >= 0)
        pkey_mprotect(top, map, PROT_READ | PROT_WRITE, key);
    else
        mprotect(top, map, PROT_READ | PROT_WRITE);
    char *p = top + map - whole; // ends at the inaccessible page
    const bool was = open_now;
    if (key >= 0) guard(true);
    memset(p, 0xff, whole);
    if (key >= 0)
        guard(was);
    else if (!was)
        mprotect(top, map, PROT_NONE);
    live[p] = there[p] = n;
    top += map + PAGE;
    return p;
}

// Checks that bytes after the requested ones have not changed.
void check_behind(const char *p, size_t n) {
    const bool was = open_now;
    if (!was) guard(true);
    for (size_t i = n; i < whole_of(n); i++)
        if (p[i] != (char)0xff) {
            fprintf(stderr, "fake runtime: a kernel wrote %zu bytes behind a block of %zu\n", i - n,
                    n);
            abort();
        }
    if (!was) guard(false);
}

void unmap(char *p) {
    const auto it = there.find(p);
    check_behind(p, it->second);
    mmap(first_page(p), pages_of(it->second), PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    there.erase(it);
}

uint64_t memory() { return fake::device_of(fake::current()).memory; }

} // namespace

namespace fake {

void memory_open() { guard(true); }
void memory_shut() { guard(false); }
bool is_device(const void *p, size_t n) { return within(live, p, n); }
bool is_pinned(const void *p, size_t n) { return within(pinned, p, n); }

} // namespace fake

extern "C" {

__attribute__((visibility("default"))) uint64_t rlhf__fake_cuda_bytes(void) {
    return used + pool_used;
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *total) {
    FAKE_ENTER();
    *total = memory();
    *left = *total - (used + pool_reserved > *total ? *total : used + pool_reserved);
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t n) {
    *out = NULL;
    FAKE_ENTER();
    const cudaError_t no = fake::refuse_while_capturing();
    if (no != cudaSuccess) return no;
    if (n > memory() || used + pool_reserved + n > memory())
        return fake::failed(cudaErrorMemoryAllocation);
    if (n && !(*out = map_new(n))) return fake::failed(cudaErrorMemoryAllocation);
    used += n;
    return cudaSuccess;
}
cudaError_t cudaFree(void *p) {
    FAKE_ENTER();
    if (!p) return cudaSuccess;
    const cudaError_t no = fake::refuse_while_capturing();
    if (no != cudaSuccess) return no;
    const auto it = live.find((char *)p);
    if (it == live.end() || pooled.count((char *)p)) return fake::failed(cudaErrorInvalidValue);
    fake::run_all(); // the real function waits, too
    used -= it->second;
    live.erase(it);
    unmap((char *)p);
    return cudaSuccess;
}

// ---- in stream order ----

cudaError_t cudaMallocAsync(void **out, size_t n, cudaStream_t s) {
    *out = NULL;
    FAKE_ENTER();
    const cudaError_t no = fake::refuse_while_capturing(fake::stream_of(s));
    if (no != cudaSuccess) return no;
    const uint64_t reserve = pool_used + n > pool_reserved ? pool_used + n : pool_reserved;
    if (n > memory() || used + reserve > memory()) return fake::failed(cudaErrorMemoryAllocation);
    char *p = n ? map_new(n) : NULL;
    if (!p) return fake::failed(n ? cudaErrorMemoryAllocation : cudaErrorInvalidValue);
    pooled[p] = n;
    pool_used += n;
    pool_reserved = reserve;
    *out = p;
    return cudaSuccess;
}
cudaError_t cudaFreeAsync(void *p, cudaStream_t s) {
    FAKE_ENTER();
    const cudaError_t no = fake::refuse_while_capturing(fake::stream_of(s));
    if (no != cudaSuccess) return no;
    const auto it = pooled.find((char *)p);
    if (it == pooled.end()) return fake::failed(cudaErrorInvalidValue);
    pool_used -= it->second;
    pooled.erase(it);
    live.erase((char *)p);
    return fake::submit(s, [=] { unmap((char *)p); });
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *out, int) {
    FAKE_ENTER();
    *out = (cudaMemPool_t)&pooled;
    return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, enum cudaMemPoolAttr attribute, void *) {
    FAKE_ENTER();
    return attribute == cudaMemPoolAttrReleaseThreshold ? cudaSuccess
                                                        : fake::failed(cudaErrorInvalidValue);
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, enum cudaMemPoolAttr attribute, void *out) {
    FAKE_ENTER();
    *(uint64_t *)out = attribute == cudaMemPoolAttrUsedMemCurrent       ? pool_used
                       : attribute == cudaMemPoolAttrReservedMemCurrent ? pool_reserved
                                                                        : ~0ull;
    return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t keep) {
    FAKE_ENTER();
    uint64_t busy = 0; // freed, but the stream has not reached that point
    for (const auto &b : there)
        busy += live.count(b.first) ? 0 : b.second;
    const uint64_t least = pool_used + busy;
    if (pool_reserved > least) pool_reserved = least > keep ? least : keep;
    return cudaSuccess;
}

// ---- pinned ----

cudaError_t cudaMallocHost(void **out, size_t n) {
    *out = NULL;
    FAKE_ENTER();
    const cudaError_t no = fake::refuse_while_capturing();
    if (no != cudaSuccess) return no;
    if (!(*out = aligned_alloc(4096, (n + 4095) / 4096 * 4096)))
        return fake::failed(cudaErrorMemoryAllocation);
    pinned[(char *)*out] = n;
    return cudaSuccess;
}
cudaError_t cudaFreeHost(void *p) {
    FAKE_ENTER();
    if (!p) return cudaSuccess;
    const cudaError_t no = fake::refuse_while_capturing();
    if (no != cudaSuccess) return no;
    if (!pinned.count((char *)p)) return fake::failed(cudaErrorInvalidValue);
    fake::run_all();
    pinned.erase((char *)p);
    free(p);
    return cudaSuccess;
}

void emu_describe_address(const void *p, char *text, size_t cap) {
    const char *at = (const char *)p;
    const auto it = there.upper_bound((char *)p);
    if (it != there.begin() && at < arena + ARENA) {
        const auto b = std::prev(it);
        snprintf(text, cap, "address %p is %zu bytes past the end of %zu bytes of device memory", p,
                 (size_t)(at - b->first) - b->second, b->second);
    } else
        snprintf(text, cap, "address %p is no memory of the device", p);
}

} // extern "C"
