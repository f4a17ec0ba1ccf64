// nccl_api.c: see nccl_api.h.
#include "nccl_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define FILE_NAME "libnccl.so.2"

void nccl_version_text(int version, char out[32]) {
    snprintf(out, 32, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

// Returns the name of the first function that the library lacks, or NULL.
static const char *resolve(void *so, struct nccl_api *a) {
    void *symbol;
#define NCCL_RESOLVE(name, of_nvidia, type, parameters)                                            \
    symbol = dlsym(so, #of_nvidia);                                                                \
    if (!symbol) return #of_nvidia;                                                                \
    memcpy(&a->name, &symbol, sizeof symbol); /* ISO C forbids a cast to a function pointer */
    NCCL_FUNCTIONS(NCCL_RESOLVE)
#undef NCCL_RESOLVE
    return NULL;
}

int nccl_api_open(struct nccl_api *a, char *why, size_t cap) {
    void *so = dlopen(FILE_NAME, RTLD_NOW | RTLD_LOCAL); // never closed: it has threads
    char version[32];
    if (!so) {
        snprintf(why, cap, "NCCL cannot be opened (%s); install " FILE_NAME " of NVIDIA's NCCL",
                 dlerror());
        return 0;
    }
    const char *lacks = resolve(so, a);
    if (lacks && !a->get_version) {
        snprintf(why, cap, FILE_NAME " is not NCCL: it has no %s", lacks);
        return 0;
    }
    const int failed = a->get_version(&a->version);
    nccl_version_text(a->version, version);
    if (failed || lacks || a->version < NCCL_LEAST) {
        snprintf(why, cap, FILE_NAME " is NCCL %s, which is too old; 2.14 or newer is needed",
                 failed ? "of an unknown version" : version);
        return 0;
    }
    return 1;
}
