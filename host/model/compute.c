// compute.c: see compute.h.
#include "model/compute.h"

#include "base/hash.h"
#include "base/running.h"

#include <rlhf/log.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Plugins, and programs that the run starts, may use GCC's OpenMP: PyTorch in a Python reward does.
// Its threads spin for milliseconds before they sleep, on the cores that the backend's threads
// need. This function makes them sleep soon, which costs nothing on an idle machine. It must run
// before rewards are opened, because libgomp reads the environment when it is loaded.
static void shorten_spinning(void) {
    if (!getenv("OMP_WAIT_POLICY")) setenv("GOMP_SPINCOUNT", "1000", 0);
}

// clang-format off
#define MUST_HAVE(X)                                                                              \
    X(name) X(detail) X(alloc) X(release) X(bytes_in_use) X(upload) X(download) X(copy) X(zero)        \
    X(convert) X(sync)
// clang-format on
#define RETURN_IF_LACKING(f)                                                                       \
    if (!RLHF_COMPUTE_HAS(t, f)) return #f;

// Returns the name of a required member that this table lacks, or NULL.
static const char *lacking(const rlhf_compute *t) {
    MUST_HAVE(RETURN_IF_LACKING)
    return NULL;
}

// Copies the table that open() made.
static rlhf_status read_table(struct rlhf__compute *c, struct rlhf__error *err) {
    rlhf_compute *t = &c->read;
    if (!c->made)
        return rlhf__fail(err, RLHF_E_INVALID, "compute backend '%s': open() made no table",
                          c->path);
    rlhf_status st =
        rlhf__copy_in(t, sizeof *t, c->made, RLHF_SIZE_TO(rlhf_compute, sync), "rlhf_compute", err);
    if (st != RLHF_OK) return rlhf__error_context(err, "compute backend '%s'", c->path);
    t->size = sizeof *t; // members that a shorter table lacks are NULL
    t->reserved = 0;
    if (lacking(t))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "compute backend '%s' has no %s, which every backend must have", c->path,
                          lacking(t));
    if (t->flags & ~(uint32_t)RLHF_COMPUTE_KNOWN)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "compute backend '%s' sets bit %d of the flags of its table, which this "
                          "host does not know",
                          c->path, __builtin_ctz(t->flags & ~(uint32_t)RLHF_COMPUTE_KNOWN));
    c->table = t;
    return RLHF_OK;
}

#define CONTEXT   "compute backend '%s': "
#define OTHERWISE "; use compute.backend=cpu, or set compute.arithmetic=auto"

// Creates a table with the loaded backend.
static rlhf_status make_table(struct rlhf__compute *c, const struct rlhf__compute_spec *spec,
                              struct rlhf__error *err) {
    char text[512];
    const rlhf_kernels_open o = {.size = sizeof o,
                                 .threads = spec->threads,
                                 .gpu = spec->gpu,
                                 .guard = spec->guard,
                                 .workspace_bytes = spec->workspace_bytes,
                                 .arithmetic = spec->arithmetic};
    struct rlhf__call call = rlhf__call_begin(c->kernels.instance, "open()");
    const rlhf_status st =
        c->kernels.plugin->ops.kernels.open(c->kernels.instance->self, &o, &c->made);
    rlhf__running_end(&call.before);
    if (st != RLHF_OK)
        return rlhf__fail(err, st < 0 ? st : (rlhf_status)RLHF_E_INTERNAL, CONTEXT "%s%s",
                          spec->backend, rlhf__call_why(&call, st, text, sizeof text),
                          st == RLHF_E_UNSUPPORTED && spec->arithmetic ? OTHERWISE : "");
    return read_table(c, err);
}

// Copies the names of the table's f32 arithmetic and bf16 arithmetic. If `wanted` is not NULL, both
// names must equal it. Errors: RLHF_E_UNSUPPORTED.
static rlhf_status read_arithmetic(struct rlhf__compute *c, const char *wanted,
                                   struct rlhf__error *err) {
    const char *const names[] = {c->table->arithmetic_f32, c->table->arithmetic_bf16};
    for (int i = 0; i < 2; i++) {
        snprintf(c->arithmetic[i], sizeof c->arithmetic[i], "%s", names[i] ? names[i] : "");
        if (wanted && strcmp(c->arithmetic[i], wanted) != 0)
            return rlhf__fail(
                err, RLHF_E_UNSUPPORTED,
                "compute.arithmetic is %s, but the compute backend %s does not promise "
                "these bits" OTHERWISE,
                wanted, c->table->name);
    }
    return RLHF_OK;
}

