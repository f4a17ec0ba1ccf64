// test_weights.c: weights that a backend packs for matrix products. Tests the size of packed
// weights, and products in both directions (linear and linear_dx).
#include "kit.h"

#include <stdio.h>
#include <string.h>

// Packing a weight increases bytes_in_use by its predicted size.
static void weights_foretold(void **state) {
    static const struct {
        int32_t k, n;
    } sizes[] = {{1, 1}, {16, 16}, {97, 33}, {64, 300}, {896, 128}};
    for (int i = 0; i < 2; i++) {
        rlhf_compute *c = kit_backend(*state, i);
        for (size_t j = 0; j < 8 * CHECK_COUNT(sizes); j++) {
            const int32_t k = sizes[j / 8].k, n = sizes[j / 8].n;
            const int32_t dtype = j & 4 ? RLHF_F32 : RLHF_BF16;
            const uint32_t flags = (uint32_t)j & 3;
            const uint64_t before = c->bytes_in_use(c->ctx);
            const uint64_t bytes = c->weight_bytes(c->ctx, k, n, dtype, flags);
            rlhf_weight *w = NULL;
            assert_true(bytes >= (uint64_t)k * (uint64_t)n * rlhf_dtype_size(dtype));
            assert_int_equal(c->bytes_in_use(c->ctx), before);
            KIT_OK(c, c->weight_create(c->ctx, k, n, dtype, flags, &w));
            assert_int_equal(c->bytes_in_use(c->ctx) - before, bytes);
            c->weight_destroy(c->ctx, w);
        }
        assert_int_equal(c->weight_bytes(c->ctx, 0, 16, RLHF_F32, 0), 0);
        assert_int_equal(c->weight_bytes(c->ctx, 16, -1, RLHF_F32, 0), 0);
        assert_int_equal(c->weight_bytes(c->ctx, 16, 16, RLHF_I32, 0), 0);
        assert_int_equal(c->weight_bytes(c->ctx, 16, 16, RLHF_F32, 1u << 30), 0);
    }
}

// The CPU stores a large weight once for both directions: the backward pass converts the packed
// panels. It stores a small f32 weight once for each direction.
static void way_back_of_large_weights_is_free(void **state) {
    const rlhf_compute *c = kit_backend(*state, 1);
    static const int32_t dtypes[] = {RLHF_F32, RLHF_BF16};
    if (c->device != RLHF_DEVICE_CPU) return;
    for (size_t i = 0; i < CHECK_COUNT(dtypes); i++)
        assert_int_equal(c->weight_bytes(c->ctx, 1200, 3000, dtypes[i], RLHF_WEIGHT_BACKWARD),
                         c->weight_bytes(c->ctx, 1200, 3000, dtypes[i], 0));
    assert_int_equal(c->weight_bytes(c->ctx, 97, 300, RLHF_F32, RLHF_WEIGHT_BACKWARD),
                     c->weight_bytes(c->ctx, 97, 300, RLHF_F32, 0) +
                         c->weight_bytes(c->ctx, 300, 97, RLHF_F32, 0));
}

struct turned {
    uint32_t rows;
    int32_t k, n, dtype, out_dtype, accumulate;
};

