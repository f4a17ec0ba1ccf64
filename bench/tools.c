// tools.c: functions used by every part of rlhf-bench; see bench.h.
#include "bench.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double bench_now(const struct bench *b) {
    struct timespec t;
    if (b->c->device != RLHF_DEVICE_CPU) bench_check(b, b->c->sync(b->c->ctx), "sync");
    clock_gettime(b->cpu_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void bench_die(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fputs("rlhf-bench: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(1);
}

void bench_check(const struct bench *b, rlhf_status st, const char *what) {
    if (st < 0) bench_die("%s failed (%d): %s", what, st, b->kernels->said);
}

rlhf_dev bench_random(const struct bench *b, uint64_t n, int32_t dtype) {
    const rlhf_compute *c = b->c;
    rlhf_dev f = NULL, out = NULL;
    float *host = malloc(n * sizeof *host);
    if (!host) bench_die("out of memory");
    uint32_t x = 12345;
    for (uint64_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        host[i] = ((float)(x >> 8) * 0x1p-24f - 0.5f) * 0.1f;
    }
    bench_check(b, c->alloc(c->ctx, n * sizeof *host, &f), "alloc");
    bench_check(b, c->upload(c->ctx, f, host, n * sizeof *host), "upload");
    free(host);
    if (dtype == RLHF_F32) return f;
    bench_check(b, c->alloc(c->ctx, n * 2, &out), "alloc");
    bench_check(b, c->convert(c->ctx, out, dtype, f, RLHF_F32, n), "convert");
    c->release(c->ctx, f);
    return out;
}

rlhf_dev bench_numbers(const struct bench *b, uint64_t n, uint64_t first, uint64_t step,
                       uint64_t of) {
    int32_t *host = malloc(n * sizeof *host);
    rlhf_dev dev = NULL;
    if (!host) bench_die("out of memory");
    for (uint64_t i = 0; i < n; i++)
        host[i] = (int32_t)((first + i * step) % of);
    bench_check(b, b->c->alloc(b->c->ctx, n * sizeof *host, &dev), "alloc");
    bench_check(b, b->c->upload(b->c->ctx, dev, host, n * sizeof *host), "upload");
    free(host);
    return dev;
}

void *bench_zeros(size_t n) {
    void *p = calloc(n, 4);
    if (!p) bench_die("out of memory");
    return p;
}

void bench_load(struct bench *b) {
    char path[4200];
    if (strchr(b->backend, '/'))
        snprintf(path, sizeof path, "%s", b->backend);
    else
        snprintf(path, sizeof path, "%s/kernels/kernels_%s.so", b->lib_dir, b->backend);
    const rlhf_plugin *p = rlhf_test_backend_load(path);
    if (!p) bench_die("%s cannot be loaded", path);
    const rlhf_kernels_open opt = {.size = sizeof opt, .threads = b->threads};
    struct rlhf_test_backend *kernels = malloc(sizeof *kernels); // never freed
    if (!kernels) bench_die("out of memory");
    if (rlhf_test_backend_open(kernels, p, &opt) < 0) bench_die("%s: %s", path, kernels->said);
    b->kernels = kernels;
    b->c = kernels->c;
}

double bench_peak_of(const struct bench *b) {
    return b->dtype == RLHF_BF16 && b->peak_bf16 > 0 ? b->peak_bf16 : b->peak_f32;
}
