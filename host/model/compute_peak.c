// compute_peak.c: rlhf__compute_peak of compute.h.
#include "model/compute.h"

#include "base/clock.h"

#include <rlhf/rng.h>

#include <stdlib.h>

enum { NUMBERS = 1 << 18 };

// Random f32 numbers in all of `to` [n]: what a GPU is fed with decides how fast its clock is. The
// device multiplies what it was given once by copies of its own.
static rlhf_status fill(const rlhf_compute *t, rlhf_dev to, uint64_t n) {
    rlhf_rng rng = {.seed = 1, .stream = rlhf_rng_stream("peak")};
    float *x = malloc(NUMBERS * sizeof *x);
    if (!x) return RLHF_E_NOMEM;
    for (uint64_t i = 0; i < NUMBERS; i++)
        x[i] = (float)(rlhf_rng_next(&rng) - 0.5);
    uint64_t done = n < NUMBERS ? n : NUMBERS;
    rlhf_status st = t->upload(t->ctx, to, x, done * sizeof *x);
    free(x);
    for (uint64_t more; st == RLHF_OK && done < n; done += more) {
        more = n - done < done ? n - done : done;
        st = t->copy(t->ctx, rlhf_dev_at(to, done * sizeof *x), to, more * sizeof *x);
    }
    return st;
}

// Weight and input of the product get random numbers, on a device of its own.
static rlhf_status feed(const rlhf_compute *t, rlhf_dev src, int32_t dim, rlhf_dev x, int32_t dtype,
                        uint32_t rows) {
    const uint64_t n = (uint64_t)rows * (uint64_t)dim, all = (uint64_t)dim * (uint64_t)dim;
    if (t->device == RLHF_DEVICE_CPU || n > all) return RLHF_OK;
    RLHF_TRY(fill(t, src, all));
    return t->convert(t->ctx, x, dtype, src, RLHF_F32, n);
}

// Best of repeated products of `rows` rows within `budget` seconds; 0 on failure.
static double best_product(const rlhf_compute *t, int32_t dtype, int32_t dim, uint32_t rows,
                           double budget) {
    uint64_t size = rlhf_dtype_size(dtype);
    if (!RLHF_COMPUTE_HAS(t, linear)) return 0;
    rlhf_dev src = NULL, x = NULL, y = NULL;
    rlhf_weight *w = NULL;
    double best = 0;
    if (t->alloc(t->ctx, (uint64_t)dim * (uint64_t)dim * 4, &src) == RLHF_OK &&
        t->alloc(t->ctx, (uint64_t)rows * (uint64_t)dim * size, &x) == RLHF_OK &&
        t->alloc(t->ctx, (uint64_t)rows * (uint64_t)dim * size, &y) == RLHF_OK &&
        t->weight_create(t->ctx, dim, dim, dtype, 0, &w) == RLHF_OK &&
        feed(t, src, dim, x, dtype, rows) == RLHF_OK && t->weight_pack(t->ctx, w, src) == RLHF_OK) {
        double flops = 2.0 * (double)rows * (double)dim * (double)dim, start = rlhf__seconds();
        for (int i = 0; i < 3 || rlhf__seconds() - start < budget; i++) {
            double from = rlhf__seconds();
            if (t->linear(t->ctx, y, dtype, 0, x, w, NULL, rows) != RLHF_OK ||
                t->sync(t->ctx) != RLHF_OK)
                break;
            double speed = flops / (rlhf__seconds() - from);
            if (i > 0 && speed > best) best = speed; // the first one prepares the kernel
        }
    }
    t->weight_destroy(t->ctx, w);
    t->release(t->ctx, src);
    t->release(t->ctx, x);
    t->release(t->ctx, y);
    return best;
}

#define LARGE 1024

double rlhf__compute_peak(const rlhf_compute *t, int32_t dtype) {
    double small = best_product(t, dtype, 256, 32, 0.002);
    if (small < 2e10) return small; // a naive backend: a large product would take seconds
    double best = best_product(t, dtype, LARGE, LARGE, 0.05);
    // A GPU has done that before it is full: the largest product that finds room.
    for (int32_t dim = 8192; t->device != RLHF_DEVICE_CPU && best > 1e12 && dim > 1024; dim /= 2) {
        double large = best_product(t, dtype, dim, (uint32_t)dim, 0.05);
        if (large > best) best = large;
        if (large > 0) break;
    }
    return best;
}

uint64_t rlhf__compute_peak_bytes(const rlhf_compute *t, int32_t dtype) {
    const uint64_t cells = (uint64_t)LARGE * LARGE;
    return t->device == RLHF_DEVICE_CPU ? cells * (4 + 3 * rlhf_dtype_size(dtype)) : 0;
}
