// test_min_p.c: min-p of the language-model head keeps the same ids as transformers' warpers
// (make_min_p_vectors.py). Also tests log-probs over these ids in sampling and in training, and
// refused values.
#include "kit.h"
#include "support/numbers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 3, D = 8 }; // the same row of logits three times, sampled with different counters

enum { MAX_VOCAB = 300, MAX_WORDS = (MAX_VOCAB + 31) / 32 };

static struct min_p_case {
    float row[MAX_VOCAB];
    int32_t vocab, top_k;
    double temperature, top_p, min_p;
    uint32_t kept[MAX_WORDS];
} min_p_cases[36];

static void read_case(const json_t *all, const json_t *from, struct min_p_case *c) {
    const json_t *row = json_array_get(numbers_get(all, "rows"), (size_t)numbers_int(from, "row"));
    const size_t vocab = json_array_size(row);
    assert_true(vocab > 0 && vocab <= MAX_VOCAB);
    for (size_t i = 0; i < vocab; i++)
        c->row[i] = (float)json_number_value(json_array_get(row, i));
    c->vocab = (int32_t)vocab;
    c->top_k = numbers_int(from, "top_k");
    c->temperature = numbers_one(from, "temperature");
    c->top_p = numbers_one(from, "top_p");
    c->min_p = numbers_one(from, "min_p");
    numbers_words(from, "kept", c->kept, rlhf_support_words(c->vocab));
}

static int setup(void **state) {
    json_t *all = numbers_open("kernels/min_p_vectors.json");
    const json_t *cases = numbers_list(all, "cases", CHECK_COUNT(min_p_cases));
    for (size_t i = 0; i < CHECK_COUNT(min_p_cases); i++)
        read_case(all, json_array_get(cases, i), &min_p_cases[i]);
    json_decref(all);
    return kit_setup(state);
}

// The samples and kept ids of a case from one call of lm_sample, with its inputs.
struct drawn {
    struct call k;
    rlhf_dist dist;
    rlhf_dev hidden;
    rlhf_weight *weight;
    int32_t id[ROWS];
    float logp[ROWS];
    uint32_t *bits; // [ROWS, words]
};

static rlhf_dist dist_of(const struct min_p_case *c) {
    rlhf_dist d = RLHF_DIST(1.0 / c->temperature, c->top_p, c->top_k, 0);
    d.min_p = c->min_p;
    return d;
}

static rlhf_status sample(struct drawn *s, const struct min_p_case *c, int with_support) {
    const rlhf_dist scored = RLHF_DIST(1.0 / c->temperature, 1.0, 0, 0);
    static const uint64_t counter[ROWS] = {1, 2, 3};
    const rlhf_lm_sample a = {.size = sizeof a,
                              .rows = ROWS,
                              .d = D,
                              .vocab = c->vocab,
                              .dtype = RLHF_F32,
                              .dist = &s->dist,
                              .logp_dist = with_support ? &scored : &s->dist,
                              .hidden = s->hidden,
                              .weight = s->weight,
                              .seed = 5,
                              .host_counter = counter,
                              .host_id = s->id,
                              .host_logp = s->logp,
                              .host_support = with_support ? s->bits : NULL};
    return s->k.c->lm_sample(s->k.c->ctx, &a);
}

static void open_case(struct drawn *s, rlhf_compute *c, const struct min_p_case *of) {
    memset(s, 0, sizeof *s);
    s->k.c = c;
    s->dist = dist_of(of);
    float *w = call_host(&s->k, (uint64_t)of->vocab * D * sizeof *w), x[ROWS * D] = {0};
    for (int32_t v = 0; v < of->vocab; v++)
        w[v * D] = of->row[v];
    for (int r = 0; r < ROWS; r++)
        x[r * D] = 1.0f;
    s->bits = call_host(&s->k, ROWS * rlhf_support_words(of->vocab) * sizeof *s->bits);
    s->hidden = call_floats(&s->k, x, ROWS * D, RLHF_F32);
    s->weight =
        call_weight(&s->k, w, D, of->vocab, RLHF_F32, RLHF_WEIGHT_OUT_IN | RLHF_WEIGHT_BACKWARD);
}

// Returns the log-prob of `id` over the kept ids, in double.
static double logp_of(const struct min_p_case *c, int32_t id) {
    double sum = 0;
    for (int32_t v = 0; v < c->vocab; v++)
        if (c->kept[v / 32] >> v % 32 & 1)
            sum += exp(((double)c->row[v] - (double)c->row[id]) / c->temperature);
    return -log(sum);
}

// Computes lm_head's log-probs of ids under the case's `dist`.
static void head_logps(struct drawn *s, const struct min_p_case *c, const int32_t *id, float *out) {
    const rlhf_dev target = call_ints(&s->k, id, ROWS), logp = call_zeros(&s->k, ROWS, RLHF_F32);
    const rlhf_lm_head a = {.size = sizeof a,
                            .rows = ROWS,
                            .d = D,
                            .vocab = c->vocab,
                            .dtype = RLHF_F32,
                            .dist = &s->dist,
                            .hidden = s->hidden,
                            .weight = s->weight,
                            .target = target,
                            .logp = logp};
    KIT_OK(s->k.c, s->k.c->lm_head(s->k.c->ctx, &a));
    kit_read(s->k.c, out, logp, ROWS, RLHF_F32);
}

