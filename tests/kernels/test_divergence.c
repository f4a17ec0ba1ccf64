// test_divergence.c: the `kl` output of lm_head as KL(q || p) and as Jensen-Shannon, also with a
// reference of another width. Compares values and derivatives with float64
// (make_divergence_vectors.py) and with finite differences. Compares cpu with the reference. Also
// tests that other rows and the number of threads do not change the bits, and that wrong values are
// refused.
#include "kit.h"
#include "support/numbers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { D = 8, REF_D = 24 };

static const struct bound value_bound = {1e-10, 5e-5};
static const struct bound f32_bound = {1e-10, 5e-4}, bf16_bound = {5e-7, 2e-2};

static int has(const rlhf_compute *c) { return (c->flags & RLHF_COMPUTE_DIVERGENCE) != 0; }

// ---- vectors ----

enum { MAX_VOCAB = 40 };

static struct divergence_case {
    float p[MAX_VOCAB], q[MAX_VOCAB];
    double slope[MAX_VOCAB];
    int32_t vocab, divergence, top_k, support, target;
    double beta, temperature, top_p, value;
    uint32_t kept[2];
} divergence_cases[60];

static void read_case(const json_t *all, const json_t *from, struct divergence_case *c) {
    const json_t *row = json_array_get(numbers_get(all, "rows"), (size_t)numbers_int(from, "row"));
    const size_t vocab = json_array_size(numbers_get(row, "p"));
    assert_true(vocab > 0 && vocab <= MAX_VOCAB);
    numbers_floats(row, "p", c->p, vocab);
    numbers_floats(row, "q", c->q, vocab);
    numbers_doubles(from, "slope", c->slope, vocab);
    c->vocab = (int32_t)vocab;
    c->divergence = numbers_int(from, "divergence");
    c->top_k = numbers_int(from, "top_k");
    c->support = numbers_int(from, "support");
    c->target = numbers_int(from, "target");
    c->beta = numbers_one(from, "beta");
    c->temperature = numbers_one(from, "temperature");
    c->top_p = numbers_one(from, "top_p");
    c->value = numbers_one(from, "value");
    numbers_words(from, "kept", c->kept, rlhf_support_words(c->vocab));
}

static int setup(void **state) {
    json_t *all = numbers_open("kernels/divergence_vectors.json");
    const json_t *cases = numbers_list(all, "cases", CHECK_COUNT(divergence_cases));
    for (size_t i = 0; i < CHECK_COUNT(divergence_cases); i++)
        read_case(all, json_array_get(cases, i), &divergence_cases[i]);
    json_decref(all);
    return kit_setup(state);
}

// Makes a weight whose first input gives the logits. The hidden states are 1 at that input.
static rlhf_weight *weight_of(struct call *k, const float *logits, int32_t vocab, int32_t d) {
    float *w = call_host(k, (uint64_t)vocab * (uint64_t)d * sizeof *w);
    for (int32_t v = 0; v < vocab; v++)
        w[v * d] = logits[v];
    return call_weight(k, w, d, vocab, RLHF_F32, RLHF_WEIGHT_OUT_IN | RLHF_WEIGHT_BACKWARD);
}

static rlhf_dev states(struct call *k, int32_t d) {
    float *x = call_host(k, (uint64_t)d * sizeof *x);
    x[0] = 1.0f;
    return call_floats(k, x, (uint64_t)d, RLHF_F32);
}

