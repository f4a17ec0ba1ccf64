// emu.h: CUDA for a machine without it: every CUDA thread is a fiber of one OS thread, blocks run
// one after another in a seeded order.
//
// What it checks while it emulates: barriers that not all threads reach, barriers and warp
// operations of different source lines that meet, shuffles from lanes outside the mask, shared
// memory that is read before it is written (poisoned with NaN for every block), too much shared
// memory, too large grids and blocks. Order of threads and blocks follows EMU_SEED.
#ifndef RLHF_TESTS_CUDA_EMU_H
#define RLHF_TESTS_CUDA_EMU_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tuple>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __restrict__ __restrict
#define __align__(n) __attribute__((aligned(n)))

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
struct __align__(8) float2 {
    float x, y;
};
struct __align__(16) float4 {
    float x, y, z, w;
};
struct __align__(16) uint4 {
    unsigned x, y, z, w;
};
#include "fake_runtime.h"

namespace emu {

enum { MAX_THREADS = 1024, STACK = 64 * 1024, SHARED_MAX = 227 * 1024, LANES = 32 };
enum state { RUN, AT_BLOCK, AT_WARP, DONE };

struct fiber {
    void *sp;
    uint3 tid;
    unsigned linear, lane, phase; // phase: which of the warp's two exchange buffers is next
    enum state state;
    int line;
    char *stack;
    void *tsan;
};
struct warp {
    unsigned arrived, mask, round;
    int line;
    char token[2];              // what the race detector sees of the barrier
    uint64_t slot[2][LANES][4]; // 32 bytes a lane: enough for the operands of mma
    float out[2][16][8];        // what the last lane to arrive makes for all: mma
};
struct slot { // one SHARED variable
    uint64_t block;
    void *p;
};

inline fiber fibers[MAX_THREADS];
inline warp warps[MAX_THREADS / LANES];
inline fiber *self;
inline void *scheduler;
inline uint3 block_idx;
inline dim3 block_dim, grid_dim;
inline unsigned n_threads, n_live, at_block, round_, seed;
inline char start_token, end_token, token[2]; // for the race detector only: two barriers in turn
inline int block_line;
inline uint64_t block_serial; // tells blocks apart over the life of the process
inline uint64_t switches;
inline unsigned char *shared; // SHARED_MAX bytes between guard pages
inline unsigned dyn_bytes, shared_used;
inline const char *kernel_name;
inline void (*entry)(void *);
inline void *entry_arg;

[[noreturn]] inline void die(const char *what, int line) {
    fprintf(stderr, "emu: kernel %s, block (%u,%u,%u), thread %d, line %d: %s\n", kernel_name,
            block_idx.x, block_idx.y, block_idx.z, self ? (int)self->linear : -1, line, what);
    abort();
}

// ---- fibers: save the callee-saved registers, swap stacks ----
extern "C" void emu_switch(void **from, void *to);
#ifndef EMU_NO_ASM
asm(".text\n.globl emu_switch\n.weak emu_switch\n.type emu_switch,@function\nemu_switch:\n"
    "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
    "mov %rsp,(%rdi)\nmov %rsi,%rsp\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");
#endif

#ifdef __SANITIZE_THREAD__ // a CUDA thread is a thread to the race detector; barriers order
extern "C" void *__tsan_create_fiber(unsigned), *__tsan_get_current_fiber(void);
extern "C" void __tsan_switch_to_fiber(void *, unsigned), __tsan_acquire(void *),
    __tsan_release(void *);
#define EMU_TSAN(x) x
#define EMU_UNSEEN  __attribute__((no_sanitize("thread"), noinline))
#else
#define EMU_TSAN(x)
#define EMU_UNSEEN
#endif
inline void *tsan_main;

EMU_UNSEEN inline void go(fiber *to) { // to NULL: back to the launcher
    fiber *from = self;
    switches++;
    self = to;
    EMU_TSAN(__tsan_switch_to_fiber(to ? to->tsan : tsan_main, 1));
    emu_switch(from ? &from->sp : &scheduler, to ? to->sp : scheduler);
}

// The next thread that can run, in ring order; the launcher when all are done.
EMU_UNSEEN inline void yield() {
    unsigned i = self->linear;
    for (unsigned k = 0; k < n_threads; k++) {
        i = i + 1 == n_threads ? 0 : i + 1;
        if (fibers[i].state == RUN) {
            if (&fibers[i] != self) go(&fibers[i]);
            return;
        }
    }
    if (n_live == 0) {
        go(NULL);
        return;
    }
    for (unsigned t = 0, u; t < n_threads; t = u) {
        for (u = t; u < n_threads && fibers[u].state == fibers[t].state &&
                    fibers[u].line == fibers[t].line;
             u++) {
        }
        static const char *const how[] = {"run", "wait at a block barrier",
                                          "wait in a warp operation", "are done"};
        fprintf(stderr, "emu:   threads %u .. %u %s, line %d\n", t, u - 1, how[fibers[t].state],
                fibers[t].line);
    }
    die("deadlock: not every thread reaches the barrier", self->line);
}

EMU_UNSEEN inline void fiber_main() {
    for (;;) {
        EMU_TSAN(__tsan_acquire(&start_token));
        entry(entry_arg);
        EMU_TSAN(__tsan_release(&end_token));
        if (at_block) die("a thread leaves while others wait at a barrier", self->line);
        self->state = DONE;
        n_live--;
        yield(); // comes back when a later block runs this thread
    }
}

EMU_UNSEEN inline void make_fiber(unsigned i) {
    fiber &f = fibers[i];
    char *m = (char *)mmap(NULL, STACK + 4096, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    mprotect(m, 4096, PROT_NONE);
    f.stack = m;
    void **sp = (void **)(m + 4096 + STACK - i % 64 * 192); // else all tops share a few cache sets
    *--sp = NULL; // keeps the stack aligned as after a call
    *--sp = (void *)fiber_main;
    for (int r = 0; r < 6; r++)
        *--sp = NULL;
    f.sp = sp;
    EMU_TSAN(f.tsan = __tsan_create_fiber(0));
}

// ---- barriers ----
EMU_UNSEEN inline void block_barrier(int line) {
    if (at_block == 0) block_line = line;
    if (line != block_line) die("meets a barrier of another line", line);
    self->line = line;
    char *t = &token[round_ & 1];
    EMU_TSAN(__tsan_release(t));
    if (++at_block < n_live) {
        self->state = AT_BLOCK;
        yield();
    } else {
        at_block = 0;
        round_++;
        for (unsigned i = 0; i < n_threads; i++)
            if (fibers[i].state == AT_BLOCK) fibers[i].state = RUN;
    }
    (void)t;
    EMU_TSAN(__tsan_acquire(t));
}

// finish: run by the last lane, before any goes on.
struct nothing {
    void operator()(warp &) const {}
};
template <class F = nothing>
EMU_UNSEEN inline void warp_barrier(unsigned mask, int line, F finish = {}) {
    warp &w = warps[self->linear / LANES];
    unsigned bit = 1u << self->lane;
    if (!(mask & bit)) die("a lane outside the mask takes part", line);
    if (w.arrived == 0) w.mask = mask, w.line = line;
    if (w.mask != mask || w.line != line) die("lanes meet in different warp operations", line);
    self->line = line;
    char *t = &w.token[w.round & 1];
    EMU_TSAN(__tsan_release(t));
    w.arrived |= bit;
    if (w.arrived != mask) {
        self->state = AT_WARP;
        yield();
    } else {
        EMU_TSAN(__tsan_acquire(t));
        finish(w);
        EMU_TSAN(__tsan_release(t));
        w.arrived = 0;
        w.round++;
        unsigned base = self->linear / LANES * LANES;
        for (unsigned l = 0; l < LANES; l++)
            if (base + l < n_threads && fibers[base + l].state == AT_WARP)
                fibers[base + l].state = RUN;
    }
    (void)t;
    EMU_TSAN(__tsan_acquire(t));
}

// Every lane puts a value of at most 32 bytes; the array of all lanes' values. Two buffers taken in
// turn: no lane can be two exchanges ahead of another.
template <class T>
EMU_UNSEEN inline const uint64_t (*exchange(unsigned mask, const T &v, int line))[4] {
    static_assert(sizeof(T) <= 32, "");
    warp &w = warps[self->linear / LANES];
    unsigned p = self->phase ^= 1;
    __builtin_memcpy(w.slot[p][self->lane], &v, sizeof v);
    warp_barrier(mask, line);
    return w.slot[p];
}

template <class T> EMU_UNSEEN inline T shuffle(unsigned mask, T v, unsigned from, int line) {
    const uint64_t(*s)[4] = exchange(mask, v, line);
    if (!(mask >> from & 1)) die("shuffle from a lane outside the mask", line);
    T r;
    __builtin_memcpy(&r, s[from], sizeof r);
    return r;
}

// ---- shared memory ----
EMU_UNSEEN inline void *shared_take(slot *s, unsigned bytes, unsigned align) {
    if (s->block == block_serial) return s->p;
    shared_used = (shared_used + align - 1) / align * align;
    s->p = shared + shared_used;
    s->block = block_serial;
    shared_used += bytes;
    if (shared_used > SHARED_MAX) die("too much shared memory", 0);
    if (shared_used - dyn_bytes > 48 * 1024) die("more than 48 KiB of static shared memory", 0);
    return s->p;
}

// ---- launch ----
EMU_UNSEEN inline void run_block(uint3 b) {
    block_idx = b;
    block_serial++;
    shared_used = dyn_bytes;
    memset(shared, 0xff, shared_used < 4096 ? 8192 : shared_used + 4096);
    for (unsigned i = 0; i < n_threads; i++) {
        fiber &f = fibers[i];
        if (!f.stack) make_fiber(i);
        f.linear = i;
        f.lane = i % LANES;
        f.phase = 0;
        f.line = 0;
        f.state = RUN;
        f.tid = {i % block_dim.x, i / block_dim.x % block_dim.y, i / (block_dim.x * block_dim.y)};
    }
    memset(warps, 0, (n_threads + LANES - 1) / LANES * sizeof *warps);
    n_live = n_threads;
    at_block = 0;
    EMU_TSAN(__tsan_release(&start_token));
    go(&fibers[seed ? (block_serial * 2654435761u ^ seed) % n_threads : 0]);
    EMU_TSAN(__tsan_acquire(&end_token));
}

EMU_UNSEEN inline cudaError_t launch(const char *name, void (*fn)(void *), void *arg, dim3 grid,
                                     dim3 block, unsigned smem) {
    uint64_t threads = (uint64_t)block.x * block.y * block.z;
    if (!threads || threads > MAX_THREADS || block.z > 64 || !grid.x || !grid.y || !grid.z ||
        grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535 || smem > SHARED_MAX)
        return cudaErrorInvalidConfiguration;
    if (!shared) {
        const char *s = getenv("EMU_SEED");
        seed = s ? (unsigned)atoi(s) : 0;
        shared = (unsigned char *)mmap(NULL, SHARED_MAX + 65536, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    EMU_TSAN(tsan_main = __tsan_get_current_fiber());
    kernel_name = name;
    entry = fn;
    entry_arg = arg;
    grid_dim = grid;
    block_dim = block;
    n_threads = (unsigned)threads;
    dyn_bytes = smem;
    uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z, step = 1, at = 0;
    if (seed) { // a stride without a common divisor visits every block once
        for (step = seed % blocks | 1; step < blocks; step += 2) {
            uint64_t a = step, b = blocks;
            while (b) {
                uint64_t c = a % b;
                a = b;
                b = c;
            }
            if (a == 1) break;
        }
        if (step >= blocks) step = 1;
        at = seed % blocks;
    }
    for (uint64_t k = 0; k < blocks; k++, at = (at + step) % blocks)
        run_block({(unsigned)(at % grid.x), (unsigned)(at / grid.x % grid.y),
                   (unsigned)(at / ((uint64_t)grid.x * grid.y))});
    self = NULL;
    return cudaSuccess;
}

// A launch is queued by the fake runtime and runs when something waits. Arguments are copied now,
// as the parameters' types.
template <class... P> struct queued {
    void (*kernel)(P...);
    std::tuple<P...> args;
    const char *name;
    dim3 grid, block;
    unsigned smem;
};
template <class... P, class... A>
inline cudaError_t submit(const char *name, void (*kernel)(P...), dim3 grid, dim3 block,
                          unsigned smem, cudaStream_t stream, A &&...args) {
    static_assert(sizeof(std::tuple<P...>) <= 4096, "a kernel's parameters take at most 4 KiB");
    const uint64_t threads = (uint64_t)block.x * block.y * block.z;
    if (!threads || threads > MAX_THREADS || block.z > 64 || !(grid.x && grid.y && grid.z) ||
        grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535 || smem > SHARED_MAX)
        return cudaErrorInvalidConfiguration;
    emu_enqueue(
        [](void *p) {
            auto *q = (queued<P...> *)p;
            launch(
                q->name,
                [](void *r) {
                    auto *k = (queued<P...> *)r;
                    std::apply(k->kernel, k->args);
                },
                q, q->grid, q->block, q->smem);
        },
        new queued<P...>{kernel, std::tuple<P...>(std::forward<A>(args)...), name, grid, block,
                         smem},
        [](void *p) { delete (queued<P...> *)p; }, stream);
    return cudaSuccess;
}

} // namespace emu

#define threadIdx (emu::self->tid)
#define blockIdx  emu::block_idx
#define blockDim  emu::block_dim
#define gridDim   emu::grid_dim

template <class T> using emu_type = T; // lets an array type stand before its name
#define SHARED(T, name)                                                                            \
    static emu::slot name##_slot;                                                                  \
    emu_type<T> &name = *(emu_type<T> *)emu::shared_take(&name##_slot, sizeof(emu_type<T>), 16)
#define DYN_SHARED(name)            unsigned char *const name = emu::shared
#define ALLOW_SHARED(kernel, bytes) (cudaSuccess)
#define LAUNCH(kernel, grid, block, smem, stream, ...)                                             \
    emu::submit(#kernel, kernel, (grid), (block), (unsigned)(smem), (stream), __VA_ARGS__)

#define EMU_LINE int line = __builtin_LINE()
inline void __syncthreads(EMU_LINE) { emu::block_barrier(line); }
inline void __syncwarp(unsigned mask = ~0u, EMU_LINE) { emu::warp_barrier(mask, line); }
template <class T> inline T __shfl_sync(unsigned m, T v, int from, int w = 32, EMU_LINE) {
    return emu::shuffle(m, v, emu::self->lane / w * w + (unsigned)from % w, line);
}
template <class T> inline T __shfl_xor_sync(unsigned m, T v, int x, int w = 32, EMU_LINE) {
    (void)w;
    return emu::shuffle(m, v, emu::self->lane ^ (unsigned)x, line);
}
template <class T> inline T __shfl_down_sync(unsigned m, T v, unsigned d, int w = 32, EMU_LINE) {
    unsigned to = emu::self->lane % w + d;
    return emu::shuffle(m, v, to < (unsigned)w ? emu::self->lane + d : emu::self->lane, line);
}
template <class T> inline T __shfl_up_sync(unsigned m, T v, unsigned d, int w = 32, EMU_LINE) {
    return emu::shuffle(m, v, emu::self->lane % w >= d ? emu::self->lane - d : emu::self->lane,
                        line);
}
inline unsigned __ballot_sync(unsigned m, int p, EMU_LINE) {
    const uint64_t(*s)[4] = emu::exchange(m, (uint64_t)(p != 0), line);
    unsigned r = 0;
    for (int l = 0; l < 32; l++)
        if (m >> l & 1) r |= (unsigned)(s[l][0] & 1) << l;
    return r;
}
// Integer atomics only: a float atomicAdd would have no fixed order, so there is none.
inline int atomicAdd(int *p, int v) {
    int o = *p;
    *p += v;
    return o;
}
inline unsigned atomicAdd(unsigned *p, unsigned v) {
    unsigned o = *p;
    *p += v;
    return o;
}
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }
inline float __uint_as_float(unsigned u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}
inline unsigned __float_as_uint(float f) {
    unsigned u;
    memcpy(&u, &f, 4);
    return u;
}
inline int atomicCAS(int *p, int old, int v) {
    int o = *p;
    if (o == old) *p = v;
    return o;
}
template <class T> inline T __ldg(const T *p) { return *p; }
namespace emu {
inline float widen(unsigned b) { return __uint_as_float(b << 16); }
} // namespace emu
// d[4] += A[16x16] B[16x8], bf16 in, f32 out; fragments as in PTX mma.m16n8k16.
inline void emu_mma_bf16(float d[4], const unsigned a[4], const unsigned b[2]) {
    struct {
        unsigned a[4], b[2];
    } mine = {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
    emu::warp &w = emu::warps[emu::self->linear / 32];
    const unsigned p = emu::self->phase ^= 1, g = emu::self->lane / 4, t = emu::self->lane % 4;
    memcpy(w.slot[p][emu::self->lane], &mine, sizeof mine);
    emu::warp_barrier(~0u, __LINE__, [p](emu::warp &v) { // products summed in k order, in f32
        float A[16][16], B[16][8];
        for (int l = 0; l < 32; l++)
            for (int i = 0; i < 6; i++) {
                const unsigned r = ((const unsigned *)v.slot[p][l])[i];
                const float lo = emu::widen(r), hi = emu::widen(r >> 16);
                const int k = l % 4 * 2 + (i < 4 ? i >> 1 : i - 4) * 8;
                if (i < 4)
                    A[l / 4 + (i & 1) * 8][k] = lo, A[l / 4 + (i & 1) * 8][k + 1] = hi;
                else
                    B[k][l / 4] = lo, B[k + 1][l / 4] = hi;
            }
        for (int r = 0; r < 16; r++)
            for (int c = 0; c < 8; c++)
                v.out[p][r][c] = 0;
        for (int r = 0; r < 16; r++)
            for (int k = 0; k < 16; k++)
                for (int c = 0; c < 8; c++)
                    v.out[p][r][c] += A[r][k] * B[k][c];
    });
    for (int i = 0; i < 4; i++)
        d[i] += w.out[p][g + (i >> 1) * 8][2 * t + (i & 1)];
}
// ldmatrix.x4: every lane gives the address of a 16-byte row.
inline void emu_ldmatrix_x4(unsigned r[4], const void *row, int trans, EMU_LINE) {
    if ((uintptr_t)row % 16) emu::die("ldmatrix: a row that is not 16-byte aligned", line);
    const uint64_t(*s)[4] = emu::exchange(~0u, (uint64_t)(uintptr_t)row, line);
    const unsigned g = emu::self->lane / 4, t = emu::self->lane % 4 * 2;
    for (unsigned i = 0; i < 4; i++) {
        uint16_t e[2];
        for (unsigned j = 0; j < 2; j++) {
            const unsigned at = trans ? t + j : g, col = trans ? g : t + j;
            e[j] = ((const uint16_t *)(uintptr_t)s[i * 8 + at][0])[col];
        }
        r[i] = (unsigned)e[0] | (unsigned)e[1] << 16;
    }
}
// cp.async: done at once.
inline void emu_cp_async(void *to, const void *from, unsigned bytes, unsigned width, EMU_LINE) {
    if ((uintptr_t)to % width || (bytes && (uintptr_t)from % width) || bytes > width)
        emu::die("cp.async: an address that is not aligned, or too many bytes", line);
    if (bytes) memcpy(to, from, bytes);
    memset((char *)to + bytes, 0, width - bytes);
}
inline void emu_cp_async_commit() {}
inline void emu_cp_async_wait(int) {}
#endif