// If the device has its own memory, asks how much of it is free.
static rlhf_status look_at_device(struct rlhf__compute *c, const struct rlhf__compute_spec *spec,
                                  struct rlhf__error *err) {
    struct rlhf__device_info d;
    const rlhf_status st = rlhf__kernels_describe(&c->kernels, spec->gpu, &d, err);
    if (c->table->device != RLHF_DEVICE_CPU)
        c->device_memory = (struct rlhf__free_memory){
            d.memory_free + c->table->bytes_in_use(c->table->ctx), d.memory};
    rlhf__device_info_finish(&d);
    return st;
}

static rlhf_status open_into(struct rlhf__compute *c, const struct rlhf__compute_spec *spec,
                             struct rlhf__error *err) {
    RLHF_TRY(rlhf__compute_find(spec->dirs, spec->backend, c->path, err));
    shorten_spinning();
    RLHF_TRY(rlhf__kernels_load(spec->dirs, spec->backend, spec->log, &c->kernels, err));
    RLHF_TRY(make_table(c, spec, err));
    RLHF_TRY(read_arithmetic(c, spec->arithmetic, err));
    RLHF_TRY(look_at_device(c, spec, err));
    return rlhf__sha256_file(c->path, c->sha256, err);
}

static rlhf_status open_named(const struct rlhf__compute_spec *spec, struct rlhf__compute **out,
                              struct rlhf__error *err) {
    *out = NULL;
    struct rlhf__compute *c = calloc(1, sizeof *c);
    if (!c) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory opening a compute backend");
    c->gpu = spec->gpu;
    rlhf_status st = open_into(c, spec, err);
    if (st != RLHF_OK) {
        rlhf__compute_close(c);
        return st;
    }
    *out = c;
    return RLHF_OK;
}

// ---- auto: the GPU if there is a usable one, else the CPU ----

#define PCI_DEVICES "/sys/bus/pci/devices"

// Called after a card could not be used. Returns the number of cards, or 0 if the backend cannot
// describe itself. Sets *driver to 1 if there is a driver.
static uint32_t look_again(const struct rlhf__compute_spec *spec, const char *path, int *driver) {
    struct rlhf__kernels kernels;
    struct rlhf__device_info d = {0};
    struct rlhf__error unread;
    uint32_t devices = 0;
    *driver = 0;
    if (rlhf__kernels_load(spec->dirs, path, NULL, &kernels, &unread) == RLHF_OK &&
        rlhf__kernels_describe(&kernels, spec->gpu, &d, &unread) == RLHF_OK) {
        devices = d.devices;
        *driver = d.driver[0] != 0;
    }
    rlhf__device_info_finish(&d);
    rlhf__kernels_finish(&kernels);
    return devices;
}

// Opens the CPU backend, because the GPU cannot be used; `why` is the reason. The reason is logged
// at level INFO if there is a card or its driver, or if the user named a card; otherwise at DEBUG.
static rlhf_status open_cpu(const struct rlhf__compute_spec *spec, const char *why, int has_card,
                            struct rlhf__compute **out, struct rlhf__error *err) {
    struct rlhf__compute_spec cpu = *spec;
    cpu.backend = "cpu";
    cpu.gpu = 0;
    struct rlhf__compute *c = NULL;
    rlhf_status st = open_named(&cpu, &c, err);
    if (st != RLHF_OK || !c) return st;
    const int bothered = has_card || spec->gpu > 0 || rlhf__nvidia_cards(PCI_DEVICES) > 0;
    c->passed_level = bothered ? RLHF_LOG_INFO : RLHF_LOG_DEBUG;
    snprintf(c->passed_over, sizeof c->passed_over, "%.1000s", why);
    *out = c;
    return RLHF_OK;
}

