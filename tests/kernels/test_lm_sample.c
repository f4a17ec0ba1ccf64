// test_lm_sample.c: sampling. The log-prob has the same bits as in lm_head, and samples follow the
// distribution and stay in its support. Other rows and the number of threads do not change the
// results.
#include "kit.h"
#include <math.h>
#include <rlhf/rng.h>
#include <stdio.h>
#include <stdlib.h>

struct shape {
    uint32_t rows;
    int32_t d, vocab, dtype;
    rlhf_dist dist, logp_dist;
    int32_t support; // 1: also outputs the sampling support; log-probs are over it
    double logit_scale, softcap;
};

#define FULL RLHF_DIST_WHOLE

static const struct shape shapes[] = {
    {70, 64, 97, RLHF_F32, FULL, FULL, 0, 0.0, 0.0},
    {40, 64, 1000, RLHF_F32, RLHF_DIST(1.4, 1.0, 0, 0), RLHF_DIST(1.4, 1.0, 0, 0), 0, 0.0, 0.0},
    {40, 64, 1000, RLHF_F32, RLHF_DIST(1.0, 0.9, 50, 0), RLHF_DIST(1.0, 0.9, 50, 0), 0, 0.0, 0.0},
    {40, 64, 1000, RLHF_F32, RLHF_DIST(0.7, 1.0, 20, 0), FULL, 0, 0.0, 0.0},
    {40, 64, 1000, RLHF_F32, RLHF_DIST(1.0, 1.0, 0, 1), FULL, 0, 0.0, 0.0},
    {40, 64, 5000, RLHF_F32, RLHF_DIST(2.0, 1.0, 0, 0), FULL, 0, 0.0, 0.0},
    {3, 64, 50257, RLHF_F32, FULL, FULL, 0, 0.0, 0.0},
    {70, 64, 97, RLHF_BF16, FULL, FULL, 0, 0.0, 0.0},
    {40, 64, 8192, RLHF_BF16, FULL, FULL, 0, 0.0, 0.0},
    {40, 64, 1000, RLHF_BF16, RLHF_DIST(1.0, 0.9, 50, 0), RLHF_DIST(1.0, 0.9, 50, 0), 0, 0.0, 0.0},
    {40, 64, 1000, RLHF_BF16, RLHF_DIST(0.7, 0.8, 0, 0), RLHF_DIST(0.7, 0.8, 0, 0), 0, 0.0, 0.0},
    {40, 64, 1000, RLHF_BF16, RLHF_DIST(1.0, 1.0, 0, 1), RLHF_DIST(1.4, 1.0, 0, 0), 0, 0.0, 0.0},
    {40, 64, 1000, RLHF_F32, RLHF_DIST(1.0, 0.9, 50, 0), FULL, 1, 0.0, 0.0},
    {40, 64, 1000, RLHF_BF16, RLHF_DIST(0.7, 0.8, 0, 0), RLHF_DIST(0.7, 1.0, 0, 0), 1, 0.0, 0.0},
    {70, 64, 97, RLHF_BF16, RLHF_DIST(1.4, 1.0, 7, 0), FULL, 1, 0.0, 0.0},
    {40, 64, 1003, RLHF_F32, RLHF_DIST(1.4, 1.0, 0, 0), RLHF_DIST(1.4, 1.0, 0, 0), 0, 0.0, 2.0},
    {40, 64, 1000, RLHF_F32, RLHF_DIST(1.0, 0.9, 50, 0), FULL, 1, 0.25, 0.0},
    {40, 64, 1003, RLHF_BF16, RLHF_DIST(0.7, 0.8, 0, 0), RLHF_DIST(0.7, 0.8, 0, 0), 0, 2.0, 3.0},
    {40, 64, 1000, RLHF_BF16, RLHF_DIST(1.0, 1.0, 0, 1), FULL, 0, 0.0, 2.0},
};

enum { SEED = 77 };

