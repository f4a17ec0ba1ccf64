// test_quantised.c: weights whose rows stay quantised. Their elements are those of the Python
// package gguf (make_quantised_vectors.py). Every call that accepts such a weight gives the same
// bits as with a weight that is packed from the dequantised rows.
#include "quantised_weight.h"
#include "support/numbers.h"

#include <stdio.h>
#include <string.h>

enum { RANK = 8 };

// Panels have 8 to 32 columns. The parts begin at whole panels, inside of a panel and at odd rows.
// The last three have more than one pass of a GEMM and of its backward GEMM.
static const struct quantised_shape shapes[] = {
    {32, 1, {Q8_0}, {1}},
    {96, 1, {Q8_0}, {70}},
    {96, 1, {Q4_0}, {70}},
    {96, 1, {Q4_1}, {70}},
    {96, 1, {Q5_0}, {70}},
    {96, 1, {Q5_1}, {70}},
    {512, 1, {Q4_K}, {70}},
    {512, 1, {Q6_K}, {70}},
    {256, 3, {Q4_K, Q4_K, Q6_K}, {64, 32, 32}},
    {256, 3, {Q4_K, Q6_K, Q8_0}, {33, 31, 7}},
    {256, 3, {Q4_0, Q4_1, Q4_0}, {1, 1, 100}},
    {64, 2, {Q4_1, Q8_0}, {5, 130}},
    {4608, 2, {Q4_K, Q6_K}, {37, 40}},
    {4608, 1, {Q4_0}, {64}},
    {256, 2, {Q6_K, Q4_1}, {4200, 33}},
};

static const uint32_t row_counts[] = {1, 3, 33};

// The dequantised rows, as the backend computes them.
static float *rows_of(struct call *k, const rlhf_weight *w, const struct quantised_shape *s) {
    const uint64_t n = (uint64_t)quantised_outputs(s), all = n * (uint64_t)s->k;
    int32_t *ids = call_host(k, n * sizeof *ids);
    for (uint64_t i = 0; i < n; i++)
        ids[i] = (int32_t)i;
    rlhf_dev out = call_zeros(k, all, RLHF_F32);
    KIT_OK(k->c, k->c->embed_weight(k->c->ctx, out, call_ints(k, ids, n), w, 1.0, (uint32_t)n));
    float *x = call_host(k, all * sizeof *x);
    kit_read(k->c, x, out, all, RLHF_F32);
    return x;
}

// ---- elements ----

static void elements_are_those_of_gguf(void **state) {
    struct kit *kit = *state;
    json_t *all = numbers_open("kernels/quantised_vectors.json");
    const json_t *cases = numbers_list(all, "cases", 7);
    rlhf_compute *backends[] = {kit->ref, kit->cpu2};
    for (size_t i = 0; i < 14; i++) {
        const json_t *from = json_array_get(cases, i / 2);
        struct call k = {.c = backends[i % 2]};
        const size_t n = (size_t)numbers_int(from, "elements"),
                     size = (size_t)numbers_int(from, "size");
        const struct quantised_shape s = {(int32_t)n, 1, {numbers_int(from, "format")}, {1}};
        uint32_t *bits = call_host(&k, n * sizeof *bits),
                 *bytes = call_host(&k, size * sizeof *bytes);
        uint8_t *blocks = call_host(&k, size);
        numbers_words(from, "bits", bits, n);
        numbers_words(from, "blocks", bytes, size);
        for (size_t b = 0; b < size; b++)
            blocks[b] = (uint8_t)bytes[b];
        rlhf_weight *w = quantised_weight(&k, &s, RLHF_F32);
        KIT_OK(k.c, k.c->weight_put(k.c->ctx, w, 0, 1, blocks));
        const float *x = rows_of(&k, w, &s);
        for (size_t e = 0; e < n; e++) {
            uint32_t got;
            memcpy(&got, &x[e], sizeof got);
            if (got != bits[e])
                fail_msg("%s, format %d, element %zu: %08x, of gguf it is %08x", k.c->name,
                         s.format[0], e, got, bits[e]);
        }
        call_finish(&k);
    }
    json_decref(all);
}

