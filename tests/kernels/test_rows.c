// test_rows.c: the ops that work on single rows or elements: convert, embed, norm, act, add,
// gather, scatter_add, pool, and their derivatives. Compares cpu with the reference. Also tests
// that other rows and the number of threads do not change the bits.
#include "kit.h"
#include "support/tensor_close.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct shape {
    uint32_t rows;
    int32_t d, dtype, kind; // kind: activation, pooling mode, or accumulate
};

static const struct bound f32_bound = {1e-12, 1e-5}, bf16_bound = {1e-6, 2e-2};

static const struct shape shapes[] = {
    {1, 16, RLHF_F32, 1},    {67, 64, RLHF_F32, 2},   {70, 256, RLHF_F32, 3},
    {33, 768, RLHF_F32, 1},  {9, 97, RLHF_F32, 2},    {5, 1, RLHF_F32, 3},
    {2, 2304, RLHF_F32, 1},  {1, 16, RLHF_BF16, 1},   {67, 64, RLHF_BF16, 2},
    {70, 256, RLHF_BF16, 3}, {33, 768, RLHF_BF16, 1}, {9, 97, RLHF_BF16, 2},
    {5, 1, RLHF_BF16, 3},    {2, 2304, RLHF_BF16, 1},
};

static void label(struct outputs *out, const char *op, const struct shape *s) {
    snprintf(out->label, sizeof out->label, "%s %u x %d %s kind %d", op, s->rows, s->d,
             s->dtype == RLHF_BF16 ? "bf16" : "f32", s->kind);
}

// ---- convert, add, act ----

static void convert(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    const uint64_t d = (uint64_t)s->d, n = k->n_rows * d;
    label(out, "convert", s);
    rlhf_dev x = call_floats(k, call_normal_rows(k, 1, d, 1.0), n, s->dtype);
    rlhf_dev y = call_zeros(k, n, RLHF_BF16), z = call_zeros(k, n, RLHF_F32);
    KIT_OK(k->c, k->c->convert(k->c->ctx, y, RLHF_BF16, x, s->dtype, n));
    KIT_OK(k->c, k->c->convert(k->c->ctx, z, RLHF_F32, x, s->dtype, n));
    outputs_add(out, k, "bf16", y, RLHF_BF16, k->n_rows, d, k->rows);
    outputs_add(out, k, "f32", z, RLHF_F32, k->n_rows, d, k->rows);
}

static void add(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    const uint64_t d = (uint64_t)s->d, n = k->n_rows * d;
    label(out, "add", s);
    rlhf_dev x = call_floats(k, call_normal_rows(k, 1, d, 1.0), n, RLHF_F32);
    rlhf_dev y = call_floats(k, call_normal_rows(k, 2, d, 1.0), n, s->dtype);
    KIT_OK(k->c, k->c->add(k->c->ctx, x, y, s->dtype, n));
    outputs_add(out, k, "dst", x, RLHF_F32, k->n_rows, d, k->rows);
}

// add_all with `kind` - 1 arrays: the sum stays in x, is moved to another array, or is moved to the
// first of the arrays that were added.
static void add_all(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    const uint64_t d = (uint64_t)s->d, n = k->n_rows * d;
    const uint32_t n_src = (uint32_t)s->kind - 1;
    label(out, "add_all", s);
    for (uint64_t way = 0; way < 3; way++) {
        rlhf_dev x = call_floats(k, call_normal_rows(k, 3 * way, d, 1.0), n, RLHF_F32), src[2];
        for (uint64_t j = 0; j < 2; j++)
            src[j] = call_floats(k, call_normal_rows(k, 3 * way + 1 + j, d, 1.0), n, RLHF_F32);
        rlhf_dev to = way == 0 ? NULL : way == 1 ? call_zeros(k, n, RLHF_F32) : src[0];
        if (RLHF_COMPUTE_HAS(k->c, add_all)) {
            KIT_OK(k->c, k->c->add_all(k->c->ctx, x, src, n_src, to, n));
        } else {
            for (uint32_t j = 0; j < n_src; j++)
                KIT_OK(k->c, k->c->add(k->c->ctx, x, src[j], RLHF_F32, n));
            if (to) KIT_OK(k->c, k->c->copy(k->c->ctx, to, x, n * sizeof(float)));
            if (to) KIT_OK(k->c, k->c->zero(k->c->ctx, x, n * sizeof(float)));
        }
        outputs_add(out, k, "x", x, RLHF_F32, k->n_rows, d, k->rows);
        if (to) outputs_add(out, k, "to", to, RLHF_F32, k->n_rows, d, k->rows);
    }
}