static rlhf_lm_sample make_sample(struct call *k, const struct shape *s) {
    const uint64_t d = (uint64_t)s->d, vocab = (uint64_t)s->vocab, n = k->n_rows;
    uint64_t *counter = call_host(k, n * sizeof *counter);
    for (uint32_t i = 0; i < n; i++)
        counter[i] = 1000u + k->rows[i];
    rlhf_lm_sample a = {.size = sizeof a,
                        .rows = k->n_rows,
                        .d = s->d,
                        .vocab = s->vocab,
                        .dtype = s->dtype,
                        .dist = &s->dist,
                        .logp_dist = &s->logp_dist,
                        .seed = SEED,
                        .stream = rlhf_rng_stream("rollout"),
                        .host_counter = counter,
                        .logit_scale = s->logit_scale,
                        .softcap = s->softcap};
    a.weight = call_weight(k, call_normal(k, 1, vocab * d, 0.2), s->d, s->vocab, s->dtype,
                           RLHF_WEIGHT_OUT_IN);
    a.hidden = call_floats(k, call_normal_rows(k, 2, d, 1.0), n * d, s->dtype);
    a.host_id = call_host(k, n * sizeof *a.host_id);
    a.host_logp = call_host(k, n * sizeof *a.host_logp);
    if (s->support)
        a.host_support = call_host(k, n * rlhf_support_words(s->vocab) * sizeof *a.host_support);
    return a;
}

// Outputs: the sampled ids, their log-probs, and lm_head's log-probs of the same ids.
static void sample(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    const uint64_t n = k->n_rows;
    snprintf(out->label, sizeof out->label, "lm_sample %u x %d x %d %s T %.2f k %d p %.2f%s",
             s->rows, s->d, s->vocab, s->dtype == RLHF_BF16 ? "bf16" : "f32",
             1.0 / s->dist.inv_temperature, s->dist.top_k, s->dist.top_p,
             s->dist.greedy ? " greedy" : "");
    const rlhf_lm_sample a = make_sample(k, s);
    KIT_OK(k->c, k->c->lm_sample(k->c->ctx, &a));
    double *id = call_host(k, n * sizeof *id), *logp = call_host(k, n * sizeof *logp);
    for (uint64_t i = 0; i < n; i++) {
        id[i] = (double)a.host_id[i];
        logp[i] = (double)a.host_logp[i];
        assert_in_range(a.host_id[i], 0, s->vocab - 1);
    }
    outputs_add_host(out, "id", id, n, 1, k->rows);
    outputs_add_host(out, "logp", logp, n, 1, k->rows);
    rlhf_lm_head h = {.size = sizeof h,
                      .rows = a.rows,
                      .d = a.d,
                      .vocab = a.vocab,
                      .dtype = a.dtype,
                      .dist = a.logp_dist,
                      .hidden = a.hidden,
                      .weight = a.weight,
                      .logit_scale = s->logit_scale,
                      .softcap = s->softcap};
    h.target = call_ints(k, a.host_id, n);
    h.logp = call_zeros(k, n, RLHF_F32);
    if (s->support)
        h.support = call_ints(k, (const int32_t *)a.host_support, n * rlhf_support_words(s->vocab));
    KIT_OK(k->c, k->c->lm_head(k->c->ctx, &h));
    outputs_add(out, k, "lm_head's logp", h.logp, RLHF_F32, n, 1, k->rows);
}

static void logp_is_that_of_lm_head(void **state) {
    struct kit *k = *state;
    rlhf_compute *backends[] = {k->ref, k->cpu1, k->cpu2};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++) {
        for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
            struct outputs o;
            op_run(backends[b], sample, &shapes[i], shapes[i].rows, &o);
            for (uint64_t r = 0; r < o.o[1].n; r++) {
                if (o.o[1].v[r] != o.o[2].v[r] || !isfinite(o.o[1].v[r]))
                    fail_msg("%s on %s row %llu: sampled %.9g, lm_head %.9g", o.label,
                             backends[b]->name, (unsigned long long)r, o.o[1].v[r], o.o[2].v[r]);
            }
            outputs_finish(&o);
        }
    }
}

// All backends invert the same CDF. So samples agree unless u is within rounding error of a step.
static void match(void **state) {
    struct kit *k = *state;
    for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
        struct outputs want, got;
        uint64_t other = 0;
        double worst = 0.0;
        op_run(k->ref, sample, &shapes[i], shapes[i].rows, &want);
        op_run(k->cpu1, sample, &shapes[i], shapes[i].rows, &got);
        for (uint64_t r = 0; r < want.o[0].n; r++) {
            const double diff = fabs(want.o[1].v[r] - got.o[1].v[r]);
            if (want.o[0].v[r] != got.o[0].v[r])
                other++;
            else if (!(diff <= worst))
                worst = diff;
        }
        printf("  %s: %llu of %llu ids differ, log-probs by %.1e\n", want.label,
               (unsigned long long)other, (unsigned long long)want.o[0].n, worst);
        assert_true(other <= 1 && worst <= (shapes[i].dtype == RLHF_BF16 ? 1e-4 : 2e-5));
        outputs_finish(&want);
        outputs_finish(&got);
    }
}