// ---- calls ----

// One call with a weight. Writes its result, which is in host memory, to `to`, and returns the
// number of elements.
struct job {
    const struct quantised_shape *s;
    uint32_t rows;
    int32_t dtype, out_dtype;
    int mode; // a case of the call
};
typedef uint64_t call_fn(struct call *k, const struct job *j, const rlhf_weight *w, float *to);

static rlhf_dev normal(struct call *k, uint64_t tag, uint64_t n, int32_t dtype) {
    return call_floats(k, call_normal(k, tag, n, 1.0), n, dtype);
}

static uint64_t read(struct call *k, float *to, rlhf_dev p, uint64_t n, int32_t dtype) {
    kit_read(k->c, to, p, n, dtype);
    return n;
}

// mode 1: with a bias, and added to the result.
static uint64_t linear(struct call *k, const struct job *j, const rlhf_weight *w, float *to) {
    const uint64_t n = (uint64_t)quantised_outputs(j->s), all = j->rows * n;
    const int32_t adds = j->mode && j->out_dtype == RLHF_F32;
    rlhf_dev out = normal(k, 1, all, j->out_dtype);
    rlhf_dev x = normal(k, 2, j->rows * (uint64_t)j->s->k, j->dtype);
    KIT_OK(k->c, k->c->linear(k->c->ctx, out, j->out_dtype, adds, x, w,
                              j->mode ? normal(k, 3, n, RLHF_F32) : NULL, j->rows));
    return read(k, to, out, all, j->out_dtype);
}

static uint64_t linear_add(struct call *k, const struct job *j, const rlhf_weight *w, float *to) {
    const uint64_t n = (uint64_t)quantised_outputs(j->s), all = j->rows * n;
    rlhf_dev out = call_zeros(k, all, RLHF_F32);
    rlhf_dev x = normal(k, 2, j->rows * (uint64_t)j->s->k, j->dtype);
    KIT_OK(k->c, k->c->linear_add(k->c->ctx, out, normal(k, 4, all, RLHF_F32), x, w,
                                  normal(k, 3, n, RLHF_F32), j->rows));
    return read(k, to, out, all, RLHF_F32);
}

static uint64_t linear_dx(struct call *k, const struct job *j, const rlhf_weight *w, float *to) {
    const uint64_t all = j->rows * (uint64_t)j->s->k;
    rlhf_dev dx = normal(k, 5, all, j->out_dtype);
    rlhf_dev dy = normal(k, 6, j->rows * (uint64_t)quantised_outputs(j->s), j->dtype);
    KIT_OK(k->c, k->c->linear_dx(k->c->ctx, dx, j->out_dtype, j->mode && j->out_dtype == RLHF_F32,
                                 dy, w, j->rows));
    return read(k, to, dx, all, j->out_dtype);
}

// mode 1: across. mode 2: the quantised weight is the second.
static uint64_t linear_sum(struct call *k, const struct job *j, const rlhf_weight *w, float *to) {
    const uint64_t in = (uint64_t)j->s->k, n = (uint64_t)quantised_outputs(j->s);
    const int across = j->mode == 1;
    const uint64_t width = across ? in : n, all = j->rows * width;
    rlhf_weight *low = across ? call_weight(k, call_normal(k, 7, RANK * in, 0.2), j->s->k, RANK,
                                            j->dtype, RLHF_WEIGHT_OUT_IN | RLHF_WEIGHT_BACKWARD)
                              : call_weight(k, call_normal(k, 7, RANK * n, 0.2), RANK, (int32_t)n,
                                            j->dtype, RLHF_WEIGHT_OUT_IN | RLHF_WEIGHT_BACKWARD);
    rlhf_dev x = normal(k, 8, j->rows * (across ? n : in), j->dtype);
    rlhf_dev x2 = normal(k, 9, j->rows * (uint64_t)RANK, j->dtype);
    const int second = j->mode == 2;
    const rlhf_linear_sum a = {.size = sizeof a,
                               .rows = j->rows,
                               .out_dtype = j->out_dtype,
                               .accumulate = j->out_dtype == RLHF_F32,
                               .across = across,
                               .out = normal(k, 10, all, j->out_dtype),
                               .x = second ? x2 : x,
                               .x2 = second ? x : x2,
                               .w = second ? low : w,
                               .w2 = second ? w : low,
                               .bias = across ? NULL : normal(k, 3, n, RLHF_F32)};
    KIT_OK(k->c, k->c->linear_sum(k->c->ctx, &a));
    return read(k, to, a.out, all, j->out_dtype);
}

