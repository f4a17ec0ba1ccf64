// fiber.h: a CUDA thread as a fiber of one OS thread: stacks, switching, scheduling, and the error
// text of a broken kernel.
#ifndef RLHF_TESTS_CUDA_EMU_FIBER_H
#define RLHF_TESTS_CUDA_EMU_FIBER_H

#include "types.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

// ---- sanitizers: a fiber is a thread to the race detector, a stack to the address checker ----
#ifdef __SANITIZE_THREAD__
extern "C" void *__tsan_create_fiber(unsigned), *__tsan_get_current_fiber(void);
extern "C" void __tsan_switch_to_fiber(void *, unsigned), __tsan_acquire(void *),
    __tsan_release(void *);
#define EMU_TSAN(x) x
#define EMU_UNSEEN  __attribute__((no_sanitize("thread"), noinline))
#else
#define EMU_TSAN(x)
#define EMU_UNSEEN
#endif
#ifdef __SANITIZE_ADDRESS__
#include <pthread.h>
extern "C" void __sanitizer_start_switch_fiber(void **, const void *, size_t),
    __sanitizer_finish_switch_fiber(void *, const void **, size_t *);
#define EMU_ASAN(x) x
#else
#define EMU_ASAN(x)
#endif

namespace emu {

enum { MAX_THREADS = 1024, LANES = 32, PAGE = 4096 };
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STACK = 256 * 1024 }; // instrumented frames are larger
#else
enum { STACK = 64 * 1024 };
#endif
enum state { RUN, AT_BLOCK, AT_WARP, DONE };

struct fiber {
    void *sp;
    uint3 tid;
    unsigned linear, lane, phase; // phase: which of the warp's two exchange buffers is next
    enum state state;
    int line; // line of the last barrier or warp operation that the fiber reached
    char *stack;
    void *tsan;
};

inline fiber fibers[MAX_THREADS];
inline fiber *self; // NULL: the launcher is running
inline void *launcher, *launcher_tsan;
inline const void *launcher_stack; // with its size, for the address checker
inline size_t launcher_stack_bytes;
inline uint3 block_idx;
inline dim3 block_dim, grid_dim;
inline unsigned n_threads, n_live, at_block;
inline const char *kernel_name = "none";
inline void (*entry)(void *); // the kernel with its arguments
inline void *entry_arg;
inline char start_token, end_token; // for the race detector: start and end of a block
inline uint64_t switches;

inline unsigned seed_of_environment() {
    const char *s = getenv("EMU_SEED");
    return s ? (unsigned)strtoul(s, NULL, 10) : 0;
}
// Selects the order of blocks, the first thread of each block, and the time of asynchronous copies.
// With 0, blocks run in order and copies happen as late as allowed.
inline unsigned seed = seed_of_environment();

// A pseudo-random number, the same in every run.
inline uint32_t hash(uint64_t x) {
    x = (x + seed) * 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    return (uint32_t)(x >> 32);
}

[[noreturn]] inline void die(const char *what, int line) {
    fprintf(stderr, "emu: kernel %s, block (%u,%u,%u), thread %d, line %d: %s\n", kernel_name,
            block_idx.x, block_idx.y, block_idx.z, self ? (int)self->linear : -1, line, what);
    abort();
}

// ---- the switch: saves the callee-saved registers, swaps stacks ----
extern "C" void emu_switch(void **from, void *to);
asm(".text\n.globl emu_switch\n.weak emu_switch\n.hidden emu_switch\n"
    ".type emu_switch,@function\nemu_switch:\n"
    "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
    "mov %rsp,(%rdi)\nmov %rsi,%rsp\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");

EMU_UNSEEN inline void go(fiber *to) { // if `to` is NULL, back to the launcher
    fiber *from = self;
    switches++;
    self = to;
    EMU_ASAN(void *fake = NULL; __sanitizer_start_switch_fiber(
                 &fake, to ? (const void *)(to->stack + PAGE) : launcher_stack,
                 to ? (size_t)STACK : launcher_stack_bytes);)
    EMU_TSAN(__tsan_switch_to_fiber(to ? to->tsan : launcher_tsan, 1));
    emu_switch(from ? &from->sp : &launcher, to ? to->sp : launcher);
    EMU_ASAN(__sanitizer_finish_switch_fiber(fake, NULL, NULL);)
}

[[noreturn]] EMU_UNSEEN inline void deadlock() {
    static const char *const how[] = {"run", "wait at a block barrier", "wait in a warp operation",
                                      "are done"};
    const auto same = [](unsigned a, unsigned b) {
        return fibers[a].state == fibers[b].state && fibers[a].line == fibers[b].line;
    };
    for (unsigned t = 0, first; t < n_threads; t++) { // one line per place where threads wait
        for (first = 0; !same(first, t); first++) {
        }
        if (first < t) continue;
        unsigned n = 0;
        for (unsigned u = t; u < n_threads; u++)
            n += same(u, t);
        fprintf(stderr, "emu:   %u threads, first %u, %s, line %d\n", n, t, how[fibers[t].state],
                fibers[t].line);
    }
    die("deadlock: not every thread reaches the barrier", self->line);
}

// Switches to the next runnable thread in ring order, or to the launcher when all threads are done.
EMU_UNSEEN inline void yield() {
    unsigned i = self->linear;
    for (unsigned k = 0; k < n_threads; k++) {
        i = i + 1 == n_threads ? 0 : i + 1;
        if (fibers[i].state == RUN) {
            if (&fibers[i] != self) go(&fibers[i]);
            return;
        }
    }
    if (n_live) deadlock();
    go(NULL);
}

void copies_end(); // copy.h: all copies must have finished when a thread exits

EMU_UNSEEN inline void fiber_main() {
    EMU_ASAN(__sanitizer_finish_switch_fiber(NULL, NULL, NULL);)
    for (;;) {
        EMU_TSAN(__tsan_acquire(&start_token));
        entry(entry_arg);
        copies_end();
        EMU_TSAN(__tsan_release(&end_token));
        if (at_block) die("a thread leaves while others wait at a barrier", self->line);
        self->state = DONE;
        n_live--;
        yield(); // resumes when a later block runs this thread
    }
}

EMU_UNSEEN inline void make_fiber(unsigned i) {
    fiber &f = fibers[i];
    char *m = (char *)mmap(NULL, STACK + PAGE, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m == MAP_FAILED) die("no memory for a thread's stack", 0);
    mprotect(m, PAGE, PROT_NONE);
    f.stack = m;
    void **sp = (void **)(m + PAGE + STACK - i % 64 * 192); // avoids cache set conflicts
    *--sp = NULL;                                           // keeps the stack aligned as for a call
    *--sp = (void *)fiber_main;
    for (int r = 0; r < 6; r++)
        *--sp = NULL;
    f.sp = sp;
    EMU_TSAN(f.tsan = __tsan_create_fiber(0));
}

// Records what the sanitizers must know about the launching OS thread.
EMU_UNSEEN inline void launcher_note() {
    EMU_TSAN(launcher_tsan = __tsan_get_current_fiber());
#ifdef __SANITIZE_ADDRESS__
    pthread_attr_t a;
    void *low = NULL;
    if (!pthread_getattr_np(pthread_self(), &a)) {
        pthread_attr_getstack(&a, &low, &launcher_stack_bytes);
        pthread_attr_destroy(&a);
    }
    launcher_stack = low;
#endif
}

} // namespace emu
#endif