static rlhf_status open_auto(const struct rlhf__compute_spec *spec, struct rlhf__compute **out,
                             struct rlhf__error *err) {
    struct rlhf__compute_spec gpu = *spec;
    char path[RLHF__PATH_CAP];
    struct rlhf__error why;
    int driver;
    if (spec->arithmetic)
        return open_cpu(spec, "compute.arithmetic asks for bits that only CPUs give", 0, out, err);
    gpu.backend = "cuda";
    rlhf__path_put(path, "%s/kernels/kernels_cuda.so", spec->dirs->lib);
    if (!rlhf__is_file(path))
        return open_cpu(spec, "rlhf-host was built without the CUDA backend (nvcc was not found)",
                        0, out, err);
    // Without a card, do not even load CUDA's runtime library: loading takes time, and the library
    // crashes when an allocation fails.
    if (spec->gpu == 0 && !rlhf__nvidia_signs(""))
        return open_cpu(spec,
                        "there is no NVIDIA card (no /dev/nvidiactl, no /dev/dxg, none on the PCI "
                        "bus, and CUDA_VISIBLE_DEVICES names none)",
                        0, out, err);
    const rlhf_status st = open_named(&gpu, out, &why);
    if (st == RLHF_OK) return RLHF_OK;
    if (st == RLHF_E_UNSUPPORTED) { // wrong options or environment: do not use the CPU instead
        *err = why;
        return st;
    }
    const uint32_t devices = look_again(spec, path, &driver);
    if (devices && spec->gpu >= devices) { // if the user named a card, do not use the CPU instead
        *err = why;
        return st;
    }
    static const char context[] = "compute backend 'cuda': ";
    const size_t n = strncmp(why.text, context, sizeof context - 1) == 0 ? sizeof context - 1 : 0;
    return open_cpu(spec, why.text + n, devices > 0 || driver, out, err);
}

rlhf_status rlhf__compute_open(const struct rlhf__compute_spec *spec, struct rlhf__compute **out,
                               struct rlhf__error *err) {
    return strcmp(spec->backend, "auto") == 0 ? open_auto(spec, out, err)
                                              : open_named(spec, out, err);
}

void rlhf__compute_close(struct rlhf__compute *c) {
    if (!c) return;
    if (c->made) c->kernels.plugin->ops.kernels.close(c->kernels.instance->self, c->made);
    rlhf__kernels_finish(&c->kernels);
    free(c);
}

rlhf_status rlhf__compute_draws(const rlhf_compute *c, const rlhf_dist *d,
                                struct rlhf__error *err) {
    if (d->min_p <= 0 || (c->flags & RLHF_COMPUTE_MIN_P)) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                      "min_p is %g, but the compute backend %s has no min-p sampling; set it to 0, "
                      "or use compute.backend=cpu",
                      d->min_p, c->name);
}

uint32_t rlhf__compute_slots(const rlhf_compute *t, int64_t configured) {
    if (configured > 0) return (uint32_t)configured;
    return RLHF_COMPUTE_HAS(t, slots_hint) ? t->slots_hint : 64;
}

int64_t rlhf__compute_microbatch(const rlhf_compute *t, int64_t configured, int64_t vocab) {
    enum { TOKENS = 4096, LARGE_VOCAB = 65536, LOGITS = (384 << 20) / sizeof(float) };
    if (configured > 0) return configured;
    if (RLHF_COMPUTE_HAS(t, microbatch_hint)) return t->microbatch_hint;
    if (vocab <= LARGE_VOCAB) return TOKENS;
    return vocab < LOGITS ? LOGITS / vocab : 1;
}

const char *rlhf__compute_arithmetic(const struct rlhf__compute *c, int32_t dtype) {
    return c->arithmetic[dtype == RLHF_BF16];
}

int32_t rlhf__compute_dtype(const rlhf_compute *t, const char *configured) {
    if (strcmp(configured, "f32") == 0) return RLHF_F32;
    if (strcmp(configured, "bf16") == 0) return RLHF_BF16;
    return t->dtypes & (1u << RLHF_BF16) ? RLHF_BF16 : RLHF_F32;
}

const char *rlhf__compute_said(const struct rlhf__compute *c, rlhf_status st, char *out,
                               size_t cap) {
    if (rlhf__instance_said(c->kernels.instance, out, cap) != st) *out = 0;
    return out;
}

rlhf_status rlhf__compute_fail(const struct rlhf__instance *kernels, rlhf_status st,
                               const char *what, struct rlhf__error *err) {
    char text[512] = "";
    if (kernels && rlhf__instance_said(kernels, text, sizeof text) != st) *text = 0;
    return rlhf__fail(err, st, "%s: %s", what, *text ? text : rlhf__status_text(st));
}