// mode 1: with the weight as its own reference.
static uint64_t lm_head(struct call *k, const struct job *j, const rlhf_weight *w, float *to) {
    const uint64_t d = (uint64_t)j->s->k, rows = j->rows;
    const rlhf_dist dist = RLHF_DIST(0.7, 0.9, 0, 0);
    int32_t *ids = call_host(k, rows * sizeof *ids);
    for (uint64_t i = 0; i < rows; i++)
        ids[i] = (int32_t)(i * 7) % quantised_outputs(j->s);
    rlhf_dev one[6];
    for (int i = 0; i < 6; i++)
        one[i] = normal(k, 11 + (uint64_t)i, rows, RLHF_F32);
    const rlhf_dist whole = RLHF_DIST_WHOLE;
    rlhf_lm_head a = {.size = sizeof a,
                      .rows = j->rows,
                      .d = j->s->k,
                      .vocab = quantised_outputs(j->s),
                      .dtype = j->dtype,
                      .dist = j->mode ? &whole : &dist,
                      .hidden = normal(k, 17, rows * d, j->dtype),
                      .weight = w,
                      .target = call_ints(k, ids, rows),
                      .logp = one[0],
                      .entropy = one[1],
                      .kl = j->mode ? one[2] : NULL,
                      .ref_hidden = normal(k, 18, rows * d, j->dtype),
                      .ref_weight = w};
    KIT_OK(k->c, k->c->lm_head(k->c->ctx, &a));
    a.d_logp = one[3];
    a.d_entropy = one[4];
    a.d_kl = j->mode ? one[5] : NULL;
    a.d_hidden = call_zeros(k, rows * d, j->dtype);
    KIT_OK(k->c, k->c->lm_head_bwd(k->c->ctx, &a));
    uint64_t n = read(k, to, one[0], rows, RLHF_F32);
    n += read(k, to + n, one[1], rows, RLHF_F32);
    if (j->mode) n += read(k, to + n, one[2], rows, RLHF_F32);
    return n + read(k, to + n, a.d_hidden, rows * d, j->dtype);
}

static uint64_t lm_sample(struct call *k, const struct job *j, const rlhf_weight *w, float *to) {
    const rlhf_dist whole = RLHF_DIST_WHOLE;
    const uint64_t rows = j->rows;
    uint64_t *counter = call_host(k, rows * sizeof *counter);
    int32_t *id = call_host(k, rows * sizeof *id);
    float *logp = call_host(k, rows * sizeof *logp);
    for (uint64_t i = 0; i < rows; i++)
        counter[i] = 5 + i;
    const rlhf_lm_sample a = {.size = sizeof a,
                              .rows = j->rows,
                              .d = j->s->k,
                              .vocab = quantised_outputs(j->s),
                              .dtype = j->dtype,
                              .dist = &whole,
                              .logp_dist = &whole,
                              .hidden = normal(k, 19, rows * (uint64_t)j->s->k, j->dtype),
                              .weight = w,
                              .seed = 3,
                              .stream = 4,
                              .host_counter = counter,
                              .host_id = id,
                              .host_logp = logp};
    KIT_OK(k->c, k->c->lm_sample(k->c->ctx, &a));
    for (uint64_t i = 0; i < rows; i++) {
        to[i] = (float)id[i];
        to[rows + i] = logp[i];
    }
    return 2 * rows;
}

