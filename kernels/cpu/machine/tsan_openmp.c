// tsan_openmp.c: tells ThreadSanitizer when the threads of a parallel region start and end. Built
// only for ThreadSanitizer.
//
// GCC's OpenMP runtime is not instrumented. So the sanitizer cannot see that a region's threads
// start after the caller's earlier work, or that the caller continues only after all of them have
// ended. Without this file, the sanitizer would report every region as a race. The linker redirects
// GOMP_parallel to this file (--wrap), which tells the sanitizer about this order with annotations.
// Races between the threads of a region are still found.
#include <sanitizer/tsan_interface.h>
#include <stddef.h>

void __real_GOMP_parallel(void (*fn)(void *), void *data, unsigned threads, unsigned flags);
void __wrap_GOMP_parallel(void (*fn)(void *), void *data, unsigned threads, unsigned flags);

struct region {
    void (*fn)(void *);
    void *data;
    char fork, join; // addresses that represent the two synchronization points
};

static void run(void *arg) {
    struct region *r = arg;
    __tsan_acquire(&r->fork);
    r->fn(r->data);
    __tsan_release(&r->join);
}

void __wrap_GOMP_parallel(void (*fn)(void *), void *data, unsigned threads, unsigned flags) {
    struct region r = {fn, data, 0, 0};
    __tsan_release(&r.fork);
    __real_GOMP_parallel(run, &r, threads, flags);
    __tsan_acquire(&r.join);
}
