// fail_alloc.c: an LD_PRELOAD library that makes allocations of a program fail.
//
//   RLHF_TEST_ALLOC_FAIL=N   the N-th allocation, from 1
//   RLHF_TEST_ALLOC_FROM=N   the N-th and all later ones, until the program reports it and exits
//   RLHF_TEST_ALLOC_COUNT=FILE  writes the number of allocations when the program exits
//
// This library counts malloc, calloc, a realloc that grows, and aligned allocations. It does not
// count mmap, or allocations of the dynamic linker before main. glibc's own functions do the work.
#include <errno.h>
#include <malloc.h> // memalign
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_memalign(size_t align, size_t n);

#define VISIBLE __attribute__((visibility("default")))

static atomic_ulong calls;
static unsigned long fail_at, fail_from;
static const char *count_path;

static unsigned long number(const char *name) {
    const char *s = getenv(name);
    return s ? strtoul(s, NULL, 10) : 0;
}

__attribute__((constructor)) static void begin(void) {
    fail_at = number("RLHF_TEST_ALLOC_FAIL");
    fail_from = number("RLHF_TEST_ALLOC_FROM");
    count_path = getenv("RLHF_TEST_ALLOC_COUNT");
    atomic_store(&calls, 0);
}

__attribute__((destructor)) static void end(void) {
    if (!count_path) return;
    const unsigned long n = atomic_load(&calls);
    FILE *f = fopen(count_path, "w");
    if (!f) return;
    fprintf(f, "%lu\n", n);
    fclose(f);
}

// Returns true if this allocation fails.
static int fails(void) {
    const unsigned long n = atomic_fetch_add(&calls, 1) + 1;
    if (n != fail_at && !(fail_from && n >= fail_from)) return 0;
    errno = ENOMEM;
    return 1;
}

VISIBLE void *malloc(size_t n) { return fails() ? NULL : __libc_malloc(n); }

VISIBLE void *calloc(size_t n, size_t size) { return fails() ? NULL : __libc_calloc(n, size); }

VISIBLE void *realloc(void *p, size_t n) { return n && fails() ? NULL : __libc_realloc(p, n); }

VISIBLE void *memalign(size_t align, size_t n) {
    return fails() ? NULL : __libc_memalign(align, n);
}

VISIBLE void *aligned_alloc(size_t align, size_t n) { return memalign(align, n); }

VISIBLE int posix_memalign(void **out, size_t align, size_t n) {
    if (fails()) return ENOMEM;
    void *p = __libc_memalign(align, n);
    if (!p) return ENOMEM;
    *out = p;
    return 0;
}
