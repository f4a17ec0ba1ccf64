// fragile_cuda.c: replaces kernels_cuda.so. Like CUDA's runtime library, it allocates memory while
// it is loaded, without checking whether an allocation has failed.
#include <stdint.h>
#include <stdlib.h>

__attribute__((constructor)) static void load(void) {
    for (int i = 0; i < 30000; i++) {
        volatile char *p = malloc(64);
        *p = 1;
        free((void *)(uintptr_t)p);
    }
}