static const struct {
    const char *name;
    call_fn *call;
    int modes;
} calls[] = {{"linear", linear, 2},       {"linear_add", linear_add, 1},
             {"linear_dx", linear_dx, 2}, {"linear_sum", linear_sum, 3},
             {"lm_head", lm_head, 2},     {"lm_sample", lm_sample, 1}};

// Releases the buffers of a call, but not the weights before `weights`.
static void call_forget(struct call *k, uint32_t weights, uint32_t hosts) {
    for (uint32_t i = 0; i < k->n_dev; i++)
        k->c->release(k->c->ctx, k->dev[i]);
    for (uint32_t i = weights; i < k->n_weight; i++)
        k->c->weight_destroy(k->c->ctx, k->weight[i]);
    for (uint32_t i = hosts; i < k->n_host; i++)
        free(k->host[i]);
    k->n_dev = 0;
    k->n_weight = weights;
    k->n_host = hosts;
}

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

// Both weights give the same bits in this call.
static void compare(struct call *k, size_t i, const struct job *j, const rlhf_weight *const w[2]) {
    const uint64_t most = j->rows * (uint64_t)(j->s->k + quantised_outputs(j->s) + 4);
    float *got[2] = {malloc(most * sizeof(float)), malloc(most * sizeof(float))};
    uint64_t n = 0;
    for (int o = 0; o < 2; o++) {
        const uint32_t weights = k->n_weight, hosts = k->n_host;
        n = calls[i].call(k, j, w[o], got[o]);
        assert_true(n <= most);
        call_forget(k, weights, hosts);
    }
    for (uint64_t e = 0; e < n; e++)
        if (bits_of(got[0][e]) != bits_of(got[1][e]))
            fail_msg("%s %d of %s, k %d, n %d, format %d, %u rows, %s to %s: element %llu is %a, "
                     "with the dequantised weight %a",
                     calls[i].name, j->mode, k->c->detail, j->s->k, quantised_outputs(j->s),
                     j->s->format[0], j->rows, j->dtype == RLHF_F32 ? "f32" : "bf16",
                     j->out_dtype == RLHF_F32 ? "f32" : "bf16", (unsigned long long)e,
                     (double)got[0][e], (double)got[1][e]);
    free(got[0]);
    free(got[1]);
}

static void all_calls(struct call *k, const struct quantised_shape *s, int32_t dtype,
                      const rlhf_weight *const w[2]) {
    static const int32_t dtypes[] = {RLHF_F32, RLHF_BF16};
    for (size_t i = 0; i < CHECK_COUNT(calls); i++)
        for (size_t r = 0; r < CHECK_COUNT(row_counts); r++)
            for (int o = 0; o < 2; o++)
                for (int mode = 0; mode < calls[i].modes; mode++) {
                    const int heads = calls[i].call == lm_head || calls[i].call == lm_sample;
                    const struct job j = {s, row_counts[r], dtype, dtypes[o], mode};
                    if (o && (heads || calls[i].call == linear_add)) continue;
                    compare(k, i, &j, w);
                }
}

static int too_large(const rlhf_compute *c, const struct quantised_shape *s) {
    const char *largest = getenv("RLHF_TEST_LARGEST"); // for slow levels and the emulated device
    const uint64_t n = (uint64_t)s->k * (uint64_t)quantised_outputs(s);
    return (largest && n > strtoull(largest, NULL, 10)) ||
           (strcmp(c->name, "reference") == 0 && n > 100000);
}