static rlhf_lm_head head_of(struct call *k, const struct divergence_case *c, rlhf_dist *dist) {
    static const float one[] = {1.0f};
    *dist = (rlhf_dist)RLHF_DIST(1.0 / c->temperature, c->top_p, c->top_k, 0);
    const uint32_t words = rlhf_support_words(c->vocab);
    int32_t *bits = call_host(k, words * sizeof *bits);
    memcpy(bits, c->kept, words * sizeof *bits);
    return (rlhf_lm_head){.size = sizeof(rlhf_lm_head),
                          .rows = 1,
                          .d = D,
                          .vocab = c->vocab,
                          .dtype = RLHF_F32,
                          .ref_d = REF_D,
                          .divergence = c->divergence,
                          .divergence_beta = c->beta,
                          .dist = dist,
                          .hidden = states(k, D),
                          .weight = weight_of(k, c->p, c->vocab, D),
                          .target = call_ints(k, &c->target, 1),
                          .logp = call_zeros(k, 1, RLHF_F32),
                          .kl = call_zeros(k, 1, RLHF_F32),
                          .ref_hidden = states(k, REF_D),
                          .ref_weight = weight_of(k, c->q, c->vocab, REF_D),
                          .d_kl = call_floats(k, one, 1, RLHF_F32),
                          .d_weight = call_zeros(k, (uint64_t)c->vocab * D, RLHF_F32),
                          .support = c->support ? call_ints(k, bits, words) : NULL};
}

static void check_case(rlhf_compute *c, size_t i) {
    const struct divergence_case *v = &divergence_cases[i];
    struct call k = {.c = c};
    rlhf_dist dist;
    float kl, *slope = call_host(&k, (uint64_t)v->vocab * D * sizeof *slope);
    const rlhf_lm_head a = head_of(&k, v, &dist);
    KIT_OK(c, c->lm_head(c->ctx, &a));
    KIT_OK(c, c->lm_head_bwd(c->ctx, &a));
    kit_read(c, &kl, a.kl, 1, RLHF_F32);
    kit_read(c, slope, a.d_weight, (uint64_t)v->vocab * D, RLHF_F32);
    if (!(fabs((double)kl - v->value) < 2e-6 * fmax(1.0, v->value)))
        fail_msg("%s, case %zu: %.9g instead of %.9g", c->name, i, (double)kl, v->value);
    for (int32_t j = 0; j < v->vocab; j++)
        if (!(fabs((double)slope[j * D] - v->slope[j]) < 2e-6))
            fail_msg("%s, case %zu: derivative %d is %.9g instead of %.9g", c->name, i, (int)j,
                     (double)slope[j * D], v->slope[j]);
    call_finish(&k);
}

static void float64_gives_the_same(void **state) {
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu1, kit->cpu2};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++)
        for (size_t i = 0; has(backends[b]) && i < CHECK_COUNT(divergence_cases); i++)
            check_case(backends[b], i);
}

// ---- random rows ----

struct shape {
    uint32_t rows;
    int32_t d, ref_d, vocab, dtype, divergence, top_k, support;
    double beta, top_p, inv_temperature, logit_scale, softcap;
};

enum { FORWARD = RLHF_DIVERGENCE_FORWARD, JS = RLHF_DIVERGENCE_JS };

static const struct shape shapes[] = {
    {9, 64, 0, 1000, RLHF_F32, FORWARD, 0, 0, 0, 1.0, 1.0, 0.0, 0.0},
    {33, 64, 96, 1003, RLHF_F32, FORWARD, 0, 0, 0, 1.0, 1.4, 0.0, 0.0},
    {9, 64, 16, 1000, RLHF_F32, JS, 0, 0, 0.5, 1.0, 1.0, 0.0, 0.0},
    {33, 64, 64, 1003, RLHF_F32, JS, 0, 0, 0.1, 1.0, 0.7, 0.0, 0.0},
    {9, 64, 96, 1000, RLHF_F32, JS, 20, 0, 0.9, 1.0, 1.0, 0.0, 0.0},
    {9, 64, 96, 1000, RLHF_F32, FORWARD, 0, 0, 0, 0.8, 1.0, 0.0, 0.0},
    {9, 64, 96, 1000, RLHF_F32, JS, 0, 1, 0.3, 1.0, 1.0, 0.0, 0.0},
    {33, 64, 96, 1003, RLHF_BF16, FORWARD, 0, 0, 0, 1.0, 1.0, 0.0, 0.0},
    {33, 64, 128, 1003, RLHF_BF16, JS, 0, 0, 0.5, 1.0, 1.4, 0.0, 0.0},
    {9, 64, 96, 1000, RLHF_BF16, JS, 0, 1, 0.7, 1.0, 1.0, 0.0, 0.0},
    {9, 64, 96, 1003, RLHF_F32, RLHF_DIVERGENCE_REVERSE, 0, 0, 0, 1.0, 1.0, 0.0, 0.0},
    {9, 64, 96, 1003, RLHF_F32, JS, 20, 0, 0.5, 1.0, 1.4, 2.0, 3.0},
    {9, 64, 96, 1003, RLHF_F32, FORWARD, 0, 1, 0, 1.0, 0.7, 0.0, 2.0},
    {9, 64, 96, 1003, RLHF_BF16, JS, 0, 0, 0.3, 1.0, 1.4, 2.0, 3.0},
};