static void act(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    const uint64_t d = (uint64_t)s->d, n = k->n_rows * d;
    label(out, "act", s);
    rlhf_dev x = call_floats(k, call_normal_rows(k, 1, d, 2.0), n, s->dtype);
    rlhf_dev y = call_zeros(k, n, s->dtype), dy, dx = call_zeros(k, n, s->dtype);
    dy = call_floats(k, call_normal_rows(k, 2, d, 1.0), n, s->dtype);
    KIT_OK(k->c, k->c->act(k->c->ctx, y, x, s->kind, s->dtype, n));
    KIT_OK(k->c, k->c->act_bwd(k->c->ctx, dx, dy, x, s->kind, s->dtype, n));
    outputs_add(out, k, "out", y, s->dtype, k->n_rows, d, k->rows);
    outputs_add(out, k, "dx", dx, s->dtype, k->n_rows, d, k->rows);
    // Works in place, which the table allows: out = x, dx = dy.
    KIT_OK(k->c, k->c->act_bwd(k->c->ctx, dy, dy, x, s->kind, s->dtype, n));
    KIT_OK(k->c, k->c->act(k->c->ctx, x, x, s->kind, s->dtype, n));
    outputs_add(out, k, "out in place", x, s->dtype, k->n_rows, d, k->rows);
    outputs_add(out, k, "dx in place", dy, s->dtype, k->n_rows, d, k->rows);
}

// ---- norm ----

static void norm(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    const uint64_t d = (uint64_t)s->d, n = k->n_rows * d;
    label(out, "norm", s);
    rlhf_dev x = call_floats(k, call_normal_rows(k, 1, d, 3.0), n, RLHF_F32);
    rlhf_dev gamma = call_floats(k, call_normal(k, 2, d, 1.0), d, RLHF_F32);
    rlhf_dev beta = call_floats(k, call_normal(k, 3, d, 1.0), d, RLHF_F32);
    rlhf_dev y = call_zeros(k, n, s->dtype), stats = call_zeros(k, 2ull * k->n_rows, RLHF_F32);
    KIT_OK(k->c, k->c->norm(k->c->ctx, y, s->dtype, stats, x, gamma, beta, 1e-5, k->n_rows, s->d));
    outputs_add(out, k, "out", y, s->dtype, k->n_rows, d, k->rows);
    outputs_add(out, k, "stats", stats, RLHF_F32, k->n_rows, 2, k->rows);
    KIT_OK(k->c, k->c->norm(k->c->ctx, y, s->dtype, NULL, x, gamma, beta, 1e-5, k->n_rows, s->d));
    outputs_add(out, k, "out without stats", y, s->dtype, k->n_rows, d, k->rows);
}

static void norm_bwd(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    const uint64_t d = (uint64_t)s->d, n = k->n_rows * d;
    label(out, "norm_bwd", s);
    rlhf_dev x = call_floats(k, call_normal_rows(k, 1, d, 3.0), n, RLHF_F32);
    rlhf_dev gamma = call_floats(k, call_normal(k, 2, d, 1.0), d, RLHF_F32);
    rlhf_dev dy = call_floats(k, call_normal_rows(k, 4, d, 1.0), n, s->dtype);
    rlhf_dev y = call_zeros(k, n, RLHF_F32), stats = call_zeros(k, 2ull * k->n_rows, RLHF_F32);
    rlhf_dev dx = call_floats(k, call_normal_rows(k, 5, d, 1.0), n, RLHF_F32);
    rlhf_dev dgamma = call_floats(k, call_normal(k, 6, d, 1.0), d, RLHF_F32);
    rlhf_dev dbeta = call_floats(k, call_normal(k, 7, d, 1.0), d, RLHF_F32);
    KIT_OK(k->c, k->c->norm(k->c->ctx, y, RLHF_F32, stats, x, gamma, gamma, 1e-5, k->n_rows, s->d));
    KIT_OK(k->c, k->c->norm_bwd(k->c->ctx, dx, s->kind & 1, dgamma, dbeta, dy, s->dtype, x, stats,
                                gamma, k->n_rows, s->d));
    outputs_add(out, k, "dx", dx, RLHF_F32, k->n_rows, d, k->rows);
    outputs_add(out, k, "dgamma", dgamma, RLHF_F32, 1, d, NULL);
    outputs_add(out, k, "dbeta", dbeta, RLHF_F32, 1, d, NULL);
    KIT_OK(k->c, k->c->norm_bwd(k->c->ctx, y, 0, NULL, NULL, dy, s->dtype, x, stats, gamma,
                                k->n_rows, s->d));
    outputs_add(out, k, "dx alone", y, RLHF_F32, k->n_rows, d, k->rows);
}

// ---- embed, gather, scatter_add ----

enum { VOCAB = 97, POSITIONS = 40 };

// Ids repeat, so the derivative of a table row has several terms.
static int32_t id_of(uint32_t row) { return (int32_t)(row * row % 23); }

