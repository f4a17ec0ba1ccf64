// test_dist.c: edge cases of the language-model head: the ids that top-k and top-p keep when logits
// are equal, logits that are not finite, logits kept for backward, and more rows than a chunk.
// test_lm_head.c and test_lm_sample.c test shapes, and that rows and threads do not change the
// bits.
#include "kit.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- the kept set ----

// Row r of a call has the hidden state e_r. So its logits are column r of the weight, which holds
// pattern r.
enum { PATTERNS = 6, MAX_VOCAB = 5000 };

static float pattern(int r, int32_t v, int32_t vocab) {
    switch (r) {
    case 0:
        return 1.25f; // all equal
    case 1:
        return v % 3 == 1 ? 2.0f : -3.0f; // two levels
    case 2:
        return 0.01f * (float)(vocab - v); // decreasing
    case 3:
        return -100.0f + 0.5f * (float)(v * 7919 % 64); // far below 0, many ties
    case 4:
        return v % 2 ? -0.0f : 0.0f; // -0 equals 0
    default:
        return (float)(v * 7919 % 1009 - 500) * (v % 5 ? 0.01f : 1e-30f); // around 0
    }
}

struct ranked {
    float z;
    int32_t id;
};

static int by_rank(const void *a, const void *b) {
    const struct ranked *x = a, *y = b;
    if (x->z != y->z) return x->z > y->z ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

// Sorts the ids of pattern r into `of` by their rank, and returns how many of them `d` keeps. If
// rounding may change this number, sets *doubt to 1.
static int32_t kept_by(const rlhf_dist *d, int r, int32_t vocab, struct ranked *of, int *doubt) {
    double total = 0.0, reached = 0.0;
    for (int32_t v = 0; v < vocab; v++)
        of[v] = (struct ranked){pattern(r, v, vocab), v};
    qsort(of, (size_t)vocab, sizeof *of, by_rank);
    const int32_t n = d->top_k > 0 && d->top_k < vocab ? d->top_k : vocab;
    *doubt = 0;
    if (d->top_p >= 1.0) return n;
    for (int32_t i = 0; i < n; i++)
        total += exp((double)(of[i].z - of[0].z) * d->inv_temperature);
    for (int32_t i = 0; i < n; i++) {
        reached += exp((double)(of[i].z - of[0].z) * d->inv_temperature);
        if (fabs(reached - d->top_p * total) < 1e-6 * total) *doubt = 1;
        if (reached >= d->top_p * total) return i + 1;
    }
    return n;
}

static void kept_is(rlhf_compute *c, int32_t vocab, const rlhf_dist *dist) {
    struct call k = {.c = c};
    const rlhf_dist whole = RLHF_DIST_WHOLE;
    const uint32_t words = rlhf_support_words(vocab);
    float *w = call_host(&k, (uint64_t)vocab * 8 * sizeof *w), x[PATTERNS * 8] = {0};
    for (int r = 0; r < PATTERNS; r++) {
        x[r * 8 + r] = 1.0f;
        for (int32_t v = 0; v < vocab; v++)
            w[v * 8 + r] = pattern(r, v, vocab);
    }
    uint64_t counter[PATTERNS] = {1, 2, 3, 4, 5, 6};
    int32_t id[PATTERNS];
    float logp[PATTERNS];
    uint32_t *bits = call_host(&k, PATTERNS * words * sizeof *bits);
    uint32_t *want = call_host(&k, words * sizeof *want);
    struct ranked *of = call_host(&k, (uint64_t)vocab * sizeof *of);
    const rlhf_lm_sample a = {.size = sizeof a,
                              .rows = PATTERNS,
                              .d = 8,
                              .vocab = vocab,
                              .dtype = RLHF_F32,
                              .dist = dist,
                              .logp_dist = &whole,
                              .hidden = call_floats(&k, x, PATTERNS * 8, RLHF_F32),
                              .weight = call_weight(&k, w, 8, vocab, RLHF_F32, RLHF_WEIGHT_OUT_IN),
                              .seed = 5,
                              .host_counter = counter,
                              .host_id = id,
                              .host_logp = logp,
                              .host_support = bits};
    KIT_OK(c, c->lm_sample(c->ctx, &a));
    for (int r = 0; r < PATTERNS; r++) {
        int doubt;
        const int32_t n = kept_by(dist, r, vocab, of, &doubt);
        const uint32_t *got = bits + (uint32_t)r * words;
        assert_true(got[id[r] / 32] >> id[r] % 32 & 1);
        if (doubt) continue;
        memset(want, 0, words * sizeof *want);
        for (int32_t i = 0; i < n; i++)
            want[of[i].id / 32] |= 1u << of[i].id % 32;
        if (memcmp(got, want, words * sizeof *want) != 0)
            fail_msg("%s: vocabulary %d, top_k %d, top_p %g, pattern %d: not the %d ids wanted",
                     c->name, vocab, dist->top_k, dist->top_p, r, n);
    }
    call_finish(&k);
}

static void of_equal_logits_the_lowest_ids_are_kept(void **state) {
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu1};
    const int32_t vocabs[] = {3, 31, 257, 1000, 4097, MAX_VOCAB};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++)
        for (size_t i = 0; i < CHECK_COUNT(vocabs); i++) {
            const int32_t n = vocabs[i];
            const rlhf_dist dists[] = {
                RLHF_DIST(1.0, 1.0, 1, 0),     RLHF_DIST(1.0, 1.0, 2, 0),
                RLHF_DIST(1.0, 1.0, n / 2, 0), RLHF_DIST(1.0, 1.0, n - 1, 0),
                RLHF_DIST(1.0, 0.47, 0, 0),    RLHF_DIST(0.5, 0.999, 0, 0),
                RLHF_DIST(1.3, 1e-9, 0, 0),    RLHF_DIST(1.0, 0.73, n - 1, 0)};
            for (size_t j = 0; j < CHECK_COUNT(dists); j++)
                if (dists[j].top_k || dists[j].top_p < 1.0) kept_is(backends[b], n, &dists[j]);
        }
}

