// test_support.c: compares log-probs over a given support with float64 autograd
// (support_vectors.json). Also tests the support that sampling stores, and refused arguments.
// test_lm_head.c and test_lm_sample.c test other shapes and numbers of threads, and test_gradient.c
// tests finite differences.
#include "kit.h"
#include "support/numbers.h"
#include "support/tensor_close.h"
#include <math.h>
#include <rlhf/rng.h>
#include <stdio.h>
#include <string.h>

// The sizes of make_support_vectors.py.
enum { ROWS = 5, D = 6, VOCAB = 40, WORDS = 2 };

static struct {
    rlhf_dist sampled, scored;
    uint32_t support[ROWS * WORDS];
    int32_t target[ROWS];
    float logp[ROWS], entropy[ROWS], kl[ROWS];
    float d_hidden[ROWS * D], d_weight[VOCAB * D];
} vectors[6];

static int setup(void **state) {
    json_t *all = numbers_open("kernels/support_vectors.json");
    const json_t *cases = numbers_list(all, "cases", CHECK_COUNT(vectors));
    for (size_t i = 0; i < CHECK_COUNT(vectors); i++) {
        const json_t *v = json_array_get(cases, i);
        vectors[i].sampled = (rlhf_dist)RLHF_DIST(
            numbers_one(v, "inv_temperature"), numbers_one(v, "top_p"), numbers_int(v, "top_k"), 0);
        vectors[i].scored =
            (rlhf_dist)RLHF_DIST(numbers_one(v, "scored_inv_temperature"), 1.0, 0, 0);
        numbers_words(v, "support", vectors[i].support, ROWS * WORDS);
        numbers_ints(v, "target", vectors[i].target, ROWS);
        numbers_floats(v, "logp", vectors[i].logp, ROWS);
        numbers_floats(v, "entropy", vectors[i].entropy, ROWS);
        numbers_floats(v, "kl", vectors[i].kl, ROWS);
        numbers_floats(v, "d_hidden", vectors[i].d_hidden, ROWS * D);
        numbers_floats(v, "d_weight", vectors[i].d_weight, VOCAB * D);
    }
    json_decref(all);
    return kit_setup(state);
}

// The formula of inputs() in make_support_vectors.py.
static float input(int64_t tag, int64_t i) {
    return (float)((double)((i * 7919 + tag * 104729 + i * i % 1009) % 2003) / 1001.0 - 1.0);
}

static float *inputs(struct call *k, int64_t tag, uint64_t n, float scale) {
    float *x = call_host(k, n * sizeof *x);
    for (uint64_t i = 0; i < n; i++)
        x[i] = scale * input(tag, (int64_t)i);
    return x;
}

static rlhf_dev words(struct call *k, const uint32_t *bits) {
    int32_t *host = call_host(k, ROWS * WORDS * sizeof *host);
    memcpy(host, bits, ROWS * WORDS * sizeof *host);
    return call_ints(k, host, ROWS * WORDS);
}

static rlhf_lm_head head(struct call *k, size_t i) {
    float *ref = inputs(k, 2, VOCAB * D, 1), *moved = inputs(k, 4, VOCAB * D, 0.2f);
    for (int v = 0; v < VOCAB * D; v++)
        ref[v] += moved[v];
    rlhf_lm_head a = {.size = sizeof a,
                      .rows = ROWS,
                      .d = D,
                      .vocab = VOCAB,
                      .dtype = RLHF_F32,
                      .dist = &vectors[i].scored};
    a.hidden = call_floats(k, inputs(k, 1, ROWS * D, 1.5f), ROWS * D, RLHF_F32);
    a.weight = call_weight(k, inputs(k, 2, VOCAB * D, 1), D, VOCAB, RLHF_F32,
                           RLHF_WEIGHT_OUT_IN | RLHF_WEIGHT_BACKWARD);
    a.ref_hidden = call_floats(k, inputs(k, 3, ROWS * D, 1.5f), ROWS * D, RLHF_F32);
    a.ref_weight = call_weight(k, ref, D, VOCAB, RLHF_F32, RLHF_WEIGHT_OUT_IN);
    a.target = call_ints(k, vectors[i].target, ROWS);
    a.support = words(k, vectors[i].support);
    a.logp = call_zeros(k, ROWS, RLHF_F32);
    a.entropy = call_zeros(k, ROWS, RLHF_F32);
    a.kl = call_zeros(k, ROWS, RLHF_F32);
    a.d_logp = call_floats(k, inputs(k, 5, ROWS, 1), ROWS, RLHF_F32);
    a.d_entropy = call_floats(k, inputs(k, 6, ROWS, 1), ROWS, RLHF_F32);
    a.d_kl = call_floats(k, inputs(k, 7, ROWS, 1), ROWS, RLHF_F32);
    a.d_hidden = call_zeros(k, ROWS * D, RLHF_F32);
    a.d_weight = call_zeros(k, VOCAB * D, RLHF_F32);
    return a;
}

