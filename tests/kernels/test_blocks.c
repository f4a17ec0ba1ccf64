// test_blocks.c: block-structured weights, and linear_sum. Compares cpu with the reference.
// Compares both operations bit for bit with the operations that they replace. Also tests that other
// rows and the number of threads do not change the bits, and that wrong arguments are refused.
#include "kit.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

struct shape {
    uint32_t rows;
    int32_t k, n, rank, dtype, out_dtype, accumulate, bias;
    uint32_t n_blocks;
    int32_t from[3], count[3];
    double scale;
};

static const struct bound f32_bound = {2e-11, 5e-5}, bf16_bound = {1e-8, 2e-2};

// Shapes with three blocks are like q, k and v, and those with two are like q and v alone. The
// others have a single block. With k = 5,000, a GEMM takes more than one pass of the backend's own
// tiles.
static const struct shape shapes[] = {
    {33, 96, 128, 16, RLHF_F32, RLHF_F32, 0, 1, 3, {0, 64, 96}, {64, 32, 32}, 2.0},
    {70, 96, 100, 5, RLHF_F32, RLHF_F32, 0, 0, 2, {0, 70}, {40, 30}, 0.5},
    {33, 96, 128, 16, RLHF_BF16, RLHF_BF16, 0, 1, 3, {0, 64, 96}, {64, 32, 32}, 2.0},
    {70, 96, 100, 5, RLHF_BF16, RLHF_BF16, 0, 0, 2, {0, 70}, {40, 30}, 0.5},
    {5, 33, 97, 1, RLHF_BF16, RLHF_BF16, 0, 1, 1, {0}, {97}, 1.0},
    {600, 160, 64, 64, RLHF_BF16, RLHF_BF16, 0, 0, 1, {0}, {64}, 1.0},
    {40, 256, 96, 8, RLHF_BF16, RLHF_F32, 1, 1, 1, {0}, {96}, 0.25},
    {40, 256, 96, 8, RLHF_F32, RLHF_F32, 1, 1, 1, {0}, {96}, 0.25},
    {9, 5000, 40, 4, RLHF_BF16, RLHF_BF16, 0, 1, 1, {0}, {40}, 1.0},
    {1, 64, 48, 16, RLHF_BF16, RLHF_BF16, 0, 0, 1, {8}, {16}, 3.0},
    // weights above the size up to which the CPU packs a weight for each direction
    {9, 1100, 3000, 8, RLHF_BF16, RLHF_BF16, 0, 0, 1, {0}, {3000}, 1.0},
    {9, 1100, 1500, 8, RLHF_F32, RLHF_F32, 0, 0, 1, {0}, {1500}, 1.0},
};

static void label(struct outputs *out, const char *op, const struct shape *s) {
    snprintf(out->label, sizeof out->label, "%s %u x %d x %d %s -> %s, rank %d, %u blocks%s%s", op,
             s->rows, s->k, s->n, s->dtype == RLHF_BF16 ? "bf16" : "f32",
             s->out_dtype == RLHF_BF16 ? "bf16" : "f32", s->rank, s->n_blocks,
             s->accumulate ? " add" : "", s->bias ? " bias" : "");
}

static uint64_t source_rows(const struct shape *s) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < s->n_blocks; i++)
        n += (uint64_t)s->count[i];
    return n;
}

static uint64_t inner(const struct shape *s) { return s->n_blocks * (uint64_t)s->rank; }

static rlhf_weight *keep(struct call *k, rlhf_weight *w) {
    k->weight[k->n_weight++] = w;
    return w;
}

// Makes a packed block-structured weight. `source` receives its values.
static rlhf_weight *blocks(struct call *k, const struct shape *s, const float **source) {
    const uint64_t n = source_rows(s) * (uint64_t)s->rank;
    const rlhf_blocks a = {sizeof a,    s->n,    s->rank,  s->dtype, RLHF_WEIGHT_BACKWARD,
                           s->n_blocks, s->from, s->count, s->scale};
    rlhf_weight *w = NULL;
    float *x = call_normal(k, 21, n, 0.2);
    KIT_OK(k->c, k->c->weight_create_blocks(k->c->ctx, &a, &w));
    keep(k, w);
    KIT_OK(k->c, k->c->weight_pack(k->c->ctx, w, call_floats(k, x, n, RLHF_F32)));
    if (source) *source = x;
    return w;
}

