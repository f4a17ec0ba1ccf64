// devices.cu: see devices.h.
#include "devices.h"
#include "product/lt.h"
#include "reference/instance.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SM_LEAST 80 // least compute capability that the kernels are built for
#ifndef RLHF_CUDA_MAJORS
#define RLHF_CUDA_MAJORS (1 << 8 | 1 << 9) // major versions with machine code
#endif

namespace {
// The facts about a card. A text is "" if it is empty or unknown.
struct device_info {
    uint32_t devices;   // number of cards, including unusable ones; 0: see `missing`
    int32_t capability; // 10 * major + minor; 0: none
    uint64_t memory, memory_free;
    char name[128];
    char driver[64], runtime[64]; // versions
    char library[128];            // the library for matrix products
    char missing[512];            // one sentence: why open() would fail; "" = it would succeed
};
} // namespace

// CUDA's version number as text: 13000 becomes "13.0".
static void put_version(char *out, size_t cap, int version) {
    snprintf(out, cap, "%d.%d", version / 1000, version % 1000 / 10);
}

// The version of the kernel module, such as "580.65.06"; "" if unknown.
static void read_module(char *out, size_t cap) {
    char line[256] = "";
    out[0] = 0;
    FILE *f = fopen("/proc/driver/nvidia/version", "r");
    if (!f) return;
    if (fgets(line, sizeof line, f)) {
        // The line is "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  ..."
        const char *at = strstr(line, "Module");
        if (at) at += strcspn(at, "0123456789\n");
        if (at) snprintf(out, cap, "%.*s", (int)strspn(at, "0123456789."), at);
    }
    fclose(f);
}

// Read the versions of the driver and of the runtime. Returns the CUDA version that the driver
// supports, or 0 without a driver.
static int read_versions(struct device_info *d) {
    int driver = 0, runtime = 0;
    char module[32], cuda[16];
    if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
    if (cudaRuntimeGetVersion(&runtime) == cudaSuccess)
        put_version(d->runtime, sizeof d->runtime, runtime);
    read_module(module, sizeof module);
    put_version(cuda, sizeof cuda, driver);
    if (driver && module[0])
        snprintf(d->driver, sizeof d->driver, "%s (CUDA %s)", module, cuda);
    else if (driver || module[0])
        snprintf(d->driver, sizeof d->driver, "%s%s", driver ? "CUDA " : "",
                 driver ? cuda : module);
    return driver;
}

// Explains why no devices were found.
static void say_no_devices(struct device_info *d, int driver, cudaError_t e) {
    if (!driver)
        snprintf(d->missing, sizeof d->missing,
                 "there is no NVIDIA driver (libcuda.so.1 cannot be loaded); install the driver of "
                 "the card");
    else if (e == cudaErrorInsufficientDriver)
        snprintf(d->missing, sizeof d->missing,
                 "the NVIDIA driver is %s, older than the CUDA %s that this backend was built "
                 "with; install a newer driver",
                 d->driver, d->runtime);
    else if (e == cudaErrorNoDevice || e == cudaSuccess)
        snprintf(d->missing, sizeof d->missing,
                 "the NVIDIA driver sees no card (CUDA_VISIBLE_DEVICES may hide it)");
    else
        snprintf(d->missing, sizeof d->missing, "the cards cannot be counted: %s (CUDA error %d)",
                 cudaGetErrorString(e), (int)e);
}

static void read_card(struct device_info *d, int gpu) {
    cudaDeviceProp p;
    size_t left = 0, total = 0;
    cudaError_t e = cudaGetDeviceProperties(&p, gpu);
    if (e == cudaSuccess) {
        snprintf(d->name, sizeof d->name, "%.127s", p.name);
        d->memory = p.totalGlobalMem;
        d->capability = 10 * p.major + p.minor;
        if (d->capability < SM_LEAST) {
            snprintf(d->missing, sizeof d->missing,
                     "GPU %d (%s) has compute capability %d.%d; %d.%d and newer are supported", gpu,
                     d->name, p.major, p.minor, SM_LEAST / 10, SM_LEAST % 10);
            return;
        }
        e = cudaSetDevice(gpu);
    }
    if (e == cudaSuccess) e = cudaMemGetInfo(&left, &total);
    if (e == cudaSuccess) {
        d->memory = total;
        d->memory_free = left;
        return;
    }
    cudaGetLastError();
    snprintf(d->missing, sizeof d->missing, "GPU %d cannot be used: %s (CUDA error %d)", gpu,
             cudaGetErrorString(e), (int)e);
}