// Computes the derivative of the sum of the ids' log-probs with respect to the hidden states.
static void head_slopes(struct drawn *s, const struct min_p_case *c, const int32_t *id,
                        float *out) {
    static const float ones[ROWS] = {1, 1, 1};
    const rlhf_dev d_hidden = call_zeros(&s->k, ROWS * D, RLHF_F32);
    const rlhf_lm_head a = {.size = sizeof a,
                            .rows = ROWS,
                            .d = D,
                            .vocab = c->vocab,
                            .dtype = RLHF_F32,
                            .dist = &s->dist,
                            .hidden = s->hidden,
                            .weight = s->weight,
                            .target = call_ints(&s->k, id, ROWS),
                            .d_logp = call_floats(&s->k, ones, ROWS, RLHF_F32),
                            .d_hidden = d_hidden};
    KIT_OK(s->k.c, s->k.c->lm_head_bwd(s->k.c->ctx, &a));
    kit_read(s->k.c, out, d_hidden, ROWS * D, RLHF_F32);
}

static void check_case(rlhf_compute *c, const struct min_p_case *of) {
    struct drawn s;
    const uint32_t words = rlhf_support_words(of->vocab);
    open_case(&s, c, of);
    KIT_OK(c, sample(&s, of, 1));
    for (int r = 0; r < ROWS; r++) {
        if (memcmp(s.bits + (uint32_t)r * words, of->kept, words * sizeof *of->kept) != 0)
            fail_msg("%s: vocabulary %d, temperature %g, top_k %d, top_p %g, min_p %g: other ids "
                     "are kept",
                     c->name, (int)of->vocab, of->temperature, (int)of->top_k, of->top_p,
                     of->min_p);
        assert_true(fabs((double)s.logp[r] - logp_of(of, s.id[r])) < 2e-5);
    }
    KIT_OK(c, sample(&s, of, 0)); // log-probs from min_p itself, without a support
    float logp[ROWS];
    head_logps(&s, of, s.id, logp);
    assert_memory_equal(logp, s.logp, sizeof logp);
    int32_t outside[ROWS] = {0};
    for (int32_t v = 0; v < of->vocab; v++)
        if (!(of->kept[v / 32] >> v % 32 & 1)) outside[1] = v;
    if (outside[1]) {
        head_logps(&s, of, outside, logp);
        assert_true(logp[1] == -INFINITY);
    }
    call_finish(&s.k);
}

static void transformers_keeps_the_same(void **state) {
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu1, kit->cpu2};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++)
        for (size_t i = 0; i < CHECK_COUNT(min_p_cases); i++)
            check_case(backends[b], &min_p_cases[i]);
}

// Tests three more rules. Logits that were kept with another min_p are not reused by the next call.
// A struct that ends before min_p turns min-p off. Values out of range are refused.
static void other_rules(void **state) {
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu1};
    const struct min_p_case *of = &min_p_cases[CHECK_COUNT(min_p_cases) - 9];
    for (size_t b = 0; b < CHECK_COUNT(backends); b++) {
        struct drawn s;
        float with[ROWS], without[ROWS], short_one[ROWS];
        static const double wrong[] = {-0.1, 1.1, NAN};
        open_case(&s, backends[b], of);
        KIT_OK(backends[b], sample(&s, of, 1));
        head_logps(&s, of, s.id, with);
        s.dist.min_p = 0;
        head_logps(&s, of, s.id, without);
        assert_true(without[0] < with[0]);
        float slope[ROWS * D], whole[ROWS * D], stale[ROWS * D];
        head_slopes(&s, of, s.id, whole);
        s.dist.min_p = of->min_p;
        head_logps(&s, of, s.id, with);
        head_slopes(&s, of, s.id, slope);
        head_logps(&s, of, s.id, with);
        s.dist.min_p = 0;
        head_slopes(&s, of, s.id, stale);
        assert_memory_not_equal(slope, whole, sizeof whole);
        assert_memory_equal(stale, whole, sizeof whole);
        s.dist.min_p = 0.5;
        s.dist.size = RLHF_SIZE_TO(rlhf_dist, top_k);
        head_logps(&s, of, s.id, short_one);
        assert_memory_equal(short_one, without, sizeof without);
        s.dist.size = sizeof s.dist;
        for (size_t i = 0; i < CHECK_COUNT(wrong); i++) {
            s.dist.min_p = wrong[i];
            assert_int_equal(sample(&s, of, 1), RLHF_E_INVALID);
        }
        call_finish(&s.k);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(transformers_keeps_the_same),
                                       cmocka_unit_test(other_rules)};
    return cmocka_run_group_tests_name("kernels/min_p", tests, setup, kit_teardown);
}