// Makes the same weight as a dense one: f32 [n, inner].
static rlhf_weight *dense(struct call *k, const struct shape *s, const float *source) {
    const uint64_t in = inner(s), rank = (uint64_t)s->rank;
    float *x = call_host(k, (uint64_t)s->n * in * sizeof *x);
    for (uint32_t b = 0; b < s->n_blocks; b++)
        for (int32_t j = s->from[b]; j < s->from[b] + s->count[b]; j++)
            for (uint64_t c = 0; c < rank; c++)
                x[(uint64_t)j * in + b * rank + c] = (float)s->scale * *source++;
    return call_weight(k, x, (int32_t)in, s->n, s->dtype,
                       RLHF_WEIGHT_OUT_IN | RLHF_WEIGHT_BACKWARD);
}

static rlhf_weight *base(struct call *k, const struct shape *s) {
    return call_weight(k, call_normal(k, 1, (uint64_t)s->k * (uint64_t)s->n, 0.1), s->k, s->n,
                       s->dtype, RLHF_WEIGHT_BACKWARD);
}

// Makes the rows of the selection, or all rows.
static rlhf_dev rows_of(struct call *k, uint64_t tag, uint64_t width, int32_t dtype) {
    const uint64_t n = k->n_rows * width;
    float *x = k->rows ? call_normal_rows(k, tag, width, 1.0) : call_normal(k, tag, n, 1.0);
    return call_floats(k, x, n, dtype);
}

// ---- ops ----

static void in_blocks(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    const uint64_t n = (uint64_t)s->n, in = inner(s), src = source_rows(s);
    rlhf_compute *c = k->c;
    label(out, "blocks", s);
    rlhf_weight *w = blocks(k, s, NULL);
    rlhf_dev x = rows_of(k, 2, in, s->dtype), dy = rows_of(k, 3, n, s->dtype);
    rlhf_dev y = call_zeros(k, k->n_rows * n, RLHF_F32);
    rlhf_dev dx = call_zeros(k, k->n_rows * in, s->dtype);
    rlhf_dev dw = call_floats(k, call_normal(k, 4, src * (uint64_t)s->rank, 1.0),
                              src * (uint64_t)s->rank, RLHF_F32);
    KIT_OK(c, c->linear(c->ctx, y, RLHF_F32, 0, x, w, NULL, k->n_rows));
    KIT_OK(c, c->linear_dx(c->ctx, dx, s->dtype, 0, dy, w, k->n_rows));
    KIT_OK(c, c->linear_dw(c->ctx, dw, NULL, x, dy, w, k->n_rows));
    outputs_add(out, k, "out", y, RLHF_F32, k->n_rows, n, k->rows);
    outputs_add(out, k, "dx", dx, s->dtype, k->n_rows, in, k->rows);
    outputs_add(out, k, "dw", dw, RLHF_F32, src, (uint64_t)s->rank, NULL);
}

static void sum(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    const uint64_t n = (uint64_t)s->n, kk = (uint64_t)s->k, in = inner(s);
    rlhf_compute *c = k->c;
    label(out, "linear_sum", s);
    rlhf_weight *w = base(k, s), *low = blocks(k, s, NULL);
    rlhf_linear_sum a = {.size = sizeof a,
                         .rows = k->n_rows,
                         .out_dtype = s->out_dtype,
                         .accumulate = s->accumulate,
                         .out = rows_of(k, 5, n, s->out_dtype),
                         .x = rows_of(k, 6, kk, s->dtype),
                         .x2 = rows_of(k, 7, in, s->dtype),
                         .w = w,
                         .w2 = low,
                         .bias = s->bias ? call_floats(k, call_normal(k, 8, n, 1.0), n, RLHF_F32)
                                         : NULL};
    KIT_OK(c, c->linear_sum(c->ctx, &a));
    outputs_add(out, k, "out", a.out, s->out_dtype, k->n_rows, n, k->rows);
}