static void rows(void **state) {
    struct kit *k = *state;
    for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
        if (shapes[i].rows < 9) continue;
        if (shapes[i].vocab < 500) check_rows(k->cpu1, sample, &shapes[i], shapes[i].rows);
        check_rows(k->cpu2, sample, &shapes[i], shapes[i].rows);
    }
    check_rows(k->ref, sample, &shapes[0], shapes[0].rows);
}

static void threads(void **state) {
    for (size_t i = 0; i < CHECK_COUNT(shapes); i++)
        check_threads(*state, sample, &shapes[i], shapes[i].rows);
}

// ---- the distribution ----

enum { DRAWS = 20000, SMALL = 13, WIDTH = 16 };

struct small {
    struct call k;
    rlhf_lm_sample a;
    double logp[SMALL]; // of each id, from lm_head
};

// DRAWS equal rows over a vocabulary of SMALL ids.
static void small_init(struct small *s, rlhf_compute *c, const rlhf_dist *dist) {
    *s = (struct small){.k = {.c = c}};
    struct call *k = &s->k;
    const float *w = call_normal(k, 31, SMALL * WIDTH, 0.3), *h = call_normal(k, 32, WIDTH, 1.0);
    float *x = call_host(k, DRAWS * WIDTH * sizeof *x);
    for (uint64_t i = 0; i < DRAWS * WIDTH; i++)
        x[i] = h[i % WIDTH];
    uint64_t *counter = call_host(k, DRAWS * sizeof *counter);
    for (uint64_t i = 0; i < DRAWS; i++)
        counter[i] = i;
    s->a = (rlhf_lm_sample){.size = sizeof s->a,
                            .rows = DRAWS,
                            .d = WIDTH,
                            .vocab = SMALL,
                            .dtype = RLHF_F32,
                            .dist = dist,
                            .logp_dist = dist,
                            .seed = SEED,
                            .stream = 5,
                            .host_counter = counter};
    s->a.weight = call_weight(k, w, WIDTH, SMALL, RLHF_F32, RLHF_WEIGHT_OUT_IN);
    s->a.hidden = call_floats(k, x, DRAWS * WIDTH, RLHF_F32);
    s->a.host_id = call_host(k, DRAWS * sizeof(int32_t));
    s->a.host_logp = call_host(k, DRAWS * sizeof(float));
    int32_t ids[SMALL];
    float logp[SMALL];
    for (int32_t v = 0; v < SMALL; v++)
        ids[v] = v;
    rlhf_lm_head head = {.size = sizeof head,
                         .rows = SMALL,
                         .d = WIDTH,
                         .vocab = SMALL,
                         .dtype = RLHF_F32,
                         .dist = dist,
                         .hidden = s->a.hidden,
                         .weight = s->a.weight};
    head.target = call_ints(k, ids, SMALL);
    head.logp = call_zeros(k, SMALL, RLHF_F32);
    KIT_OK(c, c->lm_head(c->ctx, &head));
    kit_read(c, logp, head.logp, SMALL, RLHF_F32);
    for (int32_t v = 0; v < SMALL; v++)
        s->logp[v] = (double)logp[v];
}

// Returns Pearson's chi-square of the samples against exp(logp), or -1 if an id of probability 0
// was sampled. Sets *kept to the number of ids with a probability above 0.
static double chi_square(const struct small *s, int *kept) {
    double count[SMALL] = {0}, sum = 0.0;
    for (uint32_t i = 0; i < DRAWS; i++)
        count[s->a.host_id[i]] += 1.0;
    *kept = 0;
    for (int v = 0; v < SMALL; v++) {
        const double expect = DRAWS * exp(s->logp[v]);
        if (expect == 0.0 && count[v] > 0.0) return -1.0;
        if (expect == 0.0) continue;
        ++*kept;
        sum += (count[v] - expect) * (count[v] - expect) / expect;
    }
    return sum;
}

