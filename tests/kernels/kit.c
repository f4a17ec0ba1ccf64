// kit.c: backends and calls of the kernel tests. See kit.h.
#include "kit.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- backends ----

// The tables of kit_create.
struct opened {
    struct rlhf_test_backend b; // must stay the first member
    struct opened *next;
};
static struct opened *all_opened;

const rlhf_plugin *kit_load(const char *name, void **so) {
    const char *build = getenv("RLHF_BUILD_DIR");
    if (!build) fail_msg("RLHF_BUILD_DIR is not set; run through ctest");
    char path[4096];
    if (strcmp(name, "cuda_emu") == 0)
        snprintf(path, sizeof path, "%s/tests/cuda/kernels_cuda_emu.so", build);
    else
        snprintf(path, sizeof path, "%s/lib/rlhf/%d/kernels/kernels_%s.so", build, RLHF_ABI_MAJOR,
                 name);
    const rlhf_plugin *p = rlhf_test_backend_load(path);
    *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!p || !*so) fail_msg("%s cannot be loaded", path);
    return p;
}

rlhf_compute *kit_create(const rlhf_plugin *p, uint32_t threads, uint32_t guard,
                         uint64_t workspace) {
    const rlhf_kernels_open opt = {.size = sizeof opt,
                                   .threads = threads,
                                   .guard = guard || getenv("RLHF_TEST_GUARD"),
                                   .workspace_bytes = workspace};
    struct opened *o = calloc(1, sizeof *o);
    assert_non_null(o);
    if (rlhf_test_backend_open(&o->b, p, &opt) < 0) fail_msg("open: %s", o->b.said);
    o->next = all_opened;
    all_opened = o;
    return o->b.c;
}

static struct opened **find(const rlhf_compute *c) {
    struct opened **at = &all_opened;
    while (*at && (*at)->b.c != c)
        at = &(*at)->next;
    if (!*at) fail_msg("a table that kit_create did not open");
    return at;
}

void kit_destroy(rlhf_compute *c) {
    if (!c) return;
    struct opened **at = find(c), *o = *at;
    *at = o->next;
    rlhf_test_backend_close(&o->b);
    free(o);
}

rlhf_compute *kit_backend(const struct kit *k, int i) { return i == 0 ? k->ref : k->cpu2; }

const char *kit_said(const rlhf_compute *c) { return (*find(c))->b.said; }

int kit_setup(void **state) {
    struct kit *k = calloc(1, sizeof *k);
    k->kernels_ref = kit_load("reference", &k->so_ref);
    const char *backend = getenv("RLHF_TEST_BACKEND"); // cpu, cuda_emu, or cuda
    k->kernels_cpu = kit_load(backend ? backend : "cpu", &k->so_cpu);
    k->ref = kit_create(k->kernels_ref, 1, 0, 0);
    k->cpu1 = kit_create(k->kernels_cpu, 1, 0, 0);
    k->cpu2 = kit_create(k->kernels_cpu, 2, 0, 0);
    for (uint32_t i = 0; i < KIT_MORE && k->cpu2->device == RLHF_DEVICE_CPU; i++)
        k->more[i] = kit_create(k->kernels_cpu, 4u << i, 0, 0);
    printf("%s backend: %s\n", k->cpu2->name, k->cpu2->detail);
    *state = k;
    return 0;
}

int kit_teardown(void **state) {
    struct kit *k = *state;
    if (!k) return 0; // setup failed and has reported it
    for (uint32_t i = 0; i < KIT_MORE; i++)
        kit_destroy(k->more[i]);
    kit_destroy(k->cpu2);
    kit_destroy(k->cpu1);
    kit_destroy(k->ref);
    free(k);
    return 0;
}

void kit_ok(rlhf_compute *c, rlhf_status st, const char *expr, int line) {
    if (st == RLHF_OK) return;
    fail_msg("line %d: %s on %s: status %d, %s", line, expr, c->name, st, kit_said(c));
}

void kit_refused(rlhf_compute *c, rlhf_status got, rlhf_status want, const char *what) {
    const char *text = kit_said(c);
    printf("  %s, %s: %d \"%s\"\n", c->name, what, got, text);
    if (want == RLHF_E_INVALID && got == RLHF_E_UNSUPPORTED) want = got;
    assert_int_equal(got, want);
    assert_true(strlen(text) > 10);
}

// ---- one call ----