// ---- a head with random numbers ----

struct shape {
    uint32_t rows;
    int32_t d, vocab, dtype;
};

static rlhf_lm_head make_head(struct call *k, const struct shape *s, const rlhf_dist *dist) {
    const uint64_t n = k->n_rows, d = (uint64_t)s->d, vocab = (uint64_t)s->vocab;
    rlhf_lm_head a = {.size = sizeof a,
                      .rows = k->n_rows,
                      .d = s->d,
                      .vocab = s->vocab,
                      .dtype = s->dtype,
                      .dist = dist};
    int32_t *target = call_host(k, n * sizeof *target);
    for (uint32_t i = 0; i < n; i++)
        target[i] = (int32_t)(k->rows[i] * 7919u % (uint32_t)s->vocab);
    a.weight = call_weight(k, call_normal(k, 1, vocab * d, 0.3), s->d, s->vocab, s->dtype,
                           RLHF_WEIGHT_OUT_IN | RLHF_WEIGHT_BACKWARD);
    a.hidden = call_floats(k, call_normal_rows(k, 2, d, 1.0), n * d, s->dtype);
    a.target = call_ints(k, target, n);
    a.logp = call_zeros(k, n, RLHF_F32);
    a.entropy = call_zeros(k, n, RLHF_F32);
    a.d_logp = call_floats(k, call_normal_rows(k, 5, 1, 1.0), n, RLHF_F32);
    a.d_entropy = call_floats(k, call_normal_rows(k, 6, 1, 1.0), n, RLHF_F32);
    a.d_hidden = call_zeros(k, n * d, s->dtype);
    a.d_weight = call_zeros(k, d * vocab, RLHF_F32);
    return a;
}

// lm_head keeps logits for lm_head_bwd. If the hidden states are overwritten in between, the logits
// must be dropped: lm_head_bwd gives the same results as without the call of lm_head.
static void a_write_drops_what_was_kept(void **state) {
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu1};
    const uint32_t rows[] = {0, 1, 2, 3, 4};
    const struct shape s = {5, 16, 97, RLHF_F32};
    const rlhf_dist whole = RLHF_DIST_WHOLE;
    float want[97 * 16], got[97 * 16];
    for (size_t b = 0; b < CHECK_COUNT(backends); b++) {
        struct call k = {.c = backends[b], .rows = rows, .n_rows = 5};
        const rlhf_lm_head a = make_head(&k, &s, &whole);
        KIT_OK(k.c, k.c->lm_head_bwd(k.c->ctx, &a));
        kit_read(k.c, want, a.d_weight, 97 * 16, RLHF_F32);
        const float *other = call_normal_rows(&k, 9, 16, 1.0),
                    *own = call_normal_rows(&k, 2, 16, 1.0);
        KIT_OK(k.c, k.c->zero(k.c->ctx, a.d_weight, sizeof want));
        KIT_OK(k.c, k.c->upload(k.c->ctx, a.hidden, other, 5 * 16 * sizeof(float)));
        KIT_OK(k.c, k.c->lm_head(k.c->ctx, &a));
        KIT_OK(k.c, k.c->upload(k.c->ctx, a.hidden, own, 5 * 16 * sizeof(float)));
        KIT_OK(k.c, k.c->lm_head_bwd(k.c->ctx, &a));
        kit_read(k.c, got, a.d_weight, 97 * 16, RLHF_F32);
        assert_memory_equal(got, want, sizeof want);
        call_finish(&k);
    }
}

