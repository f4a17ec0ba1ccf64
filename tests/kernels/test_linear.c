// test_linear.c: compares linear, linear_dx and linear_dw of the cpu backend with the reference.
// Other rows and the number of threads must not change the bits.
#include "kit.h"
#include <stdio.h>
#include <stdlib.h>

struct shape {
    uint32_t rows;
    int32_t k, n, dtype, out_dtype, flags, accumulate, bias;
};

enum { IO = 0, OI = RLHF_WEIGHT_OUT_IN };

static const struct bound f32_bound = {2e-11, 5e-5}, bf16_bound = {1e-8, 2e-2};
// If the result is bf16, cuBLASLt on a GPU first rounds the bias to bf16. So these results may
// differ more from the reference.
static const struct bound bias_bound = {1e-5, 5e-2};

static const struct shape shapes[] = {
    {5, 16, 16, RLHF_F32, RLHF_F32, IO, 0, 1},       {33, 64, 97, RLHF_F32, RLHF_F32, OI, 0, 0},
    {70, 256, 768, RLHF_F32, RLHF_F32, IO, 0, 1},    {7, 768, 1, RLHF_F32, RLHF_F32, OI, 0, 1},
    {9, 100, 3, RLHF_F32, RLHF_F32, IO, 1, 0},       {1, 1, 1, RLHF_F32, RLHF_F32, IO, 0, 1},
    {5, 16, 16, RLHF_BF16, RLHF_BF16, IO, 0, 1},     {33, 64, 97, RLHF_BF16, RLHF_F32, OI, 0, 0},
    {70, 256, 768, RLHF_BF16, RLHF_BF16, IO, 0, 1},  {7, 768, 2, RLHF_BF16, RLHF_F32, OI, 0, 1},
    {33, 256, 256, RLHF_BF16, RLHF_F32, IO, 1, 1},   {1, 1, 1, RLHF_BF16, RLHF_F32, IO, 0, 0},
    {40, 1024, 256, RLHF_BF16, RLHF_F32, IO, 1, 1},  {40, 768, 2304, RLHF_F32, RLHF_F32, IO, 0, 1},
    {40, 768, 2304, RLHF_BF16, RLHF_BF16, IO, 0, 1}, {17, 256, 8192, RLHF_F32, RLHF_F32, OI, 0, 0},
    {17, 256, 8192, RLHF_BF16, RLHF_F32, OI, 0, 0},  {3, 64, 50257, RLHF_BF16, RLHF_F32, OI, 0, 0},
};

// Shapes whose rows are compared in many selections: n = 1, 2, 3, 256, 768, 2304, 8192.
static const struct shape row_shapes[] = {
    {70, 256, 1, RLHF_F32, RLHF_F32, OI, 0, 1},
    {70, 256, 2, RLHF_F32, RLHF_F32, OI, 0, 1},
    {70, 768, 3, RLHF_F32, RLHF_F32, IO, 0, 1},
    {70, 1024, 256, RLHF_F32, RLHF_F32, IO, 1, 1},
    {70, 256, 768, RLHF_F32, RLHF_F32, IO, 0, 1},
    {40, 768, 2304, RLHF_F32, RLHF_F32, IO, 0, 1},
    {40, 256, 8192, RLHF_F32, RLHF_F32, OI, 0, 0},
    {33, 100, 97, RLHF_F32, RLHF_F32, IO, 0, 1},
    {70, 256, 1, RLHF_BF16, RLHF_F32, OI, 0, 1},
    {70, 256, 2, RLHF_BF16, RLHF_F32, OI, 0, 1},
    {70, 768, 3, RLHF_BF16, RLHF_F32, IO, 0, 1},
    {70, 1024, 256, RLHF_BF16, RLHF_F32, IO, 1, 1},
    {70, 256, 768, RLHF_BF16, RLHF_BF16, IO, 0, 1},
    {40, 768, 2304, RLHF_BF16, RLHF_BF16, IO, 0, 1},
    {40, 256, 8192, RLHF_BF16, RLHF_F32, OI, 0, 0},
    {33, 100, 97, RLHF_BF16, RLHF_BF16, IO, 0, 1},
    {330, 528, 400, RLHF_BF16, RLHF_BF16, IO, 0, 1}, // more rows, steps and panels than one pass
};

