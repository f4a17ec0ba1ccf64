// tests/models/test_vectors.c: compares forward, every gradient and ten AdamW steps with PyTorch
// (make_vectors.py), in f32, on both backends. The bound is 1e-4 of a tensor's largest value.
#include "on_backends.h"
#include "vectors.h"

#include <stdio.h>
#include <string.h>

// ---- GPT-2, language model ----

static void test_gpt2_lm(void **state) {
    (void)state;
    const rlhf_model_open o = open_args(&backend, RLHF_F32, 1);
    struct model m = model_open("gpt2", tiny_gpt2, &o);
    struct vectors v = vectors_open("gpt2_lm");
    float logp[VEC_TOTAL], *want = vectors_need(&v, "logp", VEC_TOTAL);
    model_fill(&m, 0.3);
    vec_lm_step(&m, 1, logp);
    assert_tensor_close(logp, want, VEC_TOTAL, VEC_RTOL, 0, "logp");
    vec_check_grads(&m, &v, 0);
    test_free(want);
    vectors_close(&v);
    model_close(&m);
}

// The moments m and v of one parameter.
struct moments {
    rlhf_dev m, v;
};

static void adamw(struct model *m, struct moments *s, int64_t step) {
    rlhf_param p = {.size = sizeof p};
    for (uint32_t i = 0; m->ops->param(m->self, i, &p) == RLHF_OK; i++) {
        const uint64_t n = param_count(&p);
        const rlhf_adamw a = {.size = sizeof a,
                              .lr = 2e-3,
                              .beta1 = 0.9,
                              .beta2 = 0.95,
                              .eps = 1e-4,
                              .weight_decay = p.flags & RLHF_PARAM_DECAY ? 0.1 : 0,
                              .grad_scale = 1,
                              .step = step};
        if (!s[i].m) {
            must(m, m->c->alloc(m->c->ctx, n * sizeof(float), &s[i].m));
            must(m, m->c->alloc(m->c->ctx, n * sizeof(float), &s[i].v));
        }
        must(m, m->c->adamw(m->c->ctx, p.value, p.grad, s[i].m, s[i].v, n, &a));
    }
    must(m, m->ops->refresh(m->self));
}

// After ten steps: log-probs, and the stored tensors.
static void check_trained(struct model *m, const struct vectors *v) {
    float logp[VEC_TOTAL], *want = vectors_need(v, "adamw:logp", VEC_TOTAL);
    rlhf_param p = {.size = sizeof p};
    char name[256];
    uint32_t checked = 0;
    vec_lm_step(m, -1, logp);
    assert_tensor_close(logp, want, VEC_TOTAL, VEC_RTOL, 0, "logp after 10 steps");
    test_free(want);
    for (uint32_t i = 0; m->ops->param(m->self, i, &p) == RLHF_OK; i++) {
        uint64_t n = 0;
        snprintf(name, sizeof name, "adamw:%s", p.name);
        want = vectors_get(v, name, &n);
        if (!want) continue;
        float *got = device_read(m->c, p.value, n);
        assert_tensor_close(got, want, n, VEC_RTOL, 0, name);
        test_free(got);
        test_free(want);
        checked++;
    }
    assert_int_equal(checked, 2 + 2 * 8 + 1); // ln_f, eight vectors a layer, one matrix
}

static void test_gpt2_adamw(void **state) {
    (void)state;
    const rlhf_model_open o = open_args(&backend, RLHF_F32, 1);
    struct model m = model_open("gpt2", tiny_gpt2, &o);
    struct vectors v = vectors_open("gpt2_lm");
    struct moments s[64] = {{NULL, NULL}};
    float logp[VEC_TOTAL];
    model_fill(&m, 0.3);
    for (int64_t step = 1; step <= 10; step++) {
        model_zero_grad(&m);
        vec_lm_step(&m, -1, logp);
        adamw(&m, s, step);
    }
    check_trained(&m, &v);
    for (uint32_t i = 0; i < 64; i++) {
        m.c->release(m.c->ctx, s[i].m);
        m.c->release(m.c->ctx, s[i].v);
    }
    vectors_close(&v);
    model_close(&m);
}

// ---- classifiers ----

static void classifier(const char *plugin, const struct setting *settings, const char *vectors) {
    vec_classifier(&backend, plugin, settings, vectors);
}

static const struct setting scorer[] = {{"vocab_size", "61"},
                                        {"n_positions", "24"},
                                        {"n_embd", "24"},
                                        {"n_layer", "2"},
                                        {"n_head", "3"},
                                        {"n_inner", "40"},
                                        {"activation_function", "gelu"},
                                        {"scale_attn_by_inverse_layer_idx", "1"},
                                        {NULL, NULL}};

static void test_gpt2_score(void **state) {
    (void)state;
    classifier("gpt2", scorer, "gpt2_score");
}

// Token 29 ends a row, and is skipped as in transformers.
static void test_gpt2_pads(void **state) {
    struct setting padded[sizeof scorer / sizeof *scorer + 1] = {{"pad_token_id", "29"}};
    (void)state;
    memcpy(padded + 1, scorer, sizeof scorer);
    classifier("gpt2", padded, "gpt2_padded");
}

static void test_gpt2_token_score(void **state) {
    (void)state;
    rlhf_model_open o = open_args(&backend, RLHF_F32, 1);
    float score[VEC_TOTAL], d[VEC_TOTAL];
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_TOKEN_SCORE, .train = 1};
    const rlhf_heads out = {.size = sizeof out, .token_score = score};
    const rlhf_heads grad = {.size = sizeof grad, .token_score = d};
    o.n_labels = 1;
    struct model m = model_open("gpt2", scorer, &o);
    struct vectors v = vectors_open("gpt2_token_score");
    float *want = vectors_need(&v, "token_score", VEC_TOTAL);
    model_fill(&m, 0.3);
    for (uint64_t i = 0; i < VEC_TOTAL; i++)
        d[i] = vec_weight(i);
    must(&m, m.ops->forward(m.self, &vec_batch, &f, &out));
    must(&m, m.ops->backward(m.self, &vec_batch, &f, &grad));
    assert_tensor_close(score, want, VEC_TOTAL, VEC_RTOL, 0, "token_score");
    vec_check_grads(&m, &v, 0);
    test_free(want);
    vectors_close(&v);
    model_close(&m);
}

static void test_distilbert(void **state) {
    (void)state;
    static const struct setting s[] = {{"vocab_size", "61"}, {"max_position_embeddings", "24"},
                                       {"dim", "24"},        {"n_layers", "2"},
                                       {"n_heads", "3"},     {"hidden_dim", "40"},
                                       {NULL, NULL}};
    classifier("distilbert", s, "distilbert");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpt2_lm),          cmocka_unit_test(test_gpt2_adamw),
        cmocka_unit_test(test_gpt2_score),       cmocka_unit_test(test_gpt2_pads),
        cmocka_unit_test(test_gpt2_token_score), cmocka_unit_test(test_distilbert)};
    return on_backends("vectors", ON_ALL, 2, tests, sizeof tests / sizeof *tests);
}
