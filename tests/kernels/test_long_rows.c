// test_long_rows.c: attention of queries with many keys. Long sums may be split, but always at the
// same points, whether a query is alone or among others.
#include "kit.h"
#include <math.h>
#include <stdio.h>

static const struct bound f32_bound = {1e-11, 5e-5}, bf16_bound = {2e-5, 5e-2};

// Queries at positions first .. first+count-1 over the same keys, either in separate rows or all in
// one row.
struct far {
    uint32_t first, count;
    int32_t heads, head_dim, dtype;
    int32_t window; // 0: none
};

static const struct far fars[] = {
    {500, 30, 1, 16, RLHF_BF16, 0},
    {500, 30, 1, 16, RLHF_F32, 0},
    {1016, 14, 2, 24, RLHF_BF16, 0},
    {1016, 14, 2, 24, RLHF_F32, 0},
    {1534, 4, 1, 64, RLHF_BF16, 0},
    {505, 18, 1, 128, RLHF_BF16, 0},
    {505, 18, 1, 128, RLHF_F32, 0},
    {505, 40, 1, 256, RLHF_BF16, 0},
    {505, 18, 1, 256, RLHF_F32, 0},
    // Windows that begin in the segment before the query's, and in the query's own.
    {530, 30, 1, 16, RLHF_BF16, 25},
    {530, 30, 1, 16, RLHF_F32, 25},
    {1016, 14, 2, 24, RLHF_BF16, 500},
    {1016, 14, 2, 24, RLHF_F32, 500},
    {1534, 4, 1, 64, RLHF_BF16, 520},
    {1534, 4, 1, 64, RLHF_F32, 7},
};

static void far_call(struct call *k, const struct far *f, struct outputs *out, int alone) {
    const uint64_t d = (uint64_t)f->heads * (uint64_t)f->head_dim;
    const uint32_t n = k->n_rows, keys = f->first + f->count;
    int32_t *offset = call_host(k, (n + 1) * sizeof *offset);
    int32_t *start = call_host(k, (n + 1) * sizeof *start);
    for (uint32_t i = 0; i < n; i++) {
        offset[i + 1] = (int32_t)(i + 1);
        start[i] = (int32_t)(f->first + k->rows[i]);
    }
    if (!alone) offset[1] = (int32_t)n;
    const uint32_t rows = alone ? n : 1;
    rlhf_ragged r = {
        .size = sizeof r, .n = rows, .total = n, .max_q = alone ? 1 : n, .max_k = keys};
    r.offset = call_ints(k, offset, rows + 1ull);
    r.start = call_ints(k, start, rows);
    r.kv_base = call_zeros(k, rows, RLHF_I32);
    rlhf_dev q = call_floats(k, call_normal_rows(k, 1, d, 2.0), n * d, f->dtype);
    rlhf_dev key = call_floats(k, call_normal(k, 2, keys * d, 1.0), keys * d, f->dtype);
    rlhf_dev v = call_floats(k, call_normal(k, 3, keys * d, 1.0), keys * d, f->dtype);
    rlhf_dev y = call_zeros(k, n * d, f->dtype);
    rlhf_dev lse = call_zeros(k, n * (uint64_t)f->heads, RLHF_F32);
    const rlhf_attn a = {.size = sizeof a,
                         .heads = f->heads,
                         .head_dim = f->head_dim,
                         .causal = 1,
                         .dtype = f->dtype,
                         .q_stride = (int64_t)d,
                         .kv_stride = (int64_t)d,
                         .out_stride = (int64_t)d,
                         .scale = 1.0 / sqrt((double)f->head_dim),
                         .window = f->window};
    snprintf(out->label, sizeof out->label, "%s at %u, %d x %d %s, window %d",
             alone ? "queries" : "a row", f->first, f->heads, f->head_dim,
             f->dtype == RLHF_BF16 ? "bf16" : "f32", f->window);
    KIT_OK(k->c, k->c->attention(k->c->ctx, &a, &r, y, lse, q, key, v));
    outputs_add(out, k, "out", y, f->dtype, n, d, k->rows);
    outputs_add(out, k, "lse", lse, RLHF_F32, n, (uint64_t)f->heads, k->rows);
}

static void far_alone(struct call *k, const void *f, struct outputs *out) {
    far_call(k, f, out, 1);
}

static void far_together(struct call *k, const void *f, struct outputs *out) {
    far_call(k, f, out, 0);
}

static void same_output(rlhf_compute *c, const struct far *f) {
    struct outputs x, y;
    op_run(c, far_together, f, f->count, &x);
    op_run(c, far_alone, f, f->count, &y);
    for (uint32_t o = 0; o < x.n; o++)
        for (uint64_t j = 0; j < x.o[o].n * x.o[o].width; j++)
            if (x.o[o].v[j] != y.o[o].v[j])
                fail_msg("%s on %s: %s %llu is %.9g, in %s %.9g", y.label, c->name, x.o[o].name,
                         (unsigned long long)j, y.o[o].v[j], x.label, x.o[o].v[j]);
    outputs_finish(&x);
    outputs_finish(&y);
}

static void far_queries(void **state) {
    struct kit *k = *state;
    for (size_t i = 0; i < CHECK_COUNT(fars); i++) {
        const struct far *f = &fars[i];
        check_match(k, far_alone, f, f->count, f32_bound, bf16_bound);
        same_output(k->cpu1, f);
        check_rows(k->cpu1, far_alone, f, f->count);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(far_queries)};
    return cmocka_run_group_tests_name("kernels: long rows", tests, kit_setup, kit_teardown);
}