static void check(struct call *k, rlhf_dev p, const float *want, uint64_t n, size_t i,
                  const char *what) {
    float got[VOCAB * D];
    char label[96];
    snprintf(label, sizeof label, "%s, vector %zu, %s", k->c->name, i, what);
    kit_read(k->c, got, p, n, RLHF_F32);
    assert_tensor_close(got, want, n, 2e-5, 3e-6, label);
}

static void equals_autograd(void **state) {
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu1, kit->cpu2};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++)
        for (size_t i = 0; i < CHECK_COUNT(vectors); i++) {
            struct call k = {.c = backends[b]};
            const rlhf_lm_head a = head(&k, i);
            KIT_OK(k.c, k.c->lm_head(k.c->ctx, &a));
            KIT_OK(k.c, k.c->lm_head_bwd(k.c->ctx, &a));
            check(&k, a.logp, vectors[i].logp, ROWS, i, "logp");
            check(&k, a.entropy, vectors[i].entropy, ROWS, i, "entropy");
            check(&k, a.kl, vectors[i].kl, ROWS, i, "kl");
            check(&k, a.d_hidden, vectors[i].d_hidden, ROWS * D, i, "d_hidden");
            check(&k, a.d_weight, vectors[i].d_weight, VOCAB * D, i, "d_weight");
            call_finish(&k);
        }
}

// lm_sample stores the support, the set of ids that the sampling rules keep. This set must equal
// the one that make_support_vectors.py computed. The sampled id's log-prob is normalized over this
// set, and lm_head must give the same bits for it.
static void a_draw_leaves_its_support(void **state) {
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu1, kit->cpu2};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++)
        for (size_t i = 0; i < CHECK_COUNT(vectors); i++) {
            struct call k = {.c = backends[b]};
            rlhf_lm_head h = head(&k, i);
            uint64_t counter[ROWS] = {5, 6, 7, 8, 9};
            int32_t id[ROWS];
            float logp[ROWS], again[ROWS];
            uint32_t bits[ROWS * WORDS];
            const rlhf_lm_sample s = {.size = sizeof s,
                                      .rows = ROWS,
                                      .d = D,
                                      .vocab = VOCAB,
                                      .dtype = RLHF_F32,
                                      .dist = &vectors[i].sampled,
                                      .logp_dist = &vectors[i].scored,
                                      .hidden = h.hidden,
                                      .weight = h.weight,
                                      .seed = 3,
                                      .stream = 4,
                                      .host_counter = counter,
                                      .host_id = id,
                                      .host_logp = logp,
                                      .host_support = bits};
            KIT_OK(k.c, k.c->lm_sample(k.c->ctx, &s));
            assert_memory_equal(bits, vectors[i].support, sizeof bits);
            h.target = call_ints(&k, id, ROWS);
            h.support = words(&k, bits);
            KIT_OK(k.c, k.c->lm_head(k.c->ctx, &h));
            kit_read(k.c, again, h.logp, ROWS, RLHF_F32);
            assert_memory_equal(logp, again, sizeof logp);
            for (int r = 0; r < ROWS; r++)
                assert_true(isfinite(logp[r]) && logp[r] <= 0);
            call_finish(&k);
        }
}

// Greedy sampling keeps a single id.
static void greedy_draws_from_one(void **state) {
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu1, kit->cpu2};
    const rlhf_dist greedy = RLHF_DIST(0, 1, 0, 1), full = RLHF_DIST_WHOLE;
    for (size_t b = 0; b < CHECK_COUNT(backends); b++) {
        struct call k = {.c = backends[b]};
        const rlhf_lm_head h = head(&k, 0);
        const uint64_t counter[ROWS] = {0};
        int32_t id[ROWS];
        float logp[ROWS];
        uint32_t bits[ROWS * WORDS];
        const rlhf_lm_sample s = {.size = sizeof s,
                                  .rows = ROWS,
                                  .d = D,
                                  .vocab = VOCAB,
                                  .dtype = RLHF_F32,
                                  .dist = &greedy,
                                  .logp_dist = &full,
                                  .hidden = h.hidden,
                                  .weight = h.weight,
                                  .host_counter = counter,
                                  .host_id = id,
                                  .host_logp = logp,
                                  .host_support = bits};
        KIT_OK(k.c, k.c->lm_sample(k.c->ctx, &s));
        for (int r = 0; r < ROWS; r++) {
            uint32_t want[WORDS] = {0};
            want[id[r] / 32] = 1u << id[r] % 32;
            assert_memory_equal(bits + r * WORDS, want, sizeof want);
            assert_true(fabsf(logp[r]) < 1e-6f);
        }
        call_finish(&k);
    }
}