// The result of linear_dx with the weight `w` equals the result of linear with `t`, a weight that
// was packed as the transpose of `w`.
static void dx_is_by(rlhf_compute *c, const struct turned *s, uint32_t layout) {
    struct call k = {.c = c};
    const uint64_t kk = (uint64_t)s->k, n = (uint64_t)s->n, out = s->rows * kk;
    const float *numbers = call_normal(&k, 1, kk * n, 1.0);
    rlhf_weight *w = call_weight(&k, numbers, s->k, s->n, s->dtype,
                                 (layout ^ RLHF_WEIGHT_OUT_IN) | RLHF_WEIGHT_BACKWARD);
    rlhf_weight *t = call_weight(&k, numbers, s->n, s->k, s->dtype, layout);
    rlhf_dev dy = call_floats(&k, call_normal(&k, 2, s->rows * n, 1.0), s->rows * n, s->dtype);
    const float *at = call_normal(&k, 3, out, 1.0);
    rlhf_dev dx = call_floats(&k, at, out, s->out_dtype);
    rlhf_dev y = call_floats(&k, at, out, s->out_dtype);
    float *got = call_host(&k, out * sizeof *got), *want = call_host(&k, out * sizeof *want);
    KIT_OK(c, c->linear_dx(c->ctx, dx, s->out_dtype, s->accumulate, dy, w, s->rows));
    KIT_OK(c, c->linear(c->ctx, y, s->out_dtype, s->accumulate, dy, t, NULL, s->rows));
    kit_read(c, got, dx, out, s->out_dtype);
    kit_read(c, want, y, out, s->out_dtype);
    if (memcmp(got, want, out * sizeof *got) != 0)
        printf("  %s: %u rows by %d x %d turned differ\n", c->name, s->rows, s->k, s->n);
    assert_memory_equal(got, want, out * sizeof *got);
    call_finish(&k);
}

static void dx_is_by_the_transpose(void **state) {
    static const struct turned all[] = {
        {5, 1, 1, RLHF_F32, RLHF_F32, 0},        {37, 97, 33, RLHF_F32, RLHF_F32, 0},
        {70, 33, 1100, RLHF_F32, RLHF_F32, 1},   {3, 40, 2100, RLHF_F32, RLHF_F32, 0},
        {5, 1, 1, RLHF_BF16, RLHF_F32, 0},       {37, 97, 33, RLHF_BF16, RLHF_BF16, 0},
        {70, 31, 4200, RLHF_BF16, RLHF_BF16, 0}, {64, 300, 47, RLHF_BF16, RLHF_F32, 1},
        {33, 64, 64, RLHF_BF16, RLHF_BF16, 0}};
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu1, kit->cpu2};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++)
        for (size_t i = 0; i < CHECK_COUNT(all) * 2; i++)
            dx_is_by(backends[b], &all[i / 2], i & 1 ? RLHF_WEIGHT_OUT_IN : 0);
}

// Weights above the size up to which the CPU stores a weight for each direction. It converts the
// panels of these.
static void dx_is_by_the_transpose_of_large_weights(void **state) {
    static const struct turned all[] = {
        {5, 1, 1600001, RLHF_F32, RLHF_F32, 0},   {37, 97, 16500, RLHF_F32, RLHF_F32, 0},
        {9, 1100, 1501, RLHF_F32, RLHF_F32, 1},   {3, 41000, 40, RLHF_F32, RLHF_F32, 0},
        {5, 1, 3200001, RLHF_BF16, RLHF_F32, 0},  {37, 97, 33001, RLHF_BF16, RLHF_BF16, 0},
        {9, 1101, 3000, RLHF_BF16, RLHF_BF16, 0}, {33, 300, 11001, RLHF_BF16, RLHF_F32, 1},
        {3, 82001, 40, RLHF_BF16, RLHF_F32, 1}};
    struct kit *kit = *state;
    if (kit->cpu1->device != RLHF_DEVICE_CPU) skip();
    for (size_t i = 0; i < CHECK_COUNT(all); i++)
        assert_int_equal(
            kit->cpu1->weight_bytes(kit->cpu1->ctx, all[i].k, all[i].n, all[i].dtype,
                                    RLHF_WEIGHT_BACKWARD),
            kit->cpu1->weight_bytes(kit->cpu1->ctx, all[i].k, all[i].n, all[i].dtype, 0));
    for (size_t i = 0; i < CHECK_COUNT(all) * 4; i++)
        dx_is_by(i & 1 ? kit->cpu1 : kit->cpu2, &all[i / 4], i & 2 ? RLHF_WEIGHT_OUT_IN : 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(way_back_of_large_weights_is_free),
                                       cmocka_unit_test(dx_is_by_the_transpose),
                                       cmocka_unit_test(dx_is_by_the_transpose_of_large_weights),
                                       cmocka_unit_test(weights_foretold)};
    return cmocka_run_group_tests_name("kernels: weights", tests, kit_setup, kit_teardown);
}