static rlhf_dev make_support(struct call *k, int32_t vocab, const int32_t *target) {
    const uint64_t words = rlhf_support_words(vocab);
    int32_t *bits = call_host(k, k->n_rows * words * sizeof *bits);
    for (uint32_t i = 0; i < k->n_rows; i++)
        for (int32_t v = 0; v < vocab; v++)
            if (v == target[i] || ((uint32_t)v / 32 + k->rows[i]) % 3 != 0)
                bits[i * words + (uint32_t)v / 32] |= (int32_t)(1u << v % 32);
    return call_ints(k, bits, k->n_rows * words);
}

static rlhf_lm_head make_head(struct call *k, const struct shape *s, rlhf_dist *dist) {
    const uint64_t d = (uint64_t)s->d, ref = s->ref_d ? (uint64_t)s->ref_d : d, n = k->n_rows;
    const uint64_t vocab = (uint64_t)s->vocab;
    int32_t *target = call_host(k, n * sizeof *target);
    for (uint32_t i = 0; i < n; i++)
        target[i] = (int32_t)(k->rows[i] * 7919u % (uint32_t)s->vocab);
    *dist = (rlhf_dist)RLHF_DIST(s->inv_temperature, s->top_p, s->top_k, 0);
    return (rlhf_lm_head){
        .size = sizeof(rlhf_lm_head),
        .rows = k->n_rows,
        .d = s->d,
        .vocab = s->vocab,
        .dtype = s->dtype,
        .ref_d = s->ref_d,
        .divergence = s->divergence,
        .divergence_beta = s->beta,
        .dist = dist,
        .hidden = call_floats(k, call_normal_rows(k, 1, d, 1.0), n * d, s->dtype),
        .weight = call_weight(k, call_normal(k, 2, vocab * d, 0.2), s->d, s->vocab, s->dtype,
                              RLHF_WEIGHT_OUT_IN | RLHF_WEIGHT_BACKWARD),
        .target = call_ints(k, target, n),
        .logp = call_zeros(k, n, RLHF_F32),
        .entropy = call_zeros(k, n, RLHF_F32),
        .kl = call_zeros(k, n, RLHF_F32),
        .ref_hidden = call_floats(k, call_normal_rows(k, 3, ref, 1.0), n * ref, s->dtype),
        .ref_weight = call_weight(k, call_normal(k, 4, vocab * ref, 0.15), (int32_t)ref, s->vocab,
                                  s->dtype, RLHF_WEIGHT_OUT_IN),
        .support = s->support ? make_support(k, s->vocab, target) : NULL,
        .logit_scale = s->logit_scale,
        .softcap = s->softcap,
        .ref_logit_scale = 0.5 * s->logit_scale,
        .ref_softcap = 2.0 * s->softcap};
}

static void label(struct outputs *out, const char *op, const struct shape *s) {
    snprintf(out->label, sizeof out->label, "%s %d(%g) %u x %d, %d x %d %s k %d p %g%s", op,
             s->divergence, s->beta, s->rows, s->d, s->ref_d, s->vocab,
             s->dtype == RLHF_BF16 ? "bf16" : "f32", s->top_k, s->top_p,
             s->support ? " support" : "");
}