// lm_head kept logits with one support. A backward call with another support must not use them.
static void backward_is_over_its_own_support(void **state) {
    struct kit *kit = *state;
    struct call k = {.c = kit->cpu1};
    float want[VOCAB * D], got[VOCAB * D];
    rlhf_lm_head a = head(&k, 3), other = a, none = a;
    uint32_t all[ROWS * WORDS];
    for (int i = 0; i < ROWS * WORDS; i++)
        all[i] = i % WORDS ? (1u << (VOCAB - 32)) - 1 : UINT32_MAX;
    other.support = words(&k, all);
    none.support = NULL;
    KIT_OK(k.c, k.c->lm_head_bwd(k.c->ctx, &a));
    kit_read(k.c, want, a.d_weight, VOCAB * D, RLHF_F32);
    const rlhf_lm_head *before[] = {&other, &none};
    for (int i = 0; i < 2; i++) {
        KIT_OK(k.c, k.c->zero(k.c->ctx, a.d_weight, sizeof got));
        KIT_OK(k.c, k.c->lm_head(k.c->ctx, before[i]));
        KIT_OK(k.c, k.c->lm_head_bwd(k.c->ctx, &a));
        kit_read(k.c, got, a.d_weight, VOCAB * D, RLHF_F32);
        assert_memory_equal(got, want, sizeof want);
    }
    call_finish(&k);
}

// A backend may report errors in device arrays as late as the next sync.
static void refused(rlhf_compute *c, rlhf_status st, const char *text) {
    if (st == RLHF_OK) st = c->sync(c->ctx);
    assert_int_equal(st, RLHF_E_INVALID);
    if (!strstr(kit_said(c), text))
        fail_msg("%s: \"%s\" does not say \"%s\"", c->name, kit_said(c), text);
}

static void what_does_not_fit_is_refused(void **state) {
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu1};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++) {
        struct call k = {.c = backends[b]};
        rlhf_lm_head a = head(&k, 0);
        const rlhf_dist cut = RLHF_DIST(1, 0.9, 0, 0);
        uint32_t bits[ROWS * WORDS];
        memcpy(bits, vectors[0].support, sizeof bits);
        const int32_t id = vectors[0].target[2];
        bits[2 * WORDS + id / 32] &= ~(1u << id % 32);
        a.support = words(&k, bits);
        char text[64];
        snprintf(text, sizeof text, "target[2] is %d, outside its support", id);
        refused(k.c, k.c->lm_head(k.c->ctx, &a), text);
        refused(k.c, k.c->lm_head_bwd(k.c->ctx, &a), text);
        a.dist = &cut;
        refused(k.c, k.c->lm_head(k.c->ctx, &a), "top_k, top_p and min_p must be off");
        const uint64_t counter[ROWS] = {0};
        int32_t ids[ROWS];
        float logp[ROWS];
        const rlhf_lm_sample s = {.size = sizeof s,
                                  .rows = ROWS,
                                  .d = D,
                                  .vocab = VOCAB,
                                  .dtype = RLHF_F32,
                                  .dist = &cut,
                                  .logp_dist = &cut,
                                  .hidden = a.hidden,
                                  .weight = a.weight,
                                  .host_counter = counter,
                                  .host_id = ids,
                                  .host_logp = logp,
                                  .host_support = bits};
        refused(k.c, k.c->lm_sample(k.c->ctx, &s), "top_k, top_p and min_p must be off");
        call_finish(&k);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_autograd), cmocka_unit_test(a_draw_leaves_its_support),
        cmocka_unit_test(greedy_draws_from_one), cmocka_unit_test(backward_is_over_its_own_support),
        cmocka_unit_test(what_does_not_fit_is_refused)};
    return cmocka_run_group_tests_name("kernels: support", tests, setup, kit_teardown);
}