// Skips weights of more than `most` elements, unless it is 0.
static void bits_of_the_dense_weight(rlhf_compute *c, rlhf_compute *ref, uint64_t most) {
    for (size_t i = 0; i < CHECK_COUNT(shapes); i++)
        for (int d = 0; d < 2; d++) {
            const struct quantised_shape *s = &shapes[i];
            const int32_t dtype = d ? RLHF_BF16 : RLHF_F32;
            const uint64_t all = (uint64_t)s->k * (uint64_t)quantised_outputs(s);
            struct call k = {.c = c}, r = {.c = ref};
            if (too_large(c, s) || (most && all > most)) continue;
            const rlhf_weight *w[2] = {quantised_weight(&k, s, dtype), NULL};
            const float *x = rows_of(&k, w[0], s);
            const float *same = rows_of(&r, quantised_weight(&r, s, dtype), s);
            assert_memory_equal(x, same, all * sizeof *x);
            w[1] = call_weight(&k, x, s->k, quantised_outputs(s), dtype,
                               RLHF_WEIGHT_OUT_IN | RLHF_WEIGHT_BACKWARD);
            all_calls(&k, s, dtype, w);
            call_finish(&k);
            call_finish(&r);
        }
}

static void calls_have_the_bits_of_the_dense_weight(void **state) {
    struct kit *kit = *state;
    rlhf_compute *three = kit_create(kit->kernels_cpu, 3, 0, 0);
    rlhf_compute *backends[] = {kit->ref, kit->cpu1, kit->cpu2, three};
    const size_t n = kit->cpu2->device == RLHF_DEVICE_CPU ? 4 : 2;
    for (size_t b = 0; b < n; b++)
        bits_of_the_dense_weight(backends[b], kit->ref, backends[b] == kit->cpu2 ? 0 : 100000);
    kit_destroy(three);
}

// Logits in blocks of rows, as with a small budget.
static void head_in_blocks(void **state) {
    struct kit *kit = *state;
    const struct quantised_shape *s = &shapes[CHECK_COUNT(shapes) - 1];
    if (too_large(kit->cpu2, s)) skip();
    rlhf_compute *c = kit_create(kit->kernels_cpu, 2, 0, 1 << 16);
    struct call k = {.c = c};
    const rlhf_weight *w[2] = {quantised_weight(&k, s, RLHF_F32), NULL};
    w[1] = call_weight(&k, rows_of(&k, w[0], s), s->k, quantised_outputs(s), RLHF_F32,
                       RLHF_WEIGHT_OUT_IN | RLHF_WEIGHT_BACKWARD);
    compare(&k, 4, &(const struct job){s, 150, RLHF_F32, RLHF_F32, 0}, w);
    call_finish(&k);
    kit_destroy(c);
}

// embed_weight equals embed with the dequantised rows.
static void embedding(void **state) {
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu2};
    static const double scales[] = {1.0, 25.298221281347036};
    for (size_t i = 0; i < 2 * CHECK_COUNT(shapes); i++) {
        const struct quantised_shape *s = &shapes[i / 2];
        struct call k = {.c = backends[i % 2]};
        if (too_large(k.c, s)) continue;
        const uint64_t d = (uint64_t)s->k, n = 5;
        const int32_t last = quantised_outputs(s) - 1, ids[] = {last, 0, last / 2, last, last / 3};
        rlhf_weight *w = quantised_weight(&k, s, i % 3 ? RLHF_BF16 : RLHF_F32);
        const float *x = rows_of(&k, w, s);
        rlhf_dev at = call_ints(&k, ids, n),
                 table = call_floats(&k, x, d * (uint64_t)(last + 1), RLHF_F32);
        float *got = call_host(&k, n * d * sizeof *got),
              *want = call_host(&k, n * d * sizeof *want);
        for (int o = 0; o < 2; o++) {
            rlhf_dev a = call_zeros(&k, n * d, RLHF_F32), b = call_zeros(&k, n * d, RLHF_F32);
            KIT_OK(k.c, k.c->embed_weight(k.c->ctx, a, at, w, scales[o], n));
            KIT_OK(k.c, k.c->embed(k.c->ctx, b, at, NULL, table, NULL, scales[o], n, s->k));
            kit_read(k.c, got, a, n * d, RLHF_F32);
            kit_read(k.c, want, b, n * d, RLHF_F32);
            assert_memory_equal(got, want, n * d * sizeof *got);
        }
        call_finish(&k);
    }
}

// ---- workspaces ----