// Returns the id at which the CDF in vocabulary order exceeds u, or -1 if u is within 1e-5 of a
// step.
static int32_t id_at(const struct small *s, double u) {
    double reached = 0.0;
    for (int32_t v = 0; v < SMALL; v++) {
        reached += exp(s->logp[v]);
        if (fabs(reached - u) < 1e-5) return -1;
        if (reached > u) return v;
    }
    return -1;
}

static void distribution(void **state) {
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu2};
    const rlhf_dist dists[] = {FULL, RLHF_DIST(1.7, 1.0, 0, 0), RLHF_DIST(1.0, 1.0, 4, 0),
                               RLHF_DIST(1.0, 0.6, 0, 0), RLHF_DIST(0.8, 0.9, 6, 0)};
    const int want_kept[] = {SMALL, SMALL, 4, 0, 0}; // 0: computed by top-p
    for (size_t b = 0; b < CHECK_COUNT(backends); b++) {
        for (size_t i = 0; i < CHECK_COUNT(dists); i++) {
            struct small s;
            int kept;
            small_init(&s, backends[b], &dists[i]);
            KIT_OK(backends[b], backends[b]->lm_sample(backends[b]->ctx, &s.a));
            const double chi = chi_square(&s, &kept);
            printf("  %s T %.2f k %d p %.2f: %d ids kept, chi-square %.1f\n", backends[b]->name,
                   1.0 / dists[i].inv_temperature, dists[i].top_k, dists[i].top_p, kept, chi);
            assert_true(chi >= 0.0 && chi < 39.1); // 12 degrees of freedom, 1 in 10,000
            assert_true(want_kept[i] ? kept == want_kept[i] : kept > 1 && kept < SMALL);
            for (uint32_t r = 0; r < DRAWS; r++) {
                const rlhf_rng at = {SEED, 5, r};
                uint32_t w[4];
                rlhf_rng_block(&at, w);
                const int32_t id = id_at(&s, rlhf_rng_f64(w[0], w[1]));
                if (id >= 0) assert_int_equal(s.a.host_id[r], id);
            }
            call_finish(&s.k);
        }
    }
}

// Ids 6, 7 and 90 share the largest logit. `hidden` is the first unit vector.
static void greedy_takes_the_lowest_of_equals(void **state) {
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu1, kit->cpu2};
    const rlhf_dist greedy = RLHF_DIST(0.0, 1.0, 0, 1), full = FULL;
    for (size_t b = 0; b < CHECK_COUNT(backends); b++) {
        struct call k = {.c = backends[b]};
        float w[97 * 16] = {0}, x[16] = {1.0f};
        for (int v = 0; v < 97; v++)
            w[v * 16] = v == 6 || v == 7 || v == 90 ? 2.0f : -1.0f;
        uint64_t counter = 0;
        int32_t id = -1;
        float logp = 0.0f;
        rlhf_lm_sample a = {.size = sizeof a,
                            .rows = 1,
                            .d = 16,
                            .vocab = 97,
                            .dtype = RLHF_F32,
                            .dist = &greedy,
                            .logp_dist = &full,
                            .host_counter = &counter,
                            .host_id = &id,
                            .host_logp = &logp};
        a.weight = call_weight(&k, w, 16, 97, RLHF_F32, RLHF_WEIGHT_OUT_IN);
        a.hidden = call_floats(&k, x, 16, RLHF_F32);
        KIT_OK(k.c, k.c->lm_sample(k.c->ctx, &a));
        call_finish(&k);
        assert_int_equal(id, 6);
        assert_float_equal(logp, (float)(2.0 - log(3.0 * exp(2.0) + 94.0 * exp(-1.0))), 1e-5);
    }
}