static void values(struct call *k, const void *shape, struct outputs *out) {
    rlhf_dist dist;
    label(out, "lm_head", shape);
    const rlhf_lm_head a = make_head(k, shape, &dist);
    KIT_OK(k->c, k->c->lm_head(k->c->ctx, &a));
    outputs_add(out, k, "logp", a.logp, RLHF_F32, k->n_rows, 1, k->rows);
    outputs_add(out, k, "entropy", a.entropy, RLHF_F32, k->n_rows, 1, k->rows);
    outputs_add(out, k, "kl", a.kl, RLHF_F32, k->n_rows, 1, k->rows);
}

static void backward(struct call *k, const struct shape *s, struct outputs *out, int forward) {
    const uint64_t d = (uint64_t)s->d, n = k->n_rows, weights = d * (uint64_t)s->vocab;
    rlhf_dist dist;
    label(out, forward ? "lm_head + bwd" : "lm_head_bwd", s);
    rlhf_lm_head a = make_head(k, s, &dist);
    a.d_logp = call_floats(k, call_normal_rows(k, 5, 1, 1.0), n, RLHF_F32);
    a.d_entropy = call_floats(k, call_normal_rows(k, 6, 1, 1.0), n, RLHF_F32);
    a.d_kl = call_floats(k, call_normal_rows(k, 7, 1, 1.0), n, RLHF_F32);
    a.d_hidden = call_zeros(k, n * d, s->dtype);
    a.d_weight = call_zeros(k, weights, RLHF_F32);
    if (forward) { // data kept for another divergence must not be used
        rlhf_lm_head other = a;
        other.divergence = s->divergence == JS ? FORWARD : JS;
        other.divergence_beta = 0.25;
        KIT_OK(k->c, k->c->lm_head(k->c->ctx, forward == 1 ? &a : &other));
    }
    KIT_OK(k->c, k->c->lm_head_bwd(k->c->ctx, &a));
    outputs_add(out, k, "d_hidden", a.d_hidden, s->dtype, n, d, k->rows);
    outputs_add(out, k, "d_weight", a.d_weight, RLHF_F32, (uint64_t)s->vocab, d, NULL);
    out->o[out->n - 1].dtype = s->dtype; // compared with the bound of the GEMM's dtype
}

static void bwd(struct call *k, const void *shape, struct outputs *out) {
    backward(k, shape, out, 0);
}
static void then_bwd(struct call *k, const void *shape, struct outputs *out) {
    backward(k, shape, out, 1);
}
static void after_another(struct call *k, const void *shape, struct outputs *out) {
    backward(k, shape, out, 2);
}

static void cpu_matches(void **state) {
    struct kit *kit = *state;
    for (size_t i = 0; has(kit->cpu1) && i < CHECK_COUNT(shapes); i++) {
        check_match(kit, values, &shapes[i], shapes[i].rows, value_bound, value_bound);
        check_match(kit, bwd, &shapes[i], shapes[i].rows, f32_bound, bf16_bound);
        check_match(kit, then_bwd, &shapes[i], shapes[i].rows, f32_bound, bf16_bound);
        check_match(kit, after_another, &shapes[i], shapes[i].rows, f32_bound, bf16_bound);
    }
}

static void rows_and_threads(void **state) {
    struct kit *kit = *state;
    for (size_t i = 0; has(kit->cpu1) && i < CHECK_COUNT(shapes); i++) {
        check_rows(kit->cpu1, values, &shapes[i], shapes[i].rows);
        check_rows(kit->cpu2, values, &shapes[i], shapes[i].rows);
        check_threads(kit, values, &shapes[i], shapes[i].rows);
        check_threads(kit, bwd, &shapes[i], shapes[i].rows);
    }
    check_rows(kit->ref, values, &shapes[2], 4);
}

// ---- finite differences ----

struct kl_sum {
    rlhf_compute *c;
    rlhf_lm_head head;
    float x[32]; // the hidden states
};

