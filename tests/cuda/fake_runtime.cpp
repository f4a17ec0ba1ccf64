// fake_runtime.cpp: the runtime functions a backend uses, under their real names and prototypes
// (fake_runtime.h), without a GPU. Work is queued and runs at a synchronisation point, so what
// forgets to wait sees old data; device memory is out of reach of the host (protection keys, or
// mprotect), ends at a guard page, and is NaN until written.
#include "fake_runtime.h"
#include <deque>
#include <functional>
#include <map>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

namespace {
const size_t ARENA = 1ull << 36, PAGE = 4096;
char *arena, *top;
int key = -2;                                    // -1: no protection keys, mprotect instead
std::map<char *, size_t> live;                   // device: base -> bytes
std::map<char *, size_t> pinned;                 // host
std::deque<std::function<void()>> queue;         // one stream
std::map<const void *, unsigned> shared_allowed; // kernel -> bytes of dynamic shared memory
const uint64_t SHARED_OPTIN = 227 * 1024;

void guard(bool open) {
    if (key >= 0)
        pkey_set(key, open ? 0 : PKEY_DISABLE_ACCESS);
    else if (arena && top > arena)
        for (auto &b : live)
            mprotect((void *)((uintptr_t)b.first & ~(PAGE - 1)),
                     (b.second + PAGE - 1) & ~(PAGE - 1),
                     open ? PROT_READ | PROT_WRITE : PROT_NONE);
}
void init() {
    if (arena) return;
    arena = top =
        (char *)mmap(NULL, ARENA, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    key = getenv("EMU_NO_PKU") ? -1 : pkey_alloc(0, PKEY_DISABLE_ACCESS);
}
bool within(const std::map<char *, size_t> &m, const void *p, size_t n) {
    auto it = m.upper_bound((char *)p);
    return it != m.begin() && (--it, (char *)p + n <= it->first + it->second);
}
void flush() {
    guard(true);
    for (; !queue.empty(); queue.pop_front())
        queue.front()();
    guard(false);
}
} // namespace

extern "C" cudaError_t emu_enqueue(void (*run)(void *), void *arg, void (*drop)(void *),
                                   cudaStream_t) {
    queue.push_back([=] {
        run(arg);
        drop(arg);
    });
    return cudaSuccess;
}

extern "C" cudaError_t emu_allow_shared(const void *kernel, uint64_t bytes) {
    if (bytes > SHARED_OPTIN) return cudaErrorInvalidValue;
    shared_allowed[kernel] = (unsigned)bytes;
    return cudaSuccess;
}
extern "C" unsigned emu_allowed_shared(const void *kernel) {
    const auto it = shared_allowed.find(kernel);
    return it == shared_allowed.end() ? 48 * 1024 : it->second;
}

extern "C" void emu_describe_address(const void *p, char *text, size_t cap) {
    const char *at = (const char *)p;
    auto it = live.upper_bound((char *)p);
    if (it != live.begin() && at < arena + ARENA) {
        const auto b = std::prev(it);
        snprintf(text, cap, "address %p is %zu bytes past the end of %zu bytes of device memory", p,
                 (size_t)(at - b->first) - b->second, b->second);
    } else
        snprintf(text, cap, "address %p is no memory of the device", p);
}

extern "C" cudaError_t cudaMalloc(void **out, size_t n) {
    init();
    size_t used = (n + 255) / 256 * 256, map = (used + PAGE - 1) / PAGE * PAGE;
    if (n > ARENA || top + map + PAGE > arena + ARENA) return cudaErrorMemoryAllocation;
    guard(true);
    if (key >= 0)
        pkey_mprotect(top, map, PROT_READ | PROT_WRITE, key);
    else
        mprotect(top, map, PROT_READ | PROT_WRITE);
    char *p = top + map - used; // ends at the guard page
    memset(p, 0xff, used);
    live[p] = n;
    top += map + PAGE;
    guard(false);
    *out = p;
    return cudaSuccess;
}
extern "C" cudaError_t cudaFree(void *p) {
    if (!p) return cudaSuccess;
    auto it = live.find((char *)p);
    if (it == live.end()) return cudaErrorInvalidValue;
    flush(); // the real one waits, too
    mmap((void *)((uintptr_t)p & ~(PAGE - 1)), (it->second + PAGE - 1) & ~(PAGE - 1), PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    live.erase(it); // addresses are never used again: a late use faults
    return cudaSuccess;
}
extern "C" cudaError_t cudaMallocHost(void **out, size_t n) {
    *out = malloc(n);
    pinned[(char *)*out] = n;
    return cudaSuccess;
}
extern "C" cudaError_t cudaMemcpyAsync(void *d, const void *s, size_t n, cudaMemcpyKind k,
                                       cudaStream_t) {
    if ((k != cudaMemcpyDeviceToHost && !within(live, d, n)) ||
        (k != cudaMemcpyHostToDevice && !within(live, s, n)))
        return cudaErrorInvalidValue;
    if (k == cudaMemcpyHostToDevice &&
        !within(pinned, s, n)) { // pageable: staged before it returns
        void *copy = malloc(n);
        memcpy(copy, s, n);
        queue.push_back([=] {
            memcpy(d, copy, n);
            free(copy);
        });
    } else
        queue.push_back([=] { memmove(d, s, n); }); // pinned: read as late as the rules allow
    if (k == cudaMemcpyDeviceToHost && !within(pinned, d, n)) flush(); // pageable: synchronous
    return cudaSuccess;
}
extern "C" cudaError_t cudaMemsetAsync(void *d, int v, size_t n, cudaStream_t) {
    if (!within(live, d, n)) return cudaErrorInvalidValue;
    queue.push_back([=] { memset(d, v, n); });
    return cudaSuccess;
}
extern "C" cudaError_t cudaStreamSynchronize(cudaStream_t) {
    flush();
    return cudaSuccess;
}
extern "C" cudaError_t cudaFreeHost(void *p) {
    flush();
    pinned.erase((char *)p);
    free(p);
    return cudaSuccess;
}
extern "C" cudaError_t cudaSetDevice(int i) {
    return i == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}
extern "C" cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned) {
    *s = (cudaStream_t)&queue;
    return cudaSuccess;
}
extern "C" cudaError_t cudaStreamDestroy(cudaStream_t) {
    flush();
    return cudaSuccess;
}
extern "C" cudaError_t cudaGetLastError(void) { return cudaSuccess; }
extern "C" cudaError_t cudaMemGetInfo(size_t *l, size_t *t) {
    *t = ARENA;
    *l = ARENA - (size_t)(top - arena);
    return cudaSuccess;
}
extern "C" const char *cudaGetErrorString(cudaError_t e) {
    return e == cudaErrorMemoryAllocation ? "out of memory" : "an error";
}
