// tests/models/test_bf16.c: the gradient with bf16 products, compared with float64
// (make_vectors.py), of a model whose first tokens have a large channel. The difference must come
// only from rounding the weights, inputs and results of products, and their gradients
// (docs/models.md): float64 with the same roundings gives the same gradient.
#include "decoders.h"
#include "vectors.h"

#include <math.h>
#include <stdlib.h>

enum { SINK = 3 }; // SINK of make_vectors.py

// Returns |a - b| / |b| over the gradients of all parameters.
static double distance(struct model *m, const struct vectors *a, const struct vectors *b) {
    rlhf_param p = {.size = sizeof p};
    double off = 0, whole = 0;
    char name[256];
    for (uint32_t i = 0; m->ops->param(m->self, i, &p) == RLHF_OK; i++) {
        const uint64_t n = param_count(&p);
        snprintf(name, sizeof name, "grad:%s", p.name);
        float *x = a ? vectors_need(a, name, n) : device_read(m->c, p.grad, n);
        float *y = vectors_need(b, name, n);
        for (uint64_t j = 0; j < n; j++) {
            off += ((double)x[j] - (double)y[j]) * ((double)x[j] - (double)y[j]);
            whole += (double)y[j] * (double)y[j];
        }
        test_free(x);
        test_free(y);
    }
    return sqrt(off / whole);
}

static void set_sink(struct model *m) {
    rlhf_param p = {.size = sizeof p};
    must(m, m->ops->param(m->self, model_find(m, "model.embed_tokens.weight"), &p));
    const uint64_t n = param_count(&p);
    float *x = device_read(m->c, p.value, n);
    for (int i = 0; i < VEC_ROWS; i++)
        x[vec_ids[vec_offset[i]] * 16 + SINK] = 60;
    device_write(m->c, p.value, x, n);
    test_free(x);
    must(m, m->ops->refresh(m->self));
}

// Sets *exact and *rounded to the distances of the model's gradient from that of float64 without
// and with roundings, and *between to the distance between these two.
static void measure(const char *backend_name, int32_t dtype, double *exact, double *rounded,
                    double *between) {
    struct backend backend = backend_open(backend_name, 2, 0);
    assert_non_null(backend.compute);
    const rlhf_model_open o = open_args(&backend, dtype, 1);
    struct model m = model_open("llama", decoders[0].settings, &o);
    struct vectors v = vectors_open("sink"), r = vectors_open("sink_bf16");
    float logp[VEC_TOTAL];
    model_fill(&m, 0.3);
    set_sink(&m);
    vec_lm_step(&m, 1, logp);
    *exact = distance(&m, NULL, &v);
    *rounded = distance(&m, NULL, &r);
    *between = distance(&m, &r, &v);
    print_message("%s, %s: %.2g from float64, %.2g from float64 with roundings, which is %.2g from "
                  "float64\n",
                  backend_name, dtype == RLHF_BF16 ? "bf16" : "f32", *exact, *rounded, *between);
    vectors_close(&v);
    vectors_close(&r);
    model_close(&m);
    backend_close(&backend);
}

static void bf16_adds_only_these_roundings(void **state) {
    double exact, rounded, between;
    (void)state;
    measure("cpu", RLHF_BF16, &exact, &rounded, &between);
    assert_true(between > 0.005 && between < 0.02);
    assert_true(rounded < 1e-6);
    // The reference backend rounds less: not the derivatives of the logits, for instance.
    measure("reference", RLHF_BF16, &exact, &rounded, &between);
    assert_true(exact < 1.25 * between);
}

static void f32_is_near_float64(void **state) {
    static const char *const backends[] = {"cpu", "reference"};
    double exact, rounded, between;
    (void)state;
    for (int i = 0; i < 2; i++) {
        measure(backends[i], RLHF_F32, &exact, &rounded, &between);
        assert_true(exact < 2e-6);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(bf16_adds_only_these_roundings),
                                       cmocka_unit_test(f32_is_near_float64)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