static double kl_sum(void *arg) {
    struct kl_sum *s = arg;
    float kl[4];
    double sum = 0;
    KIT_OK(s->c, s->c->upload(s->c->ctx, s->head.hidden, s->x, sizeof s->x));
    KIT_OK(s->c, s->c->lm_head(s->c->ctx, &s->head));
    kit_read(s->c, kl, s->head.kl, s->head.rows, RLHF_F32);
    for (uint32_t i = 0; i < s->head.rows; i++)
        sum += (double)kl[i] * (i + 1);
    return sum;
}

static void differences(void **state) {
    struct kit *kit = *state;
    static const float factor[] = {1, 2, 3, 4};
    static const uint32_t rows[] = {0, 1, 2, 3};
    for (int32_t kind = FORWARD; kind <= JS; kind++) {
        const struct shape s = {4, 8, 24, 33, RLHF_F32, kind, 0, 0, 0.3, 1.0, 1.2, 0.0, 0.0};
        struct call k = {.c = kit->ref, .rows = rows, .n_rows = 4};
        rlhf_dist dist;
        struct kl_sum sum = {.c = kit->ref, .head = make_head(&k, &s, &dist)};
        uint64_t worst;
        float d[32];
        sum.head.d_kl = call_floats(&k, factor, 4, RLHF_F32);
        sum.head.d_hidden = call_zeros(&k, 32, RLHF_F32);
        kit_read(kit->ref, sum.x, sum.head.hidden, 32, RLHF_F32);
        KIT_OK(kit->ref, kit->ref->lm_head_bwd(kit->ref->ctx, &sum.head));
        kit_read(kit->ref, d, sum.head.d_hidden, 32, RLHF_F32);
        const double off = rlhf_test_derivative(kl_sum, &sum, sum.x, d, 32, 0.02, &worst);
        if (!(off < 1e-3))
            fail_msg("divergence %d, state %u: off by %g", (int)kind, (unsigned)worst, off);
        call_finish(&k);
    }
}

// ---- refused ----

static void refused(void **state) {
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu1};
    static const struct {
        int32_t divergence, ref_d;
        double beta;
        const char *says;
    } cases[] = {{3, REF_D, 0, "divergence 3"}, {-1, REF_D, 0, "divergence -1"},
                 {JS, REF_D, 0, "beta is 0"},   {JS, REF_D, 1, "beta is 1"},
                 {JS, REF_D, NAN, "beta is "},  {FORWARD, -1, 0, "ref_d is -1"},
                 {FORWARD, 0, 0, "24 x 2 "}};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++) {
        rlhf_compute *c = backends[b];
        struct call k = {.c = c};
        rlhf_dist dist;
        for (size_t i = 0; has(c) && i < CHECK_COUNT(cases); i++) {
            rlhf_lm_head a = head_of(&k, &divergence_cases[0], &dist);
            a.divergence = cases[i].divergence;
            a.divergence_beta = cases[i].beta;
            a.ref_d = cases[i].ref_d;
            assert_true(c->lm_head(c->ctx, &a) < 0);
            if (!strstr(kit_said(c), cases[i].says))
                fail_msg("%s: \"%s\" does not say \"%s\"", c->name, kit_said(c), cases[i].says);
            assert_true(c->lm_head_bwd(c->ctx, &a) < 0);
            call_finish(&k);
        }
        if (!has(c)) { // the backend refuses both
            rlhf_lm_head a = head_of(&k, &divergence_cases[0], &dist);
            assert_int_equal(c->lm_head(c->ctx, &a), RLHF_E_UNSUPPORTED);
            a.divergence = RLHF_DIVERGENCE_REVERSE;
            assert_int_equal(c->lm_head(c->ctx, &a), RLHF_E_UNSUPPORTED);
            call_finish(&k);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(float64_gives_the_same),
                                       cmocka_unit_test(cpu_matches),
                                       cmocka_unit_test(rows_and_threads),
                                       cmocka_unit_test(differences), cmocka_unit_test(refused)};
    return cmocka_run_group_tests_name("kernels: divergences", tests, setup, kit_teardown);
}
