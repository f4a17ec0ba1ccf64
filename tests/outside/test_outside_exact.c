// test_outside_exact.c: tests row exactness with the methods of other projects, for every backend
// and dtype. A backend that is wrong on purpose (row_dependent.c) must fail the same tests.
//
//   vLLM, tests/v1/determinism/test_batch_invariance.py: one prompt among random ones, five trials
//   (..with_needle); log-probs of a batch of 1 against N (..bs1_vs_bsN); decode against prefill
//   (test_decode_logprobs_match_prefill_logprobs); and ..without_batch_invariance_should_fail.
//   batch_invariant_ops, test_batch_invariance.py: mm(a[:1], b) == mm(a, b)[:1] of linspace(-100,
//   100) in f32 and bf16, difference exactly 0.
//
// Each question returns the number of values that differ in any bit.
#include "../models/support.h"

#include <rlhf/rng.h>

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { VOCAB = 61, CONTEXT = 24, BATCH_MOST = 64 };

// ---- a batch of random rows ----

struct rows {
    rlhf_batch b;
    int32_t ids[BATCH_MOST * CONTEXT], offset[BATCH_MOST + 1], prompt_len[BATCH_MOST];
    float logp[BATCH_MOST * CONTEXT];
};

static void rows_add(struct rows *r, const int32_t *ids, int32_t len) {
    const int32_t at = r->offset[r->b.n];
    memcpy(r->ids + at, ids, (uint64_t)len * sizeof *ids);
    r->prompt_len[r->b.n] = 1;
    r->offset[++r->b.n] = at + len;
    r->b.total = (uint32_t)(at + len);
}

static struct rows *rows_new(void) {
    struct rows *r = test_calloc(1, sizeof *r);
    r->b = (rlhf_batch){
        .size = sizeof r->b, .ids = r->ids, .offset = r->offset, .prompt_len = r->prompt_len};
    return r;
}

static int32_t random_row(rlhf_rng *g, int32_t *ids) {
    const int32_t len = 2 + (int32_t)rlhf_rng_below(g, CONTEXT - 1);
    for (int32_t t = 0; t < len; t++)
        ids[t] = (int32_t)rlhf_rng_below(g, VOCAB);
    return len;
}

static void score(struct model *m, struct rows *r) {
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_LOGP};
    const rlhf_heads out = {.size = sizeof out, .logp = r->logp};
    must(m, m->ops->forward(m->self, &r->b, &f, &out));
}

static uint64_t differing(const void *a, const void *b, uint64_t n, uint64_t size) {
    uint64_t count = 0;
    for (uint64_t i = 0; i < n; i++)
        count += memcmp((const char *)a + i * size, (const char *)b + i * size, size) != 0;
    return count;
}

static struct model policy(const struct backend *b, int32_t dtype) {
    const rlhf_model_open o = open_args(b, dtype, 0);
    struct model m = model_open("gpt2", tiny_gpt2, &o);
    model_fill(&m, 0.3);
    return m;
}

// ---- the questions ----

typedef uint64_t question(const struct backend *b, int32_t dtype);

static uint64_t one_row_among_random_ones(const struct backend *b, int32_t dtype) {
    static const uint32_t batch[] = {2, 7, 16, 33, BATCH_MOST}; // five trials
    struct model m = policy(b, dtype);
    rlhf_rng g = {7, rlhf_rng_stream("needle"), 0};
    const int32_t needle[] = {3, 14, 15, 9, 26, 5}, len = 6;
    int32_t other[CONTEXT];
    struct rows *alone = rows_new();
    uint64_t bad = 0;
    rows_add(alone, needle, len);
    score(&m, alone);
    for (uint32_t trial = 0; trial < 5; trial++) {
        struct rows *all = rows_new();
        const uint32_t place = (uint32_t)rlhf_rng_below(&g, batch[trial]);
        for (uint32_t i = 0; i < batch[trial]; i++)
            if (i == place)
                rows_add(all, needle, len);
            else
                rows_add(all, other, random_row(&g, other));
        score(&m, all);
        bad += differing(alone->logp, all->logp + all->offset[place], (uint64_t)len, sizeof(float));
        test_free(all);
    }
    test_free(alone);
    model_close(&m);
    return bad;
}