// Shapes for linear_dw with long sums over rows. The length of a row of the result is not a
// multiple of four numbers, and the last row ends where its memory ends. So a loop that always
// writes four numbers would write past the end.
static const struct shape tall[] = {{4500, 16, 23, RLHF_BF16, RLHF_F32, IO, 0, 1},
                                    {4500, 21, 16, RLHF_F32, RLHF_F32, OI, 0, 1},
                                    {1111, 256, 97, RLHF_BF16, RLHF_F32, IO, 0, 1},
                                    {4500, 149, 1, RLHF_F32, RLHF_F32, OI, 0, 1}};

static void label(struct outputs *out, const char *op, const struct shape *s) {
    snprintf(out->label, sizeof out->label, "%s %u x %d x %d %s -> %s%s%s%s", op, s->rows, s->k,
             s->n, s->dtype == RLHF_BF16 ? "bf16" : "f32",
             s->out_dtype == RLHF_BF16 ? "bf16" : "f32", s->flags & OI ? " [n,k]" : "",
             s->accumulate ? " add" : "", s->bias ? " bias" : "");
}

static rlhf_weight *weight(struct call *k, const struct shape *s) {
    const uint64_t n = (uint64_t)s->k * (uint64_t)s->n;
    return call_weight(k, call_normal(k, 1, n, 0.1), s->k, s->n, s->dtype,
                       (uint32_t)s->flags | RLHF_WEIGHT_BACKWARD);
}

static void linear(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    const uint64_t n = (uint64_t)s->n;
    label(out, "linear", s);
    rlhf_weight *w = weight(k, s);
    rlhf_dev x = call_floats(k, call_normal_rows(k, 2, (uint64_t)s->k, 1.0),
                             k->n_rows * (uint64_t)s->k, s->dtype);
    rlhf_dev y = call_floats(k, call_normal_rows(k, 3, n, 1.0), k->n_rows * n, s->out_dtype);
    rlhf_dev bias = s->bias ? call_floats(k, call_normal(k, 4, n, 1.0), n, RLHF_F32) : NULL;
    KIT_OK(k->c, k->c->linear(k->c->ctx, y, s->out_dtype, s->accumulate, x, w, bias, k->n_rows));
    outputs_add(out, k, "out", y, s->out_dtype, k->n_rows, n, k->rows);
}

static void linear_dx(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    const uint64_t n = (uint64_t)s->n, kk = (uint64_t)s->k;
    label(out, "linear_dx", s);
    rlhf_weight *w = weight(k, s);
    rlhf_dev dy = call_floats(k, call_normal_rows(k, 5, n, 1.0), k->n_rows * n, s->dtype);
    rlhf_dev dx = call_floats(k, call_normal_rows(k, 6, kk, 1.0), k->n_rows * kk, s->out_dtype);
    KIT_OK(k->c, k->c->linear_dx(k->c->ctx, dx, s->out_dtype, s->accumulate, dy, w, k->n_rows));
    outputs_add(out, k, "dx", dx, s->out_dtype, k->n_rows, kk, k->rows);
}

static void linear_dw(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    const uint64_t n = (uint64_t)s->n, kk = (uint64_t)s->k;
    label(out, "linear_dw", s);
    rlhf_weight *w = weight(k, s);
    rlhf_dev x = call_floats(k, call_normal_rows(k, 7, kk, 1.0), k->n_rows * kk, s->dtype);
    rlhf_dev dy = call_floats(k, call_normal_rows(k, 8, n, 1.0), k->n_rows * n, s->dtype);
    rlhf_dev dw = call_floats(k, call_normal(k, 9, n * kk, 1.0), n * kk, RLHF_F32);
    rlhf_dev db = s->bias ? call_floats(k, call_normal(k, 10, n, 1.0), n, RLHF_F32) : NULL;
    KIT_OK(k->c, k->c->linear_dw(k->c->ctx, dw, db, x, dy, w, k->n_rows));
    outputs_add(out, k, "dw", dw, RLHF_F32, n, kk, NULL);
    if (db) outputs_add(out, k, "db", db, RLHF_F32, 1, n, NULL);
}

// Returns 1 for a weight with more elements than RLHF_TEST_LARGEST, if that is set. Another run
// without that limit covers such weights.
static int left_out(const struct shape *s) {
    const char *largest = getenv("RLHF_TEST_LARGEST");
    return largest && (long)s->k * s->n > strtol(largest, NULL, 10);
}

static void all_match(struct kit *k, op_fn op) {
    for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
        if (left_out(&shapes[i])) continue;
        const int rounds = k->cpu2->device == RLHF_DEVICE_CUDA && shapes[i].bias;
        check_match(k, op, &shapes[i], shapes[i].rows, f32_bound, rounds ? bias_bound : bf16_bound);
    }
}