// workspace_bytes of a product with this weight.
static uint64_t workspaces_of(rlhf_compute *c, const struct job *j, uint32_t op,
                              const rlhf_linear_sum *sum) {
    const rlhf_quantised a = quantised_arguments(j->s, j->dtype);
    const rlhf_call_weight low = {
        .k = RANK, .n = a.n, .dtype = a.dtype, .flags = RLHF_WEIGHT_OUT_IN | RLHF_WEIGHT_BACKWARD};
    const rlhf_call call = {.size = sizeof call,
                            .op = op,
                            .rows = j->rows,
                            .dtype = j->out_dtype,
                            .weight = {.k = a.k,
                                       .n = a.n,
                                       .dtype = a.dtype,
                                       .flags = RLHF_WEIGHT_OUT_IN | RLHF_WEIGHT_BACKWARD,
                                       .quantised = &a},
                            .weight2 = sum ? low : (rlhf_call_weight){0},
                            .sum = sum};
    uint64_t bytes[RLHF_WORKSPACES], all = 0;
    c->workspace_bytes(c->ctx, &call, bytes);
    for (size_t i = 0; i < RLHF_WORKSPACES; i++)
        all += bytes[i];
    return all;
}

// The first call of a table allocates the workspaces that workspace_bytes reports. Another device
// than the CPU may allocate more.
static void workspaces(void **state) {
    struct kit *kit = *state;
    static const uint32_t ops[] = {RLHF_COMPUTE_OP(linear), RLHF_COMPUTE_OP(linear_dx),
                                   RLHF_COMPUTE_OP(linear_sum)};
    call_fn *const of_op[] = {linear, linear_dx, linear_sum};
    for (size_t i = 0; i < 24; i++) {
        const struct quantised_shape *s = &shapes[8 + i % 2]; // whole panels in each part, or not
        rlhf_compute *c = kit_create(kit->kernels_cpu, 2, 0, 0);
        struct call k = {.c = c};
        const struct job j = {s, i / 2 % 2 ? 33 : 1, i / 4 % 2 ? RLHF_BF16 : RLHF_F32, RLHF_F32, 0};
        const size_t op = i / 8;
        float *to = call_host(&k, j.rows * (uint64_t)(s->k + quantised_outputs(s)) * sizeof *to);
        rlhf_weight *w = quantised_weight(&k, s, j.dtype);
        const uint64_t before = c->bytes_in_use(c->ctx);
        const uint32_t weights = k.n_weight, hosts = k.n_host;
        const rlhf_linear_sum sum = {.size = sizeof sum,
                                     .rows = j.rows,
                                     .out_dtype = j.out_dtype,
                                     .accumulate = 1,
                                     .bias = call_zeros(&k, 1, RLHF_F32)};
        const uint64_t want = workspaces_of(c, &j, ops[op], op == 2 ? &sum : NULL);
        // the workspace of weight_pack, for linear_sum's other weight
        if (op == 2)
            call_weight(&k, call_host(&k, (uint64_t)RANK * 256 * 4), RANK, 128, j.dtype, 0);
        call_forget(&k, weights, hosts);
        const uint64_t packed = c->bytes_in_use(c->ctx) - before;
        of_op[op](&k, &j, w, to);
        call_forget(&k, weights, hosts);
        const uint64_t got = c->bytes_in_use(c->ctx) - before;
        if (got < want || (c->device == RLHF_DEVICE_CPU && !packed && got > want))
            fail_msg("%s, call %zu: %llu bytes of workspaces, estimated %llu", c->name, i,
                     (unsigned long long)got, (unsigned long long)want);
        call_finish(&k);
        kit_destroy(c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_are_those_of_gguf),
        cmocka_unit_test(calls_have_the_bits_of_the_dense_weight),
        cmocka_unit_test(head_in_blocks),
        cmocka_unit_test(embedding),
        cmocka_unit_test(workspaces),
    };
    return cmocka_run_group_tests_name("kernels: quantised", tests, kit_setup, kit_teardown);
}