// The same is true if a recorded call overwrites the hidden states.
static void a_replayed_write_drops_what_was_kept(void **state) {
    struct kit *kit = *state;
    const uint32_t rows[] = {0, 1, 2, 3, 4};
    const struct shape s = {5, 16, 97, RLHF_F32};
    const rlhf_dist whole = RLHF_DIST_WHOLE;
    struct call k = {.c = kit->cpu1, .rows = rows, .n_rows = 5};
    float want[97 * 16], got[97 * 16];
    int32_t what = RLHF_RECORD_RUN;
    if (!RLHF_COMPUTE_HAS(k.c, record)) skip();
    const rlhf_lm_head a = make_head(&k, &s, &whole);
    KIT_OK(k.c, k.c->lm_head_bwd(k.c->ctx, &a));
    kit_read(k.c, want, a.d_weight, 97 * 16, RLHF_F32);
    rlhf_dev own = call_floats(&k, call_normal_rows(&k, 2, 16, 1.0), 5 * 16, RLHF_F32);
    rlhf_dev other = call_floats(&k, call_normal_rows(&k, 9, 16, 1.0), 5 * 16, RLHF_F32);
    for (int i = 0; i < 3; i++) {
        KIT_OK(k.c, k.c->zero(k.c->ctx, a.d_weight, sizeof want));
        KIT_OK(k.c, k.c->copy(k.c->ctx, a.hidden, other, 5 * 16 * sizeof(float)));
        KIT_OK(k.c, k.c->lm_head(k.c->ctx, &a));
        KIT_OK(k.c, k.c->record(k.c->ctx, 5, &what));
        if (what != RLHF_RECORD_REPLAY)
            KIT_OK(k.c, k.c->copy(k.c->ctx, a.hidden, own, 5 * 16 * sizeof(float)));
        KIT_OK(k.c, k.c->record_end(k.c->ctx));
        KIT_OK(k.c, k.c->lm_head_bwd(k.c->ctx, &a));
        kit_read(k.c, got, a.d_weight, 97 * 16, RLHF_F32);
        assert_memory_equal(got, want, sizeof want);
    }
    assert_int_equal(what, RLHF_RECORD_REPLAY);
    call_finish(&k);
}

// ---- not finite ----

// Only row 2 has NaN and infinities in its hidden state.
static void a_row_that_is_not_finite_is_named(void **state) {
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu1};
    const uint32_t rows[] = {0, 1, 2, 3, 4};
    const float bad[] = {NAN, INFINITY, -INFINITY};
    const rlhf_dist dists[] = {RLHF_DIST_WHOLE, RLHF_DIST(1.0, 0.9, 10, 0),
                               RLHF_DIST(1.0, 1.0, 0, 1)};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++)
        for (size_t i = 0; i < CHECK_COUNT(bad) * CHECK_COUNT(dists); i++) {
            struct call k = {.c = backends[b], .rows = rows, .n_rows = 5};
            const struct shape s = {5, 16, 300, RLHF_F32};
            const rlhf_lm_head a = make_head(&k, &s, &dists[i % 3]);
            float *x = call_normal_rows(&k, 2, 16, 1.0), good[5], logp[5];
            KIT_OK(k.c, k.c->lm_head(k.c->ctx, &a));
            kit_read(k.c, good, a.logp, 5, RLHF_F32);
            x[2 * 16 + 3] = bad[i / 3];
            KIT_OK(k.c, k.c->upload(k.c->ctx, a.hidden, x, 5 * 16 * sizeof *x));
            KIT_OK(k.c, k.c->lm_head(k.c->ctx, &a));
            kit_read(k.c, logp, a.logp, 5, RLHF_F32);
            assert_true(isnan(logp[2]));
            logp[2] = good[2];
            assert_memory_equal(logp, good, sizeof good);
            const uint64_t counter[5] = {0};
            int32_t id[5];
            const rlhf_lm_sample sample = {.size = sizeof sample,
                                           .rows = 5,
                                           .d = 16,
                                           .vocab = 300,
                                           .dtype = RLHF_F32,
                                           .dist = &dists[i % 3],
                                           .logp_dist = &dists[i % 3],
                                           .hidden = a.hidden,
                                           .weight = a.weight,
                                           .host_counter = counter,
                                           .host_id = id,
                                           .host_logp = logp};
            assert_int_equal(k.c->lm_sample(k.c->ctx, &sample), RLHF_E_NUMERIC);
            if (!strstr(kit_said(k.c), "row 2"))
                fail_msg("%s: \"%s\" does not name row 2", k.c->name, kit_said(k.c));
            call_finish(&k);
        }
}