static void all_rows(struct kit *k, op_fn op) {
    for (size_t i = 0; i < CHECK_COUNT(row_shapes); i++) {
        if (left_out(&row_shapes[i])) continue;
        if (row_shapes[i].n < 1000) check_rows(k->cpu1, op, &row_shapes[i], row_shapes[i].rows);
        check_rows(k->cpu2, op, &row_shapes[i], row_shapes[i].rows);
    }
    if (getenv("RLHF_TEST_LARGEST")) return;
    check_rows(k->ref, op, &row_shapes[0], row_shapes[0].rows);
    check_rows(k->ref, op, &row_shapes[7], row_shapes[7].rows);
}

static void linear_matches(void **state) { all_match(*state, linear); }
static void linear_dx_matches(void **state) { all_match(*state, linear_dx); }
static void linear_dw_matches(void **state) {
    all_match(*state, linear_dw);
    check_match(*state, linear_dw, &tall[0], tall[0].rows, f32_bound, bf16_bound);
    check_match(*state, linear_dw, &tall[1], tall[1].rows, f32_bound, bf16_bound);
    check_match(*state, linear_dw, &tall[3], tall[3].rows, f32_bound, bf16_bound);
}

// f32 sums over thousands of tokens have relative errors of at most 4e-7. For comparison,
// PyTorch 2.6 reaches 3.6e-7 for dw and 1.5e-7 for db.
static void long_sums_stay_near(void **state) {
    struct kit *k = *state;
    static const struct shape long_sums[] = {{1024, 48, 40, RLHF_F32, RLHF_F32, IO, 0, 1},
                                             {4096, 48, 40, RLHF_F32, RLHF_F32, OI, 0, 1},
                                             {16384, 48, 40, RLHF_F32, RLHF_F32, IO, 0, 1},
                                             {16384, 48, 1, RLHF_F32, RLHF_F32, IO, 0, 0}};
    const struct bound f32 = {4e-7 * 4e-7, 5e-6};
    if (!(k->cpu1->flags & RLHF_COMPUTE_ROW_EXACT) || k->cpu1->device != RLHF_DEVICE_CPU) skip();
    for (size_t i = 0; i < CHECK_COUNT(long_sums); i++) {
        check_match(k, linear_dw, &long_sums[i], long_sums[i].rows, f32, f32);
        check_threads(k, linear_dw, &long_sums[i], long_sums[i].rows);
    }
}

static void linear_rows(void **state) { all_rows(*state, linear); }
static void linear_dx_rows(void **state) { all_rows(*state, linear_dx); }

static void threads(void **state) {
    for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
        if (left_out(&shapes[i])) continue;
        check_threads(*state, linear, &shapes[i], shapes[i].rows);
        check_threads(*state, linear_dx, &shapes[i], shapes[i].rows);
        check_threads(*state, linear_dw, &shapes[i], shapes[i].rows);
    }
    for (size_t i = 0; i < CHECK_COUNT(tall); i++)
        check_threads(*state, linear_dw, &tall[i], tall[i].rows);
}

static void no_rows(void **state) {
    struct kit *k = *state;
    rlhf_compute *backends[] = {k->ref, k->cpu1, k->cpu2};
    const struct shape s = {0, 64, 16, RLHF_F32, RLHF_F32, IO, 0, 1};
    for (size_t i = 0; i < CHECK_COUNT(backends); i++) {
        struct outputs out;
        op_run(backends[i], linear, &s, 0, &out);
        outputs_finish(&out);
        op_run(backends[i], linear_dx, &s, 0, &out);
        outputs_finish(&out);
        op_run(backends[i], linear_dw, &s, 0, &out);
        outputs_finish(&out);
    }
}