static void embed(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    const uint64_t d = (uint64_t)s->d, n = k->n_rows * d;
    const double scale = s->kind & 1 ? sqrt((double)d) : 1.0;
    label(out, "embed", s);
    int32_t *ids = call_host(k, k->n_rows * sizeof *ids),
            *pos = call_host(k, k->n_rows * sizeof *pos);
    for (uint32_t i = 0; i < k->n_rows; i++) {
        ids[i] = id_of(k->rows[i]);
        pos[i] = (int32_t)(k->rows[i] % POSITIONS);
    }
    rlhf_dev dev_ids = call_ints(k, ids, k->n_rows), dev_pos = call_ints(k, pos, k->n_rows);
    rlhf_dev wte = call_floats(k, call_normal(k, 1, VOCAB * d, 1.0), VOCAB * d, RLHF_F32);
    rlhf_dev wpe = call_floats(k, call_normal(k, 2, POSITIONS * d, 1.0), POSITIONS * d, RLHF_F32);
    rlhf_dev y = call_zeros(k, n, RLHF_F32);
    rlhf_dev dy = call_floats(k, call_normal_rows(k, 3, d, 1.0), n, RLHF_F32);
    KIT_OK(k->c, k->c->embed(k->c->ctx, y, dev_ids, dev_pos, wte, wpe, scale, k->n_rows, s->d));
    outputs_add(out, k, "out", y, RLHF_F32, k->n_rows, d, k->rows);
    KIT_OK(k->c, k->c->embed_bwd(k->c->ctx, wte, wpe, dy, dev_ids, dev_pos, scale, k->n_rows, s->d,
                                 VOCAB, POSITIONS));
    outputs_add(out, k, "dwte", wte, RLHF_F32, VOCAB, d, NULL);
    outputs_add(out, k, "dwpe", wpe, RLHF_F32, POSITIONS, d, NULL);
}

// gather takes every second row from the end, and scatter_add puts these rows back.
static void gather(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    const uint64_t d = (uint64_t)s->d, n = k->n_rows * d;
    const uint32_t picked = (k->n_rows + 1) / 2;
    label(out, "gather", s);
    int32_t *idx = call_host(k, picked * sizeof *idx);
    for (uint32_t i = 0; i < picked; i++)
        idx[i] = (int32_t)(k->n_rows - 1 - 2 * i);
    rlhf_dev dev_idx = call_ints(k, idx, picked);
    rlhf_dev x = call_floats(k, call_normal_rows(k, 1, d, 1.0), n, s->dtype);
    rlhf_dev y = call_zeros(k, picked * d, s->dtype);
    rlhf_dev sum = call_floats(k, call_normal_rows(k, 2, d, 1.0), n, RLHF_F32);
    KIT_OK(k->c, k->c->gather(k->c->ctx, y, x, dev_idx, picked, s->d, s->dtype));
    KIT_OK(k->c, k->c->scatter_add(k->c->ctx, sum, y, s->dtype, dev_idx, picked, s->d));
    outputs_add(out, k, "rows", y, s->dtype, picked, d, NULL);
    outputs_add(out, k, "sum", sum, RLHF_F32, k->n_rows, d, NULL);
}

// ---- pool ----

static uint32_t pool_len(uint32_t row) { return 1 + row * 5 % 13; }

static void pool(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    const uint64_t d = (uint64_t)s->d;
    label(out, "pool", s);
    int32_t *offset = call_host(k, (k->n_rows + 1) * sizeof *offset);
    for (uint32_t i = 0; i < k->n_rows; i++)
        offset[i + 1] = offset[i] + (int32_t)pool_len(k->rows[i]);
    const uint64_t total = (uint64_t)offset[k->n_rows];
    float *x = call_host(k, total * d * sizeof *x);
    for (uint32_t i = 0; i < k->n_rows; i++) {
        float *one = call_normal(k, 100 + k->rows[i], pool_len(k->rows[i]) * d, 1.0);
        for (uint64_t j = 0; j < pool_len(k->rows[i]) * d; j++)
            x[(uint64_t)offset[i] * d + j] = one[j];
        free(one);
        k->n_host--;
    }
    rlhf_dev dev_x = call_floats(k, x, total * d, RLHF_F32);
    rlhf_dev dev_offset = call_ints(k, offset, k->n_rows + 1ull);
    rlhf_dev y = call_zeros(k, k->n_rows * d, RLHF_F32);
    KIT_OK(k->c, k->c->pool(k->c->ctx, y, dev_x, dev_offset, k->n_rows, s->d, s->kind));
    outputs_add(out, k, "out", y, RLHF_F32, k->n_rows, d, k->rows);
    KIT_OK(k->c, k->c->pool_bwd(k->c->ctx, dev_x, y, dev_offset, k->n_rows, s->d, s->kind));
    outputs_add(out, k, "dx", dev_x, RLHF_F32, total, d, NULL);
}