static uint64_t batch_of_1_against_n(const struct backend *b, int32_t dtype) {
    struct model m = policy(b, dtype);
    rlhf_rng g = {8, rlhf_rng_stream("batch"), 0};
    struct rows *all = rows_new();
    int32_t ids[CONTEXT];
    uint64_t bad = 0;
    for (int32_t i = 0; i < 32; i++)
        rows_add(all, ids, random_row(&g, ids));
    score(&m, all);
    for (uint32_t i = 0; i < all->b.n; i++) {
        struct rows *one = rows_new();
        const int32_t at = all->offset[i], len = all->offset[i + 1] - at;
        rows_add(one, all->ids + at, len);
        score(&m, one);
        bad += differing(one->logp, all->logp + at, (uint64_t)len, sizeof(float));
        test_free(one);
    }
    test_free(all);
    model_close(&m);
    return bad;
}

// Rows with a prompt of one token are sampled to the end of the context, one token per step. Then
// all of their tokens are scored at once.
static uint64_t decode_against_prefill(const struct backend *b, int32_t dtype) {
    enum { ROWS = 5, NEW = CONTEXT - 1 };
    struct model m = policy(b, dtype);
    int32_t text[ROWS][CONTEXT] = {{3}, {14}, {15}, {9}, {26}}, slot[ROWS], start[ROWS];
    int32_t ids[ROWS], next[ROWS], offset[ROWS + 1] = {0};
    float drawn[ROWS][CONTEXT] = {{0}}, logp[ROWS];
    uint64_t counter[ROWS], bad = 0;
    rlhf_gen *session = NULL;
    must(&m, m.ops->gen_open(m.self, ROWS, CONTEXT, &session));
    for (int32_t t = 0; t < NEW; t++) {
        for (int32_t i = 0; i < ROWS; i++) {
            slot[i] = i;
            start[i] = t;
            ids[i] = text[i][t];
            offset[i + 1] = i + 1;
            counter[i] = (uint64_t)i * CONTEXT + (uint64_t)t;
        }
        const rlhf_gen_step s = {.size = sizeof s,
                                 .n = ROWS,
                                 .slot = slot,
                                 .start = start,
                                 .ids = ids,
                                 .offset = offset,
                                 .seed = 4,
                                 .counter = counter,
                                 .next = next,
                                 .logp = logp};
        must(&m, m.ops->gen_step(m.self, session, &s));
        for (int32_t i = 0; i < ROWS; i++) {
            text[i][t + 1] = next[i];
            drawn[i][t + 1] = logp[i];
        }
    }
    m.ops->gen_close(m.self, session);
    struct rows *all = rows_new();
    for (int32_t i = 0; i < ROWS; i++)
        rows_add(all, text[i], CONTEXT);
    score(&m, all);
    bad = differing(drawn, all->logp, ROWS * CONTEXT, sizeof(float));
    test_free(all);
    model_close(&m);
    return bad;
}