static void look(uint32_t gpu, struct device_info *d) {
    int count = 0;
    memset(d, 0, sizeof *d);
    const int driver = read_versions(d);
    const cudaError_t e = cudaGetDeviceCount(&count);
    if (e != cudaSuccess) cudaGetLastError();
    if (e != cudaSuccess || count <= 0) {
        say_no_devices(d, driver, e);
        return;
    }
    d->devices = (uint32_t)count;
    if (gpu < d->devices)
        read_card(d, (int)gpu);
    else if (count == 1)
        snprintf(d->missing, sizeof d->missing, "gpu is %u, but there is one card, 0", gpu);
    else
        snprintf(d->missing, sizeof d->missing, "gpu is %u, but there are %d cards, 0 to %d", gpu,
                 count, count - 1);
}

// Describes what computes GEMMs: the library, or own kernels and the reason for this.
static void read_library(struct device_info *d, uint32_t gpu) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)calloc(1, sizeof *cu);
    if (!cu) return;
    cu->gpu = (int)gpu;
    cu->sm = d->capability;
    if (rlhf__lt_open(cu) < 0)
        snprintf(d->missing, sizeof d->missing, "%s", cu->error);
    else
        snprintf(d->library, sizeof d->library, "%.*s", (int)sizeof d->library - 1, cu->detail);
    const size_t n = strlen(d->library);
    if (!(RLHF_CUDA_MAJORS >> d->capability / 10 & 1))
        snprintf(d->library + n, sizeof d->library - n,
                 "%sthe driver compiles the kernels when a program first starts on this card",
                 n ? "; " : "");
    rlhf__lt_close(cu);
    free(cu);
}

namespace {
struct question {
    uint32_t gpu;
    struct device_info answer;
};
} // namespace

static void *ask(void *arg) {
    struct question *q = (struct question *)arg;
    look(q->gpu, &q->answer);
    if (!q->answer.missing[0]) read_library(&q->answer, q->gpu);
    return NULL;
}

// Querying a card makes it the thread's current card, but the calls of an open context rely on
// their own card being current. So a separate thread makes the query. Switching back afterwards
// would allocate memory on the previous card, even if that card was not used before.
rlhf_status rlhf__cuda_describe(void *self, uint32_t gpu, const char **json) {
    struct rlhf__backend *b = (struct rlhf__backend *)self;
    struct rlhf__json *j = &b->json;
    struct question q;
    q.gpu = gpu;
    pthread_t thread;
    if (pthread_create(&thread, NULL, ask, &q) != 0)
        return (b->host->fail)(b->host, RLHF_E_NOMEM, "cannot start a thread to look at the card");
    pthread_join(thread, NULL);
    const struct device_info *d = &q.answer;
    rlhf__json_start(j);
    rlhf__json_number(j, "devices", d->devices);
    rlhf__json_text(j, "name", d->name);
    rlhf__json_text(j, "driver", d->driver);
    rlhf__json_text(j, "runtime", d->runtime);
    rlhf__json_text(j, "library", d->library);
    rlhf__json_number(j, "capability", (uint64_t)d->capability);
    rlhf__json_number(j, "memory", d->memory);
    rlhf__json_number(j, "memory_free", d->memory_free);
    rlhf__json_text(j, "missing", d->missing);
    return rlhf__backend_described(b, json);
}

rlhf_status rlhf__cuda_device_open(struct rlhf__cuda *cu, uint32_t gpu) {
    struct device_info d;
    look(gpu, &d);
    if (d.missing[0])
        return rlhf__cuda_fail(cu, d.capability >= SM_LEAST ? RLHF_E_DEVICE : RLHF_E_INVALID, "%s",
                               d.missing);
    cu->gpu = (int)gpu;
    cu->sm = d.capability;
    snprintf(cu->detail, sizeof cu->detail, "GPU %u, %s, %.1f GiB, sm_%d, driver %s", gpu, d.name,
             (double)d.memory / (1 << 30), d.capability, d.driver);
    RLHF_TRY(rlhf__cuda_check(cu, "cudaSetDevice", cudaSetDevice(cu->gpu)));
    return rlhf__cuda_check(
        cu, "cudaDeviceGetAttribute",
        cudaDeviceGetAttribute(&cu->shared_most, cudaDevAttrMaxSharedMemoryPerBlockOptin, cu->gpu));
}