// Either the call or the next sync reports the error.
static void a_target_outside_the_vocabulary_is_refused(void **state) {
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu1};
    const uint32_t rows[] = {0, 1, 2};
    const int32_t bad[] = {-1, 97, INT32_MIN, INT32_MAX};
    const rlhf_dist whole = RLHF_DIST_WHOLE;
    const struct shape s = {3, 16, 97, RLHF_F32};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++)
        for (size_t i = 0; i < 2 * CHECK_COUNT(bad); i++) {
            struct call k = {.c = backends[b], .rows = rows, .n_rows = 3};
            rlhf_lm_head a = make_head(&k, &s, &whole);
            const int32_t target[] = {5, bad[i / 2], 7};
            char value[16];
            snprintf(value, sizeof value, "%d", bad[i / 2]);
            a.target = call_ints(&k, target, 3);
            rlhf_status st = i % 2 ? k.c->lm_head_bwd(k.c->ctx, &a) : k.c->lm_head(k.c->ctx, &a);
            if (st == RLHF_OK) st = k.c->sync(k.c->ctx);
            assert_int_equal(st, RLHF_E_INVALID);
            const char *said = kit_said(k.c);
            if (!strstr(said, "target[1]") || !strstr(said, value))
                fail_msg("%s: \"%s\" does not name target[1], %s", k.c->name, said, value);
            call_finish(&k);
        }
}

// ---- more rows than a chunk ----

static void both(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    const rlhf_dist whole = RLHF_DIST_WHOLE;
    const uint64_t weights = (uint64_t)s->vocab * (uint64_t)s->d;
    snprintf(out->label, sizeof out->label, "lm_head + bwd %u x %d x %d %s", s->rows, s->d,
             s->vocab, s->dtype == RLHF_BF16 ? "bf16" : "f32");
    const rlhf_lm_head a = make_head(k, s, &whole);
    KIT_OK(k->c, k->c->lm_head(k->c->ctx, &a));
    KIT_OK(k->c, k->c->lm_head_bwd(k->c->ctx, &a));
    outputs_add(out, k, "logp", a.logp, RLHF_F32, k->n_rows, 1, k->rows);
    outputs_add(out, k, "d_hidden", a.d_hidden, s->dtype, k->n_rows, (uint64_t)s->d, k->rows);
    outputs_add(out, k, "d_weight", a.d_weight, RLHF_F32, weights, 1, NULL);
    out->o[out->n - 1].dtype = s->dtype;
    KIT_OK(k->c, k->c->zero(k->c->ctx, a.d_weight, weights * sizeof(float)));
    KIT_OK(k->c, k->c->lm_head_bwd(k->c->ctx, &a)); // nothing is kept now
    outputs_add(out, k, "d_weight made anew", a.d_weight, RLHF_F32, weights, 1, NULL);
    out->o[out->n - 1].dtype = s->dtype;
}

// Compares many rows with the reference. No bit depends on the workspace budget, so a run can
// resume with another budget. The reason is how d_weight is summed: in one chain over the rows or,
// in f32 and on CUDA, over chunks of a fixed size.
static void many_rows(void **state) {
    struct kit *kit = *state;
    const struct shape shapes[] = {{2100, 8, 40, RLHF_F32}, {2100, 8, 40, RLHF_BF16}};
    const struct bound f32 = {1e-10, 5e-4}, bf16 = {1e-4, 1e-1};
    rlhf_compute *small = kit_create(kit->kernels_cpu, 1, 0, 1 << 18);
    for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
        check_match(kit, both, &shapes[i], shapes[i].rows, f32, bf16);
        struct kit pair = {.ref = kit->ref, .cpu1 = small, .cpu2 = small};
        check_match(&pair, both, &shapes[i], shapes[i].rows, f32, bf16);
        pair.cpu2 = kit->cpu1;
        check_threads(&pair, both, &shapes[i], shapes[i].rows);
    }
    kit_destroy(small);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_equal_logits_the_lowest_ids_are_kept),
                                       cmocka_unit_test(a_write_drops_what_was_kept),
                                       cmocka_unit_test(a_replayed_write_drops_what_was_kept),
                                       cmocka_unit_test(a_row_that_is_not_finite_is_named),
                                       cmocka_unit_test(a_target_outside_the_vocabulary_is_refused),
                                       cmocka_unit_test(many_rows)};
    return cmocka_run_group_tests_name("kernels: dist", tests, kit_setup, kit_teardown);
}