// `across` sums over a base weight and the first factor of an adapter, both with k inputs.
static void sum_across(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    const uint64_t n = (uint64_t)s->n, kk = (uint64_t)s->k, in = inner(s);
    rlhf_compute *c = k->c;
    label(out, "linear_sum across", s);
    rlhf_weight *w = base(k, s);
    rlhf_weight *low = call_weight(k, call_normal(k, 9, in * kk, 0.1), s->k, (int32_t)in, s->dtype,
                                   RLHF_WEIGHT_OUT_IN | RLHF_WEIGHT_BACKWARD);
    rlhf_linear_sum a = {.size = sizeof a,
                         .rows = k->n_rows,
                         .out_dtype = s->out_dtype,
                         .accumulate = s->accumulate,
                         .across = 1,
                         .out = rows_of(k, 10, kk, s->out_dtype),
                         .x = rows_of(k, 11, n, s->dtype),
                         .x2 = rows_of(k, 12, in, s->dtype),
                         .w = w,
                         .w2 = low};
    KIT_OK(c, c->linear_sum(c->ctx, &a));
    outputs_add(out, k, "out", a.out, s->out_dtype, k->n_rows, kk, k->rows);
}

// ---- tests ----

static void matches(void **state) {
    for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
        check_match(*state, in_blocks, &shapes[i], shapes[i].rows, f32_bound, bf16_bound);
        check_match(*state, sum, &shapes[i], shapes[i].rows, f32_bound, bf16_bound);
        check_match(*state, sum_across, &shapes[i], shapes[i].rows, f32_bound, bf16_bound);
    }
}

static void rows_and_threads(void **state) {
    struct kit *kit = *state;
    const op_fn ops[] = {in_blocks, sum, sum_across};
    for (size_t i = 0; i < CHECK_COUNT(shapes); i++)
        for (size_t o = 0; o < CHECK_COUNT(ops); o++) {
            check_rows(kit->cpu2, ops[o], &shapes[i], shapes[i].rows);
            check_threads(kit, ops[o], &shapes[i], shapes[i].rows);
        }
    check_rows(kit->ref, sum, &shapes[2], shapes[2].rows);
    check_rows(kit->ref, sum_across, &shapes[2], shapes[2].rows);
}

static void same_bits(struct call *k, rlhf_dev a, rlhf_dev b, uint64_t n, int32_t dtype) {
    float *x = call_host(k, n * sizeof *x), *y = call_host(k, n * sizeof *y);
    kit_read(k->c, x, a, n, dtype);
    kit_read(k->c, y, b, n, dtype);
    assert_memory_equal(x, y, n * sizeof *x);
}

