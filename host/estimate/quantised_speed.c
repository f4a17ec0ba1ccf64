// quantised_speed.c: see quantised_speed.h.
#include "estimate/quantised_speed.h"

#include "base/clock.h"

#include <stdlib.h>

// The largest trial. With these sizes it needs less memory than rlhf__speed_peak_bytes says.
enum { MOST = 4096, CELLS = 1 << 22, MANY = 512, SOME = 32, REPEATS = 3 };

struct trial {
    const rlhf_compute *t;
    int32_t dtype, busy, k, n;
    rlhf_weight *w;
    rlhf_dev x, y; // [MANY, k] and [MANY, n]
};

// Returns the least seconds of a product, or 0 on failure.
static double least_time(const struct trial *x, uint32_t rows, int backward) {
    const rlhf_compute *t = x->t;
    double best = 0;
    for (int i = 0; i <= REPEATS; i++) {
        const double from = rlhf__seconds(), cpu = rlhf__cpu_seconds();
        const rlhf_status st = backward
                                   ? t->linear_dx(t->ctx, x->x, x->dtype, 0, x->y, x->w, rows)
                                   : t->linear(t->ctx, x->y, x->dtype, 0, x->x, x->w, NULL, rows);
        if (st != RLHF_OK || t->sync(t->ctx) != RLHF_OK) return 0;
        const double took = x->busy ? (rlhf__cpu_seconds() - cpu) / (t->threads ? t->threads : 1)
                                    : rlhf__seconds() - from;
        if (i > 0 && (best == 0 || took < best)) best = took; // the first one also prepares
    }
    return best;
}

// The line through the times of two numbers of rows, for each of `elements`.
static void line(double to[2], double elements, uint32_t less, double time, uint32_t more,
                 double time_more) {
    const double row = (time_more - time) / (more - less);
    to[1] = (row > 0 ? row : 0) / elements;
    to[0] = time / elements - less * to[1];
    if (to[0] < 0) to[0] = 0; // noise
}

static rlhf_status put_blocks(const struct trial *x, int32_t format) {
    const uint64_t bytes = (uint64_t)x->n * rlhf_format_row_bytes(format, x->k);
    uint8_t *blocks = bytes ? malloc(bytes) : NULL;
    if (!blocks) return bytes ? RLHF_E_NOMEM : RLHF_E_INVALID;
    for (uint64_t i = 0; i < bytes; i++)
        blocks[i] = (uint8_t)(0x20 | (i * 7 & 15)); // f16 scales are small positive numbers
    const rlhf_status st = x->t->weight_put(x->t->ctx, x->w, 0, x->n, blocks);
    free(blocks);
    return st;
}

static rlhf_status prepare(struct trial *x, int32_t format) {
    const rlhf_compute *t = x->t;
    const uint64_t size = rlhf_dtype_size(x->dtype);
    const rlhf_quantised a = {sizeof a, x->k,    x->n, x->dtype, RLHF_WEIGHT_BACKWARD,
                              1,        &format, &x->n};
    RLHF_TRY(t->weight_create_quantised(t->ctx, &a, &x->w));
    RLHF_TRY(put_blocks(x, format));
    RLHF_TRY(t->alloc(t->ctx, (uint64_t)MANY * (uint64_t)x->k * size, &x->x));
    RLHF_TRY(t->alloc(t->ctx, (uint64_t)MANY * (uint64_t)x->n * size, &x->y));
    RLHF_TRY(t->zero(t->ctx, x->x, (uint64_t)MANY * (uint64_t)x->k * size));
    return t->zero(t->ctx, x->y, (uint64_t)MANY * (uint64_t)x->n * size);
}

void rlhf__quantised_speed_measure(const rlhf_compute *t, int32_t dtype, int32_t format, int32_t k,
                                   int32_t n, int busy, struct rlhf__quantised_speed *out) {
    const int32_t most_k = k < MOST ? k : MOST, most_n = n < MOST ? n : MOST;
    struct trial x = {.t = t, .dtype = dtype, .busy = busy, .k = most_k};
    *out = (struct rlhf__quantised_speed){.back = 0};
    if (!RLHF_COMPUTE_HAS(t, weight_create_quantised) || k < 1 || n < 1) return;
    x.n = most_n < CELLS / most_k ? most_n : CELLS / most_k;
    if (prepare(&x, format) == RLHF_OK) {
        const double one = least_time(&x, 1, 0);
        const double few = least_time(&x, RLHF__QUANTISED_FEW, 0);
        const double some = least_time(&x, SOME, 0), many = least_time(&x, MANY, 0);
        const double back = least_time(&x, MANY, 1), elements = (double)x.k * x.n;
        if (one > 0 && few > 0 && some > 0 && many > 0 && back > 0) {
            line(out->few, elements, 1, one, RLHF__QUANTISED_FEW, few);
            line(out->many, elements, SOME, some, MANY, many);
            out->back = back / many;
        }
    }
    t->weight_destroy(t->ctx, x.w);
    t->release(t->ctx, x.x);
    t->release(t->ctx, x.y);
}

double rlhf__quantised_speed_seconds(const struct rlhf__quantised_speed *s, double elements,
                                     uint32_t rows, int backward) {
    const double *line = rows <= RLHF__QUANTISED_FEW ? s->few : s->many;
    return elements * (line[0] + rows * line[1]) * (backward ? s->back : 1);
}
