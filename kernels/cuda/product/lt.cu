// lt.cu: opens cuBLASLt by its file name, checks its version and functions, and describes it.
#include "product/lt.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// The sonames, newest first, and the directories to search, in order; "" is the loader's search
// path. The emulation opens a library only if RLHF_CUBLASLT names it, because the real library
// cannot use the emulation's memory.
static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
enum { N_NAMES = sizeof names / sizeof *names };
#ifdef __CUDACC__
static const char *const dirs[] = {"", "/usr/local/cuda/lib64/"};
enum { N_DIRS = sizeof dirs / sizeof *dirs };
#else
static const char *const *const dirs = NULL;
enum { N_DIRS = 0 };
#endif

enum { LEAST_SM = 90 }; // below 9.0, rows depend on each other even without split-k

#define VERSION(v)                                                                                 \
    rlhf__lt_version_part((v), 0), rlhf__lt_version_part((v), 1), rlhf__lt_version_part((v), 2)

static void *open_one(const char *file, char *why, size_t cap) {
    void *so = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!so) {
        const char *text = dlerror();
        snprintf(why, cap, "%.*s", (int)cap - 1, text ? text : file);
    }
    return so;
}

// Open the newest library in `dir`, which must end with a slash or be "" for the loader's search
// path. If the newest library cannot be opened, tries the older ones. Returns NULL if none can be
// opened; `why` then has the reason for the newest.
static void *open_in(const char *dir, char *why, size_t cap) {
    char path[4096], later[160];
    for (int i = 0; i < N_NAMES; i++) {
        snprintf(path, sizeof path, "%.4000s%s", dir, names[i]);
        void *so = open_one(path, i ? later : why, i ? sizeof later : cap);
        if (so) return so;
    }
    return NULL;
}

static int is_dir(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

// Returns the library. If it is not found, returns NULL with the reason from the first place
// searched.
static void *open_any(char *why, size_t cap) {
    const char *named = getenv("RLHF_CUBLASLT");
    if (named && *named && is_dir(named)) {
        char dir[4096];
        snprintf(dir, sizeof dir, "%.4000s/", named);
        return open_in(dir, why, cap);
    }
    if (named && *named) return open_one(named, why, cap);
    snprintf(why, cap, "RLHF_CUBLASLT names no file");
    for (int i = 0; i < N_DIRS; i++) {
        char later[160];
        void *so = open_in(dirs[i], i ? later : why, i ? sizeof later : cap);
        if (so) return so;
    }
    return NULL;
}

// The name of a function that the library lacks, or NULL.
static const char *functions_find(struct rlhf__cuda_lt *lt) {
#define FIND(name, result, params)                                                                 \
    {                                                                                              \
        void *f = dlsym(lt->so, #name);                                                            \
        if (!f) return #name;                                                                      \
        memcpy(&lt->api.name, &f, sizeof f);                                                       \
    }
    RLHF__LT_FUNCTIONS(FIND)
#undef FIND
    return NULL;
}

// Open the library and create its handle, or explain why it is not used.
static void start(struct rlhf__cuda *cu) {
    struct rlhf__cuda_lt *lt = rlhf__lt_of(cu);
    char why[160];
    lt->so = open_any(why, sizeof why);
    if (!lt->so) {
        rlhf__lt_detail(cu, "own products (cuBLASLt: %s)", why);
        return;
    }
    const char *lacks = functions_find(lt);
    if (lacks) {
        rlhf__lt_detail(cu, "own products (cuBLASLt lacks %s)", lacks);
        return;
    }
    lt->version = lt->api.cublasLtGetVersion();
    if (rlhf__lt_version_part(lt->version, 0) < 12 || rlhf__lt_version_part(lt->version, 0) > 13) {
        rlhf__lt_detail(cu, "own products (cuBLASLt %llu.%llu.%llu, used are 12 and 13)",
                        VERSION(lt->version));
        return;
    }
    const rlhf__lt_status st = lt->api.cublasLtCreate(&lt->handle);
    if (st != RLHF__LT_SUCCESS) {
        lt->handle = NULL;
        rlhf__lt_detail(cu, "own products (cuBLASLt %llu.%llu.%llu does not start: %s)",
                        VERSION(lt->version), lt->api.cublasLtGetStatusName(st));
        return;
    }
    cu->library = rlhf__lt_product;
    if (lt->free) cu->table.flags &= ~(uint32_t)RLHF_COMPUTE_ROW_EXACT;
    rlhf__lt_say(cu);
}

static int mode_is(const char *name) {
    const char *mode = getenv("RLHF_CUDA_LT");
    return mode && strcmp(mode, name) == 0;
}

rlhf_status rlhf__lt_mode_check(struct rlhf__cuda *cu) {
    const char *mode = getenv("RLHF_CUDA_LT");
    if (!mode || !*mode || mode_is("off") || mode_is("force") || mode_is("free")) return RLHF_OK;
    return rlhf__cuda_fail(cu, RLHF_E_UNSUPPORTED,
                           "RLHF_CUDA_LT is \"%s\", allowed are off, force, free", mode);
}

rlhf_status rlhf__lt_open(struct rlhf__cuda *cu) {
    const int off = mode_is("off"), force = mode_is("force"), any = mode_is("free");
    RLHF_TRY(rlhf__lt_mode_check(cu));
    struct rlhf__cuda_lt *lt = (struct rlhf__cuda_lt *)calloc(1, sizeof *lt);
    cu->lt = lt;
    if (!lt) return rlhf__cuda_fail(cu, RLHF_E_NOMEM, "out of host memory for cuBLASLt");
    lt->detail_at = strlen(cu->detail);
    lt->free = any;
    if (off)
        rlhf__lt_detail(cu, "own products (RLHF_CUDA_LT=off)");
    else if (cu->sm < LEAST_SM && !force && !any)
        rlhf__lt_detail(cu, "own products (cuBLASLt is used from compute capability 9.0 on)");
    else
        start(cu);
    if (!lt->handle) return RLHF_OK;
    return rlhf__cuda_check(
        cu, "cudaDeviceGetAttribute",
        cudaDeviceGetAttribute(&lt->multiprocessors, cudaDevAttrMultiProcessorCount, cu->gpu));
}

void rlhf__lt_close(struct rlhf__cuda *cu) {
    struct rlhf__cuda_lt *lt = rlhf__lt_of(cu);
    if (!lt) return;
    cu->library = NULL;
    cudaStreamSynchronize(cu->stream); // because queued GEMMs run code of the library
    rlhf__lt_plans_finish(lt);
    if (lt->handle) lt->api.cublasLtDestroy(lt->handle);
    if (lt->so) dlclose(lt->so);
    free(lt);
    cu->lt = NULL;
}