// A block-structured weight equals a dense weight with zeros. linear and linear_dx give the same
// bits for both. The gradient of a block is `scale` times the block's part of the dense weight's
// gradient.
static void blocks_are_a_dense_weight(void **state) {
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu1, kit->cpu2};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++)
        for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
            const struct shape *s = &shapes[i];
            struct call k = {.c = backends[b], .n_rows = s->rows};
            rlhf_compute *c = k.c;
            const float *source;
            const uint64_t n = (uint64_t)s->n, in = inner(s), rank = (uint64_t)s->rank;
            rlhf_weight *w = blocks(&k, s, &source), *d = dense(&k, s, source);
            rlhf_dev x = rows_of(&k, 2, in, s->dtype), dy = rows_of(&k, 3, n, s->dtype);
            rlhf_dev y[2] = {call_zeros(&k, s->rows * n, RLHF_F32),
                             call_zeros(&k, s->rows * n, RLHF_F32)};
            rlhf_dev dx[2] = {call_zeros(&k, s->rows * in, s->dtype),
                              call_zeros(&k, s->rows * in, s->dtype)};
            rlhf_dev dw = call_zeros(&k, source_rows(s) * rank, RLHF_F32);
            rlhf_dev dd = call_zeros(&k, n * in, RLHF_F32);
            for (int o = 0; o < 2; o++) {
                const rlhf_weight *of = o ? d : w;
                KIT_OK(c, c->linear(c->ctx, y[o], RLHF_F32, 0, x, of, NULL, s->rows));
                KIT_OK(c, c->linear_dx(c->ctx, dx[o], s->dtype, 0, dy, of, s->rows));
                KIT_OK(c, c->linear_dw(c->ctx, o ? dd : dw, NULL, x, dy, of, s->rows));
            }
            same_bits(&k, y[0], y[1], s->rows * n, RLHF_F32);
            same_bits(&k, dx[0], dx[1], s->rows * in, s->dtype);
            float *got = call_host(&k, source_rows(s) * rank * sizeof *got), *at = got;
            float *all = call_host(&k, n * in * sizeof *all);
            kit_read(c, got, dw, source_rows(s) * rank, RLHF_F32);
            kit_read(c, all, dd, n * in, RLHF_F32);
            for (uint32_t o = 0; o < s->n_blocks; o++)
                for (int32_t j = s->from[o]; j < s->from[o] + s->count[o]; j++)
                    for (uint64_t e = 0; e < rank; e++, at++) {
                        const double want = s->scale * (double)all[(uint64_t)j * in + o * rank + e];
                        if (fabs((double)*at - want) > 1e-6 * (1 + fabs(want)))
                            fail_msg("output %d, input %d: %g, not %g", j, (int)e, *at, want);
                    }
            call_finish(&k);
        }
}

// linear_sum gives the same result as three ops: a linear to f32, a linear that accumulates, and a
// convert.
static void sum_is_what_it_says(void **state) {
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu1, kit->cpu2};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++)
        for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
            const struct shape *s = &shapes[i];
            struct call k = {.c = backends[b], .n_rows = s->rows};
            rlhf_compute *c = k.c;
            const uint64_t n = (uint64_t)s->n, all = s->rows * n;
            rlhf_weight *w = base(&k, s), *low = blocks(&k, s, NULL);
            rlhf_dev x = rows_of(&k, 6, (uint64_t)s->k, s->dtype);
            rlhf_dev x2 = rows_of(&k, 7, inner(s), s->dtype);
            rlhf_dev bias =
                s->bias ? call_floats(&k, call_normal(&k, 8, n, 1.0), n, RLHF_F32) : NULL;
            rlhf_dev out = rows_of(&k, 5, n, s->out_dtype), acc = rows_of(&k, 5, n, RLHF_F32);
            rlhf_dev want = call_zeros(&k, all, s->out_dtype);
            const rlhf_linear_sum a = {sizeof a, s->rows, s->out_dtype, s->accumulate, 0, 0, out, x,
                                       x2,       w,       low,          bias};
            KIT_OK(c, c->linear_sum(c->ctx, &a));
            KIT_OK(c, c->linear(c->ctx, acc, RLHF_F32, s->accumulate, x, w, bias, s->rows));
            KIT_OK(c, c->linear(c->ctx, acc, RLHF_F32, 1, x2, low, NULL, s->rows));
            KIT_OK(c, c->convert(c->ctx, want, s->out_dtype, acc, RLHF_F32, all));
            same_bits(&k, out, want, all, s->out_dtype);
            call_finish(&k);
        }
}