// ---- tests ----

static const op_fn ops[] = {convert, add, add_all, act, norm, norm_bwd, embed, gather, pool};

static void match(void **state) {
    for (size_t o = 0; o < CHECK_COUNT(ops); o++)
        for (size_t i = 0; i < CHECK_COUNT(shapes); i++)
            check_match(*state, ops[o], &shapes[i], shapes[i].rows, f32_bound, bf16_bound);
}

static void rows(void **state) {
    struct kit *k = *state;
    for (size_t o = 0; o < CHECK_COUNT(ops); o++) {
        for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
            if (shapes[i].rows < 9) continue;
            check_rows(k->cpu1, ops[o], &shapes[i], shapes[i].rows);
            check_rows(k->cpu2, ops[o], &shapes[i], shapes[i].rows);
        }
        check_rows(k->ref, ops[o], &shapes[1], shapes[1].rows);
    }
}

static void threads(void **state) {
    const struct shape tall[] = {{1201, 97, RLHF_F32, 1},
                                 {1201, 256, RLHF_BF16, 2},
                                 {2200, 512, RLHF_F32, 1}}; // streaming stores in add_all
    for (size_t o = 0; o < CHECK_COUNT(ops); o++) {
        for (size_t i = 0; i < CHECK_COUNT(shapes); i++)
            check_threads(*state, ops[o], &shapes[i], shapes[i].rows);
        for (size_t i = 0; i < CHECK_COUNT(tall); i++)
            check_threads(*state, ops[o], &tall[i], tall[i].rows);
    }
}

// Returns the expected rounding: conversion to bf16 flushes denormals on a CPU and keeps them on a
// card.
static float rounded(const rlhf_compute *c, float x) {
    return c->device == RLHF_DEVICE_CPU && fabsf(x) < FLT_MIN ? copysignf(0, x) : kit_bf16(x);
}

// Tests the rounding of convert, bit for bit, with every bf16 value and its neighbors in f32.
static void convert_rounds(void **state) {
    struct kit *kit = *state;
    enum { N = 3 * 65536 };
    float *x = malloc(N * sizeof *x), *got = malloc(N * sizeof *got),
          *want = malloc(N * sizeof *want);
    uint64_t n = 0;
    for (uint32_t hi = 0; hi < 0x10000; hi++) {
        const uint32_t exponent = hi & 0x7f80;
        if (exponent == 0x7f80 || (hi & 0x7fff) == 0x7f7f) continue; // inf, nan, last finite
        const uint32_t low[] = {0x8000, 0x7fff, 0x8001};
        for (int j = 0; j < 3; j++) {
            union {
                uint32_t bits;
                float f;
            } u = {hi << 16 | low[j]};
            x[n++] = u.f;
        }
    }
    rlhf_compute *backends[] = {kit->ref, kit->cpu1};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++) {
        struct call k = {.c = backends[b]};
        rlhf_dev src = call_floats(&k, x, n, RLHF_F32), dst = call_zeros(&k, n, RLHF_BF16);
        KIT_OK(k.c, k.c->convert(k.c->ctx, dst, RLHF_BF16, src, RLHF_F32, n));
        kit_read(k.c, got, dst, n, RLHF_BF16);
        call_finish(&k);
        for (uint64_t i = 0; i < n; i++)
            want[i] = rounded(k.c, x[i]);
        assert_tensor_close(got, want, n, 0.0, 0.0, backends[b]->name);
    }
    free(x);
    free(got);
    free(want);
}

// Values that a wrong rounding would change into another kind: the top of the range, infinities and
// NaN.
static void convert_keeps_inf_and_nan(void **state) {
    struct kit *kit = *state;
    const float x[] = {INFINITY, -INFINITY, NAN, 3.4028235e38f, 1e-45f, -0.0f};
    const float want[] = {INFINITY, -INFINITY, NAN, INFINITY, 0.0f, -0.0f};
    rlhf_compute *backends[] = {kit->ref, kit->cpu1};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++) {
        float got[6];
        struct call k = {.c = backends[b]};
        rlhf_dev src = call_floats(&k, x, 6, RLHF_F32), dst = call_zeros(&k, 6, RLHF_BF16);
        KIT_OK(k.c, k.c->convert(k.c->ctx, dst, RLHF_BF16, src, RLHF_F32, 6));
        kit_read(k.c, got, dst, 6, RLHF_BF16);
        call_finish(&k);
        assert_tensor_close(got, want, 6, 0.0, 0.0, backends[b]->name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(match), cmocka_unit_test(rows),
                                       cmocka_unit_test(threads), cmocka_unit_test(convert_rounds),
                                       cmocka_unit_test(convert_keeps_inf_and_nan)};
    return cmocka_run_group_tests_name("kernels: rows", tests, kit_setup, kit_teardown);
}