// Compares the first row of a product of many rows with the product of that row alone.
static uint64_t first_row_of_a_product(const struct backend *b, int32_t dtype) {
    enum { M = 192, K = 384, N = 96 };
    const rlhf_compute *c = b->compute;
    rlhf_dev src = NULL, wide = NULL, a = NULL, one = NULL, all = NULL;
    rlhf_weight *w = NULL;
    const uint64_t size = rlhf_dtype_size(dtype);
    float *x = test_malloc((M + N) * K * sizeof *x), got[2][N];
    for (uint64_t i = 0; i < M * K; i++) // linspace(-100, 100)
        x[i] = (float)(-100.0 + 200.0 * (double)i / (M * K - 1));
    for (uint64_t i = 0; i < N * K; i++)
        x[M * K + i] = (float)(-100.0 + 200.0 * (double)i / (N * K - 1));
    assert_int_equal(c->alloc(c->ctx, M * K * sizeof *x, &wide), RLHF_OK);
    assert_int_equal(c->alloc(c->ctx, N * K * sizeof *x, &src), RLHF_OK);
    assert_int_equal(c->alloc(c->ctx, M * K * size, &a), RLHF_OK);
    assert_int_equal(c->alloc(c->ctx, M * N * sizeof(float), &all), RLHF_OK);
    assert_int_equal(c->alloc(c->ctx, N * sizeof(float), &one), RLHF_OK);
    assert_int_equal(c->weight_create(c->ctx, K, N, dtype, RLHF_WEIGHT_OUT_IN, &w), RLHF_OK);
    device_write(c, wide, x, M * K);
    device_write(c, src, x + M * K, N * K);
    assert_int_equal(c->convert(c->ctx, a, dtype, wide, RLHF_F32, M * K), RLHF_OK);
    assert_int_equal(c->weight_pack(c->ctx, w, src), RLHF_OK);
    assert_int_equal(c->linear(c->ctx, all, RLHF_F32, 0, a, w, NULL, M), RLHF_OK);
    assert_int_equal(c->linear(c->ctx, one, RLHF_F32, 0, a, w, NULL, 1), RLHF_OK);
    assert_int_equal(c->download(c->ctx, got[0], one, sizeof *got), RLHF_OK);
    assert_int_equal(c->download(c->ctx, got[1], all, sizeof *got), RLHF_OK);
    assert_true(fabsf(got[0][0]) > 1e5f);
    rlhf_dev bufs[] = {src, wide, a, one, all};
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++)
        c->release(c->ctx, bufs[i]);
    c->weight_destroy(c->ctx, w);
    test_free(x);
    return differing(got[0], got[1], N, sizeof(float));
}

static const struct {
    const char *name;
    question *ask;
} questions[] = {{"one row among random ones", one_row_among_random_ones},
                 {"a batch of 1 against N", batch_of_1_against_n},
                 {"decode against prefill", decode_against_prefill},
                 {"the first row of a product", first_row_of_a_product}};
enum { N_QUESTIONS = sizeof questions / sizeof *questions };

// ---- the answers ----

static void exact_on(const char *name, uint32_t threads) {
    struct backend b = backend_open(name, threads, 0);
    assert_non_null(b.compute);
    assert_true(b.compute->flags & RLHF_COMPUTE_ROW_EXACT);
    for (int i = 0; i < N_QUESTIONS; i++)
        for (int32_t dtype = RLHF_F32; dtype <= RLHF_BF16; dtype++) {
            const uint64_t bad = questions[i].ask(&b, dtype);
            if (bad)
                fail_msg("%s, %s: %s: %llu values differ", name,
                         dtype == RLHF_BF16 ? "bf16" : "f32", questions[i].name,
                         (unsigned long long)bad);
        }
    backend_close(&b);
}

static void reference_is_exact(void **state) {
    (void)state;
    exact_on("reference", 1);
}

static void cpu_is_exact(void **state) {
    (void)state;
    exact_on("cpu", 1);
    exact_on("cpu", 2);
}

// This is the negative control: each question must detect row_dependent.c.
static void row_dependence_is_found(void **state) {
    (void)state;
    struct backend b = backend_of(ROW_DEPENDENT_SO, 1, 0);
    assert_non_null(b.compute);
    for (int i = 0; i < N_QUESTIONS; i++)
        for (int32_t dtype = RLHF_F32; dtype <= RLHF_BF16; dtype++) {
            const uint64_t bad = questions[i].ask(&b, dtype);
            printf("  %s, %s: %llu values differ\n", questions[i].name,
                   dtype == RLHF_BF16 ? "bf16" : "f32", (unsigned long long)bad);
            assert_true(bad > 0);
        }
    backend_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(reference_is_exact),
                                       cmocka_unit_test(cpu_is_exact),
                                       cmocka_unit_test(row_dependence_is_found)};
    return cmocka_run_group_tests_name("outside: exactness", tests, NULL, NULL);
}