// A second GEMM in which everything is zero does not change the bits of the first GEMM.
static void zeros_leave_no_trace(void **state) {
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu1, kit->cpu2};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++)
        for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
            const struct shape *s = &shapes[i];
            struct call k = {.c = backends[b], .n_rows = s->rows};
            rlhf_compute *c = k.c;
            const uint64_t n = (uint64_t)s->n, all = s->rows * n;
            const uint64_t source = source_rows(s) * (uint64_t)s->rank;
            rlhf_weight *w = base(&k, s), *low = blocks(&k, s, NULL);
            KIT_OK(c, c->weight_pack(c->ctx, low, call_zeros(&k, source, RLHF_F32)));
            rlhf_dev x = rows_of(&k, 6, (uint64_t)s->k, s->dtype);
            rlhf_dev out = rows_of(&k, 5, n, s->out_dtype), want = rows_of(&k, 5, n, s->out_dtype);
            const rlhf_linear_sum a = {.size = sizeof a,
                                       .rows = s->rows,
                                       .out_dtype = s->out_dtype,
                                       .accumulate = s->accumulate,
                                       .out = out,
                                       .x = x,
                                       .x2 = rows_of(&k, 7, inner(s), s->dtype),
                                       .w = w,
                                       .w2 = low};
            KIT_OK(c, c->linear_sum(c->ctx, &a));
            KIT_OK(c, c->linear(c->ctx, want, s->out_dtype, s->accumulate, x, w, NULL, s->rows));
            same_bits(&k, out, want, all, s->out_dtype);
            call_finish(&k);
        }
}

static void refused(rlhf_compute *c, rlhf_status got, const char *what) {
    printf("  %s: %s\n", c->name, kit_said(c));
    if (got >= 0) fail_msg("%s: %s was taken", c->name, what);
    assert_true(strlen(kit_said(c)) > 10);
}

static void bad_arguments(void **state) {
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu2};
    static const int32_t from[] = {0, 8}, count[] = {8, 8}, over[] = {0, 7}, none[] = {8, 0};
    const rlhf_blocks good = {sizeof good, 16, 4, RLHF_F32, 0, 2, from, count, 1.0};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++) {
        rlhf_compute *c = backends[b];
        rlhf_weight *w = NULL;
        rlhf_blocks a = good;
        a.rank = 0;
        refused(c, c->weight_create_blocks(c->ctx, &a, &w), "rank 0");
        a = good;
        a.n_blocks = 0;
        refused(c, c->weight_create_blocks(c->ctx, &a, &w), "no blocks");
        a = good;
        a.from = over;
        refused(c, c->weight_create_blocks(c->ctx, &a, &w), "blocks that overlap");
        a = good;
        a.count = none;
        refused(c, c->weight_create_blocks(c->ctx, &a, &w), "an empty block");
        a = good;
        a.n = 15;
        refused(c, c->weight_create_blocks(c->ctx, &a, &w), "a block past the end");
        a = good;
        a.flags = RLHF_WEIGHT_OUT_IN;
        refused(c, c->weight_create_blocks(c->ctx, &a, &w), "a flag");
        a = good;
        a.n_blocks = 0x7fffffffu;
        refused(c, c->weight_create_blocks(c->ctx, &a, &w), "more inputs than can be");
        struct call k = {.c = c, .n_rows = 2};
        const struct shape s = shapes[0];
        rlhf_weight *low = blocks(&k, &s, NULL);
        rlhf_weight *narrow =
            call_weight(&k, call_normal(&k, 1, 96 * 64, 0.1), 96, 64, RLHF_F32, 0);
        rlhf_dev x = call_zeros(&k, 2 * 128, RLHF_F32);
        rlhf_linear_sum l = {.size = sizeof l,
                             .rows = 2,
                             .out_dtype = RLHF_F32,
                             .out = x,
                             .x = x,
                             .x2 = x,
                             .w = narrow,
                             .w2 = low};
        refused(c, c->linear_sum(c->ctx, &l), "results of two widths");
        l.w = low;
        l.w2 = narrow;
        l.across = 1;
        refused(c, c->linear_sum(c->ctx, &l), "a weight without the way back");
        call_finish(&k);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches),
        cmocka_unit_test(rows_and_threads),
        cmocka_unit_test(blocks_are_a_dense_weight),
        cmocka_unit_test(sum_is_what_it_says),
        cmocka_unit_test(zeros_leave_no_trace),
        cmocka_unit_test(bad_arguments),
    };
    return cmocka_run_group_tests_name("kernels: blocks", tests, kit_setup, kit_teardown);
}