void call_finish(struct call *k) {
    for (uint32_t i = 0; i < k->n_dev; i++)
        k->c->release(k->c->ctx, k->dev[i]);
    for (uint32_t i = 0; i < k->n_weight; i++)
        k->c->weight_destroy(k->c->ctx, k->weight[i]);
    for (uint32_t i = 0; i < k->n_host; i++)
        free(k->host[i]);
    k->n_dev = k->n_weight = k->n_host = 0;
}

void *call_host(struct call *k, uint64_t bytes) {
    assert_true(k->n_host < CALL_MAX);
    void *p = calloc(1, bytes ? bytes : 1);
    assert_non_null(p);
    k->host[k->n_host++] = p;
    return p;
}

// Number i of a tensor: mean 0, variance 1, close to normal (a sum of four uniform numbers).
static double normal(uint64_t tag, uint64_t i) {
    uint64_t z = i * 0x9e3779b97f4a7c15u + tag * 0xd1342543de82ef95u + 0x632be59bd9b4e019u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    const uint64_t sum = (z & 0xffff) + (z >> 16 & 0xffff) + (z >> 32 & 0xffff) + (z >> 48);
    return ((double)sum / 65536.0 - 2.0) * 1.7320508075688772;
}

float *call_normal(struct call *k, uint64_t tag, uint64_t n, double scale) {
    float *x = call_host(k, n * sizeof *x);
    for (uint64_t i = 0; i < n; i++)
        x[i] = (float)(scale * normal(tag, i));
    return x;
}

float *call_normal_rows(struct call *k, uint64_t tag, uint64_t width, double scale) {
    float *x = call_host(k, k->n_rows * width * sizeof *x);
    for (uint32_t i = 0; i < k->n_rows; i++)
        for (uint64_t c = 0; c < width; c++)
            x[i * width + c] = (float)(scale * normal(tag, k->rows[i] * width + c));
    return x;
}

rlhf_dev call_zeros(struct call *k, uint64_t n, int32_t dtype) {
    assert_true(k->n_dev < CALL_MAX);
    rlhf_dev p = NULL;
    KIT_OK(k->c, k->c->alloc(k->c->ctx, n * rlhf_dtype_size(dtype), &p));
    k->dev[k->n_dev++] = p;
    return p;
}

static uint16_t to_bf16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t half = 0x7fffu + ((bits >> 16) & 1u); // ties go to the even neighbor
    return (uint16_t)((bits + half) >> 16);
}

static float from_bf16(uint16_t h) {
    const uint32_t bits = (uint32_t)h << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

float kit_bf16(float x) { return from_bf16(to_bf16(x)); }

rlhf_dev call_floats(struct call *k, const float *x, uint64_t n, int32_t dtype) {
    rlhf_dev p = call_zeros(k, n, dtype);
    if (dtype == RLHF_F32) {
        KIT_OK(k->c, k->c->upload(k->c->ctx, p, x, n * sizeof *x));
        return p;
    }
    uint16_t *h = malloc(n ? n * sizeof *h : 1);
    for (uint64_t i = 0; i < n; i++)
        h[i] = to_bf16(x[i]);
    rlhf_status st = k->c->upload(k->c->ctx, p, h, n * sizeof *h);
    free(h);
    KIT_OK(k->c, st);
    return p;
}

rlhf_dev call_ints(struct call *k, const int32_t *x, uint64_t n) {
    rlhf_dev p = call_zeros(k, n, RLHF_I32);
    KIT_OK(k->c, k->c->upload(k->c->ctx, p, x, n * sizeof *x));
    return p;
}

rlhf_weight *call_weight(struct call *k, const float *x, int32_t rows, int32_t cols, int32_t dtype,
                         uint32_t flags) {
    assert_true(k->n_weight < CALL_MAX);
    rlhf_weight *w = NULL;
    KIT_OK(k->c, k->c->weight_create(k->c->ctx, rows, cols, dtype, flags, &w));
    k->weight[k->n_weight++] = w;
    rlhf_dev src = call_floats(k, x, (uint64_t)rows * (uint64_t)cols, RLHF_F32);
    KIT_OK(k->c, k->c->weight_pack(k->c->ctx, w, src));
    return w;
}

void kit_read(rlhf_compute *c, float *to, rlhf_dev p, uint64_t n, int32_t dtype) {
    if (dtype == RLHF_F32) {
        KIT_OK(c, c->download(c->ctx, to, p, n * sizeof *to));
        return;
    }
    uint16_t *h = malloc(n ? n * sizeof *h : 1);
    rlhf_status st = c->download(c->ctx, h, p, n * sizeof *h);
    for (uint64_t i = 0; st == RLHF_OK && i < n; i++)
        to[i] = from_bf16(h[i]);
    free(h);
    KIT_OK(c, st);
}
