// parallel.c: begins the work of each thread of a parallel region. The linker redirects
// GOMP_parallel to this file (--wrap).
//
// Plugins share the threads of OpenMP with this backend. If foreign code changes the floating-point
// environment of such a thread (flush-to-zero, rounding, masks of exceptions), the thread would
// compute other bits. So each thread of a region sets the standard environment first.
//
// GCC's OpenMP runtime is not instrumented for ThreadSanitizer. So the sanitizer cannot see that a
// region's threads start after the caller's earlier work, or that the caller continues only after
// all of them have ended. Annotations tell it about this order. Races between the threads of a
// region are still found.
#include <stddef.h>
#include <stdint.h>
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#else
#define __tsan_acquire(address) ((void)(address))
#define __tsan_release(address) ((void)(address))
#endif

void __real_GOMP_parallel(void (*fn)(void *), void *data, unsigned threads, unsigned flags);
void __wrap_GOMP_parallel(void (*fn)(void *), void *data, unsigned threads, unsigned flags);

struct region {
    void (*fn)(void *);
    void *data;
    char fork, join; // addresses that represent the two synchronization points
};

static void set_standard_floats(void) {
#if defined(__x86_64__)
    const uint32_t control = 0x1f80;
    const uint16_t x87 = 0x37f;
    uint32_t now;
    __asm__ volatile("stmxcsr %0" : "=m"(now));
    if ((now & 0xffc0) != control) __asm__ volatile("ldmxcsr %0" ::"m"(control));
    __asm__ volatile("fldcw %0" ::"m"(x87));
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" ::"r"((uint64_t)0));
#endif
}

static void run(void *arg) {
    struct region *r = arg;
    __tsan_acquire(&r->fork);
    set_standard_floats();
    r->fn(r->data);
    __tsan_release(&r->join);
}

void __wrap_GOMP_parallel(void (*fn)(void *), void *data, unsigned threads, unsigned flags) {
    struct region r = {fn, data, 0, 0};
    __tsan_release(&r.fork);
    __real_GOMP_parallel(run, &r, threads, flags);
    __tsan_acquire(&r.join);
}
