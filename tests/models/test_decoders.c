// tests/models/test_decoders.c: compares Llama and its descendants with transformers
// (make_vectors.py): log-probs and gradients in f32, on every backend, to 1e-4 of a tensor's
// largest value.
#include "decoders.h"
#include "on_backends.h"
#include "vectors.h"

#include <stdio.h>

static void check(const struct decoder *d) {
    if (!plugin_fits(backend.compute, d->plugin)) return;
    const rlhf_model_open o = open_args(&backend, RLHF_F32, 1);
    struct model m = model_open(d->plugin, d->settings, &o);
    struct vectors v = vectors_open(d->vectors);
    float logp[VEC_TOTAL], *want = vectors_need(&v, "logp", VEC_TOTAL);
    model_fill(&m, 0.3);
    vec_lm_step(&m, 1, logp);
    assert_tensor_close(logp, want, VEC_TOTAL, VEC_RTOL, 0, d->vectors);
    vec_check_grads(&m, &v, d->partly);
    test_free(want);
    vectors_close(&v);
    model_close(&m);
}

static void test_families(void **state) {
    (void)state;
    for (uint32_t i = 0; i < N_DECODERS; i++)
        if (!decoders[i].partly) check(&decoders[i]);
}

static void test_positions(void **state) {
    (void)state;
    for (uint32_t i = 0; i < N_DECODERS; i++)
        if (decoders[i].partly) check(&decoders[i]);
}

static void test_scores(void **state) {
    (void)state;
    vec_classifier(&backend, "llama", llama_score, "llama_score");
    vec_classifier(&backend, "qwen3", qwen3_score, "qwen3_score");
    vec_classifier(&backend, "smollm3", smollm3_score, "smollm3_score");
    vec_classifier(&backend, "olmo2", olmo2_score, "olmo2_score");
    vec_classifier(&backend, "gemma2", gemma2_score, "gemma2_score");
    vec_classifier(&backend, "phi3", phi3_score, "phi3_score");
}

static double factor; // of the last call of embed

static rlhf_status note_embed(void *ctx, rlhf_dev out, rlhf_dev ids, rlhf_dev pos, rlhf_dev wte,
                              rlhf_dev wpe, double scale, uint32_t rows, int32_t d) {
    factor = scale;
    return backend.compute->embed(ctx, out, ids, pos, wte, wpe, scale, rows, d);
}

// Gemma's embedding is multiplied by the square root of its width, in the act dtype.
static void test_factor_of_embedding(void **state) {
    (void)state;
    const struct {
        int32_t dtype;
        double want;
    } cases[] = {{RLHF_F32, (double)4.89897966f}, {RLHF_BF16, 4.90625}}; // sqrt(24)
    rlhf_compute table = *backend.compute;
    table.embed = note_embed;
    const struct backend noting = {NULL, NULL, &table, NULL};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const rlhf_model_open o = open_args(&noting, cases[i].dtype, 1);
        struct model m = model_open("gemma3_text", tiny_gemma3, &o);
        float logp[VEC_TOTAL];
        model_fill(&m, 0.3);
        vec_lm_step(&m, 1, logp);
        assert_true(factor == cases[i].want);
        model_close(&m);
    }
}

// The table of positions grows with the rows. If it grows between a forward pass and its backward
// pass, the bits of that backward pass and of later passes must not change.
static void test_longer_rows(void **state) {
    (void)state;
    static const struct setting settings[] = {{"vocab_size", "61"},
                                              {"hidden_size", "8"},
                                              {"intermediate_size", "8"},
                                              {"num_hidden_layers", "1"},
                                              {"num_attention_heads", "1"},
                                              {"num_key_value_heads", "1"},

                                              {"head_dim", "8"},
                                              {"max_position_embeddings", "4096"},
                                              {"tie_word_embeddings", "true"},
                                              {NULL, NULL}};
    enum { LONG = 1100 };
    const rlhf_model_open o = open_args(&backend, RLHF_F32, 1);
    struct model m = model_open("qwen3", settings, &o), other = model_open("qwen3", settings, &o);
    const rlhf_forward train = {.size = sizeof train, .heads = RLHF_HEAD_LOGP, .train = 1};
    const rlhf_forward only = {.size = sizeof only, .heads = RLHF_HEAD_LOGP};
    int32_t *ids = test_calloc(LONG, sizeof *ids), offset[] = {0, LONG}, prompt = 1;
    float *all = test_calloc(LONG, sizeof *all), got[VEC_TOTAL], want[VEC_TOTAL];
    const rlhf_batch b = {sizeof b, 1, LONG, 0, ids, offset, &prompt, NULL, NULL};
    const rlhf_heads h = {.size = sizeof h, .logp = all};
    rlhf_param p = {.size = sizeof p}, q = {.size = sizeof q};
    for (int32_t t = 0; t < LONG; t++)
        ids[t] = t * 7 % 61;
    model_fill(&m, 0.3);
    model_fill(&other, 0.3);
    vec_lm_step(&other, 1, want);
    const uint64_t before = m.c->bytes_in_use(m.c->ctx);
    const rlhf_heads none = {.size = sizeof none};
    must(&m, m.ops->forward(m.self, &vec_batch, &train, &none));
    must(&m, m.ops->forward(m.self, &b, &only, &h));
    assert_true(m.c->bytes_in_use(m.c->ctx) > before);
    vec_lm_step(&m, 1, got);
    assert_memory_equal(got, want, sizeof got);
    for (uint32_t i = 0; m.ops->param(m.self, i, &p) == RLHF_OK; i++) {
        must(&other, other.ops->param(other.self, i, &q));
        float *x = device_read(m.c, p.grad, param_count(&p));
        float *y = device_read(m.c, q.grad, param_count(&q));
        assert_memory_equal(x, y, param_count(&p) * sizeof *x);
        test_free(x);
        test_free(y);
    }
    must(&other, other.ops->forward(other.self, &b, &train, &h)); // at once, and in training
    float *again = test_calloc(LONG, sizeof *again);
    const rlhf_heads h2 = {.size = sizeof h2, .logp = again};
    must(&m, m.ops->forward(m.self, &b, &only, &h2));
    assert_memory_equal(all, again, LONG * sizeof *all);
    assert_true(all[LONG - 1] < 0);
    test_free(again);
    test_free(all);
    test_free(ids);
    model_close(&other);
    model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_families), cmocka_unit_test(test_positions),
        cmocka_unit_test(test_scores), cmocka_unit_test(test_factor_of_embedding),
        cmocka_unit_test(test_longer_rows)};
    return on_backends("decoders", ON_ALL, 2, tests, sizeof tests / sizeof *tests);
}