// out = add + x W + bias has the same bits as copying `add` to `out` and then running a linear that
// accumulates into `out`. It does not matter whether `add` and `out` are the same array.
static void linear_add_is_copy_and_linear(void **state) {
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu1, kit->cpu2};
    static const struct shape add[] = {
        {1, 64, 48, RLHF_F32, RLHF_F32, IO, 1, 1},     {65, 96, 80, RLHF_BF16, RLHF_F32, IO, 1, 1},
        {130, 100, 97, RLHF_BF16, RLHF_F32, OI, 1, 0}, {37, 97, 3, RLHF_F32, RLHF_F32, OI, 1, 1},
        {3, 4200, 5, RLHF_F32, RLHF_F32, IO, 1, 1},    {3, 4200, 5, RLHF_BF16, RLHF_F32, IO, 1, 1},
        {0, 64, 16, RLHF_F32, RLHF_F32, IO, 1, 1}};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++)
        for (size_t i = 0; i < CHECK_COUNT(add); i++) {
            const struct shape *s = &add[i];
            const uint64_t n = (uint64_t)s->n, rows = s->rows, all = rows * n;
            struct call k = {.c = backends[b]};
            rlhf_compute *c = k.c;
            rlhf_weight *w = weight(&k, s);
            rlhf_dev x = call_floats(&k, call_normal(&k, 2, rows * (uint64_t)s->k, 1.0),
                                     rows * (uint64_t)s->k, s->dtype);
            rlhf_dev bias =
                s->bias ? call_floats(&k, call_normal(&k, 4, n, 1.0), n, RLHF_F32) : NULL;
            float *from = call_normal(&k, 3, all, 1.0), *got = call_host(&k, all * sizeof *got),
                  *want = call_host(&k, all * sizeof *want);
            rlhf_dev res = call_floats(&k, from, all, RLHF_F32),
                     out = call_zeros(&k, all, RLHF_F32);
            KIT_OK(c, c->linear_add(c->ctx, out, res, x, w, bias, s->rows));
            kit_read(c, got, res, all, RLHF_F32);
            assert_memory_equal(got, from, all * sizeof *got); // `add` is unchanged
            KIT_OK(c, c->linear_add(c->ctx, res, res, x, w, bias, s->rows));
            rlhf_dev acc = call_floats(&k, from, all, RLHF_F32);
            KIT_OK(c, c->linear(c->ctx, acc, RLHF_F32, 1, x, w, bias, s->rows));
            kit_read(c, want, acc, all, RLHF_F32);
            kit_read(c, got, out, all, RLHF_F32);
            assert_memory_equal(got, want, all * sizeof *got);
            kit_read(c, got, res, all, RLHF_F32);
            assert_memory_equal(got, want, all * sizeof *got);
            call_finish(&k);
        }
}

// Returns dw f32 [n, k] for `rows` rows of x and dy. Column 0 of dy has the same numbers for any n.
static float *gradient(struct call *k, uint32_t rows, int32_t n, int32_t width) {
    const struct shape s = {rows, width, n, RLHF_F32, RLHF_F32, OI, 0, 0};
    const uint64_t kk = (uint64_t)width, all = (uint64_t)n * kk;
    const float *one = call_normal(k, 8, rows, 1.0);
    float *dy = call_normal(k, 9, rows * (uint64_t)n, 1.0), *out = call_host(k, all * sizeof *out);
    for (uint32_t r = 0; r < rows; r++)
        dy[r * (uint32_t)n] = one[r];
    rlhf_dev x = call_floats(k, call_normal(k, 7, rows * kk, 1.0), rows * kk, RLHF_F32);
    rlhf_dev dw = call_zeros(k, all, RLHF_F32);
    rlhf_weight *w = weight(k, &s);
    KIT_OK(k->c, k->c->linear_dw(k->c->ctx, dw, NULL, x,
                                 call_floats(k, dy, rows * (uint64_t)n, RLHF_F32), w, rows));
    kit_read(k->c, out, dw, all, RLHF_F32);
    return out;
}

// A weight with one output gets the same gradient, bit for bit, as the first output of a weight
// with three outputs.
static void one_output_is_a_column(void **state) {
    struct kit *kit = *state;
    if (!(kit->cpu1->flags & RLHF_COMPUTE_ROW_EXACT)) skip();
    rlhf_compute *backends[] = {kit->ref, kit->cpu1, kit->cpu2};
    static const uint32_t rows[] = {1, 37, 4096, 4500};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++)
        for (size_t i = 0; i < CHECK_COUNT(rows); i++) {
            struct call k = {.c = backends[b]};
            assert_memory_equal(gradient(&k, rows[i], 1, 149), gradient(&k, rows[i], 3, 149),
                                149 * sizeof(float));
            call_finish(&k);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(linear_matches),
                                       cmocka_unit_test(linear_dx_matches),
                                       cmocka_unit_test(linear_dw_matches),
                                       cmocka_unit_test(long_sums_stay_near),
                                       cmocka_unit_test(linear_rows),
                                       cmocka_unit_test(linear_dx_rows),
                                       cmocka_unit_test(threads),
                                       cmocka_unit_test(linear_add_is_copy_and_linear),
                                       cmocka_unit_test(one_output_is_a_column),
                                       cmocka_unit_test(no_rows)};
    return cmocka_run_group_tests_name("kernels: linear", tests, kit_setup, kit_teardown);
}