// There are 999 equal logits and a larger one. The kept ids are the id of the larger logit and the
// lowest other ids. A backend may be unable to rank so many equal logits at once.
static void cut_among_equals(rlhf_compute *c, const rlhf_dist *cut, uint32_t kept) {
    enum { VOCAB = 1000, D = 16, LARGER = 7 };
    struct call k = {.c = c};
    float *w = call_host(&k, VOCAB * D * sizeof *w), x[D] = {1.0f}, logp = 0.0f;
    uint32_t *support = call_host(&k, rlhf_support_words(VOCAB) * sizeof *support);
    const rlhf_dist full = FULL;
    uint64_t counter = 0;
    int32_t id = -1;
    for (int v = 0; v < VOCAB; v++)
        w[v * D] = v == LARGER ? 3.0f : 1.0f;
    rlhf_lm_sample a = {.size = sizeof a,
                        .rows = 1,
                        .d = D,
                        .vocab = VOCAB,
                        .dtype = RLHF_F32,
                        .dist = cut,
                        .logp_dist = &full,
                        .host_counter = &counter,
                        .host_id = &id,
                        .host_logp = &logp,
                        .host_support = support};
    a.weight = call_weight(&k, w, D, VOCAB, RLHF_F32, RLHF_WEIGHT_OUT_IN);
    a.hidden = call_floats(&k, x, D, RLHF_F32);
    KIT_OK(k.c, k.c->lm_sample(k.c->ctx, &a));
    for (uint32_t v = 0; v < VOCAB; v++)
        assert_int_equal(support[v / 32] >> v % 32 & 1, v < kept);
    call_finish(&k);
}

// With top_p 0.9: the total weight is e^3 + 999 e, of which the larger logit has e^3. So 898.4 of
// the other ids are needed.
static void cuts_among_equals(void **state) {
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu1, kit->cpu2};
    const rlhf_dist top_k = RLHF_DIST(1.0, 1.0, 50, 0), top_p = RLHF_DIST(1.0, 0.9, 0, 0);
    for (size_t b = 0; b < CHECK_COUNT(backends); b++) {
        cut_among_equals(backends[b], &top_k, 50);
        cut_among_equals(backends[b], &top_p, 900);
    }
}

// If device arrays are given, they receive the results that host arrays would receive, and the host
// arrays stay unchanged.
static void device_arrays_are_the_hosts(void **state) {
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu1, kit->cpu2};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++)
        for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
            const struct shape *s = &shapes[i];
            uint32_t rows[70];
            for (uint32_t r = 0; r < s->rows; r++)
                rows[r] = r;
            struct call k = {.c = backends[b], .rows = rows, .n_rows = s->rows};
            const uint64_t n = s->rows, words = rlhf_support_words(s->vocab);
            rlhf_lm_sample a = make_sample(&k, s);
            KIT_OK(k.c, k.c->lm_sample(k.c->ctx, &a));
            rlhf_lm_sample d = a;
            int32_t *id = call_host(&k, n * sizeof *id);
            float *logp = call_host(&k, n * sizeof *logp);
            uint32_t *support = call_host(&k, n * words * sizeof *support);
            d.host_counter = NULL;
            d.host_id = NULL;
            d.host_logp = NULL;
            d.host_support = NULL;
            d.counter = call_ints(&k, (const int32_t *)(const void *)a.host_counter, 2 * n);
            d.id = call_zeros(&k, n, RLHF_I32);
            d.logp = call_zeros(&k, n, RLHF_F32);
            if (s->support) d.support = call_zeros(&k, n * words, RLHF_I32);
            KIT_OK(k.c, k.c->lm_sample(k.c->ctx, &d));
            KIT_OK(k.c, k.c->download(k.c->ctx, id, d.id, n * sizeof *id));
            KIT_OK(k.c, k.c->download(k.c->ctx, logp, d.logp, n * sizeof *logp));
            assert_memory_equal(id, a.host_id, n * sizeof *id);
            assert_memory_equal(logp, a.host_logp, n * sizeof *logp);
            if (s->support) {
                KIT_OK(k.c, k.c->download(k.c->ctx, support, d.support, n * words * 4));
                assert_memory_equal(support, a.host_support, n * words * 4);
            }
            d.counter = NULL;
            assert_int_equal(k.c->lm_sample(k.c->ctx, &d), RLHF_E_INVALID);
            call_finish(&k);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(logp_is_that_of_lm_head),
                                       cmocka_unit_test(match),
                                       cmocka_unit_test(rows),
                                       cmocka_unit_test(threads),
                                       cmocka_unit_test(distribution),
                                       cmocka_unit_test(cuts_among_equals),
                                       cmocka_unit_test(device_arrays_are_the_hosts),
                                       cmocka_unit_test(greedy_takes_the_lowest_of_equals)};
    return cmocka_run_group_tests_name("kernels: lm_sample", tests, kit_setup, kit_teardown);
}
