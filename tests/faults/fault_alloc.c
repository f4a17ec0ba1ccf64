// fault_alloc.c: malloc, calloc, realloc, aligned_alloc and posix_memalign.
#include "fault.h"

#include <errno.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t each);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_memalign(size_t align, size_t n);

static int fails(void) { return fault_strikes(-1, NULL, 0); }

void *malloc(size_t n) { return fails() ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t each) { return fails() ? NULL : __libc_calloc(n, each); }
void *realloc(void *p, size_t n) { return fails() ? NULL : __libc_realloc(p, n); }

void *aligned_alloc(size_t align, size_t n) { return fails() ? NULL : __libc_memalign(align, n); }

int posix_memalign(void **out, size_t align, size_t n) {
    int saved = errno;
    void *p = fails() ? NULL : __libc_memalign(align, n);
    errno = saved;
    if (!p) return ENOMEM;
    *out = p;
    return 0;
}
