// tests/models/test_decoders.c: Llama and its descendants against transformers (make_vectors.py):
// log-probs and gradients in f32, every backend, to 1e-4 of a tensor's largest value.
#include "decoders.h"
#include "vectors.h"

#include <stdio.h>

static const char *backend_name; // set by main for each group
static uint32_t guard;
static struct backend backend;

static int setup(void **state) {
    (void)state;
    backend = backend_open(backend_name, 2, guard);
    return backend.compute ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    backend_close(&backend);
    return 0;
}

// A backend older than these models.
static void skip_if_older(void) {
    if (!RLHF_COMPUTE_HAS(backend.compute, rope)) skip();
}

static void check(const struct decoder *d) {
    const rlhf_model_open o = open_args(&backend, RLHF_F32, 1);
    struct model m = model_open(d->plugin, d->settings, &o);
    char file[64];
    snprintf(file, sizeof file, "%s.bin", d->file);
    struct vectors v = vectors_open(file);
    float logp[VEC_TOTAL], *want = vectors_need(&v, "logp", VEC_TOTAL);
    model_fill(&m, 0.3);
    vec_lm_step(&m, 1, logp);
    assert_tensor_close(logp, want, VEC_TOTAL, VEC_RTOL, 0, d->file);
    vec_check_grads(&m, &v, d->partly);
    test_free(want);
    vectors_close(&v);
    model_close(&m);
}

static void test_families(void **state) {
    (void)state;
    skip_if_older();
    for (uint32_t i = 0; i < N_DECODERS; i++)
        if (!decoders[i].partly) check(&decoders[i]);
}

static void test_positions(void **state) {
    (void)state;
    skip_if_older();
    for (uint32_t i = 0; i < N_DECODERS; i++)
        if (decoders[i].partly) check(&decoders[i]);
}

static void test_scores(void **state) {
    (void)state;
    skip_if_older();
    vec_classifier(&backend, "llama", llama_score, "llama_score.bin");
    vec_classifier(&backend, "qwen", qwen3_score, "qwen3_score.bin");
}

int main(void) {
    static const struct {
        const char *backend, *title;
        uint32_t guard, reserved;
    } groups[] = {{"reference", "decoders: reference", 0, 0},
                  {"reference", "decoders: reference, guard mode", 1, 0},
                  {"cpu", "decoders: cpu", 0, 0}};
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_families),
                                       cmocka_unit_test(test_positions),
                                       cmocka_unit_test(test_scores)};
    int failed = 0;
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        backend_name = groups[i].backend;
        guard = groups[i].guard;
        failed += cmocka_run_group_tests_name(groups[i].title, tests, setup, teardown);
    }
    return failed != 0;
}
