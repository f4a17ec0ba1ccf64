// test_heads.c: gradients of value, entropy, kl and pooled score heads, compared with finite
// differences along each tensor's own gradient.
#include "decoders.h"
#include "on_backends.h"
#include "trial.h"

#include <math.h>

// Returns the loss after p has moved by `eps` along direction / |direction|.
static double loss_at(struct trial *t, const rlhf_param *p, const float *at, const float *dir,
                      double step) {
    const uint64_t n = param_count(p);
    struct outputs o;
    float *x = test_malloc(n * sizeof *x);
    for (uint64_t i = 0; i < n; i++)
        x[i] = at[i] + (float)(step * (double)dir[i]);
    device_write(t->m.c, p->value, x, n);
    test_free(x);
    must(&t->m, t->m.ops->refresh(t->m.self));
    return trial_loss(t, &o);
}

// Returns the central difference of the loss along x's own gradient g, whose length is `len`. The
// result should be `len`. A long step may cross a corner of a ReLU, and a short step is lost in
// rounding. So two step sizes are tried, and the result that is closer to `len` counts.
static double slope(struct trial *t, const rlhf_param *p, const float *x, const float *g,
                    double len) {
    static const double eps[] = {4e-3, 5e-4};
    double best = 0;
    for (uint32_t k = 0; k < 2; k++) {
        const double up = loss_at(t, p, x, g, eps[k] / len);
        const double down = loss_at(t, p, x, g, -eps[k] / len);
        const double s = (up - down) / (2 * eps[k]);
        if (k == 0 || fabs(s - len) < fabs(best - len)) best = s;
    }
    device_write(t->m.c, p->value, x, param_count(p));
    return best;
}

static void check_gradients(struct trial *t, uint32_t at_least) {
    rlhf_param p = {.size = sizeof p};
    uint32_t checked = 0;
    trial_gradient(t);
    for (uint32_t i = 0; t->m.ops->param(t->m.self, i, &p) == RLHF_OK; i++) {
        const uint64_t n = param_count(&p);
        float *g = device_read(t->m.c, p.grad, n), *x = device_read(t->m.c, p.value, n);
        const double len = norm2(g, n);
        if (len > 0.05) {
            const double got = slope(t, &p, x, g, len);
            if (fabs(got - len) > 1e-2 * len)
                fail_msg("%s: gradient %.6g, finite difference %.6g", p.name, len, got);
            checked++;
        }
        test_free(g);
        test_free(x);
    }
    assert_true(checked >= at_least);
}

static void fd(uint32_t heads, rlhf_model_open o, uint32_t at_least) {
    struct trial t;
    trial_open(&t, &backend, heads, o);
    check_gradients(&t, at_least);
    trial_close(&t);
}

static void test_value_mlp(void **state) {
    (void)state;
    fd(RLHF_HEAD_VALUE, (rlhf_model_open){.value_kind = RLHF_VALUE_MLP}, 28);
}
static void test_value_linear(void **state) {
    (void)state;
    fd(RLHF_HEAD_VALUE, (rlhf_model_open){.value_kind = RLHF_VALUE_LINEAR}, 26);
}
static void test_entropy(void **state) {
    (void)state;
    fd(RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY, (rlhf_model_open){0}, 26);
}
static void test_kl(void **state) {
    (void)state;
    fd(RLHF_HEAD_LOGP | RLHF_HEAD_KL, (rlhf_model_open){0}, 26);
}
static void test_together(void **state) {
    (void)state;
    fd(RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY | RLHF_HEAD_KL | RLHF_HEAD_VALUE | RLHF_HEAD_SCORE,
       (rlhf_model_open){.value_kind = RLHF_VALUE_MLP, .n_labels = VEC_LABELS}, 29);
}
static void test_together_mean(void **state) {
    (void)state;
    fd(RLHF_HEAD_LOGP | RLHF_HEAD_SCORE,
       (rlhf_model_open){.n_labels = VEC_LABELS, .pooling = RLHF_POOL_MEAN}, 26);
}
static void test_score_mean(void **state) {
    (void)state;
    fd(RLHF_HEAD_SCORE, (rlhf_model_open){.n_labels = VEC_LABELS, .pooling = RLHF_POOL_MEAN}, 26);
}
static void test_encoder_mean(void **state) {
    (void)state;
    static const struct setting s[] = {{"vocab_size", "61"}, {"max_position_embeddings", "24"},
                                       {"dim", "32"},        {"n_layers", "2"},
                                       {"n_heads", "2"},     {"hidden_dim", "64"},
                                       {NULL, NULL}};
    struct trial t;
    trial_open_as(&t, &backend, "distilbert", s, RLHF_HEAD_SCORE,
                  (rlhf_model_open){.n_labels = VEC_LABELS, .pooling = RLHF_POOL_MEAN});
    check_gradients(&t, 28);
    trial_close(&t);
}
// Capped scores and logits, a window, norms around the blocks.
static void test_capped(void **state) {
    (void)state;
    struct trial t;
    trial_open_as(&t, &backend, "gemma2", tiny_gemma2, RLHF_HEAD_LOGP | RLHF_HEAD_VALUE,
                  (rlhf_model_open){.value_kind = RLHF_VALUE_MLP});
    check_gradients(&t, 28);
    trial_close(&t);
}
static void test_token_score(void **state) {
    (void)state;
    fd(RLHF_HEAD_TOKEN_SCORE, (rlhf_model_open){.n_labels = 1}, 26);
}
static void test_together_token(void **state) {
    (void)state;
    fd(RLHF_HEAD_LOGP | RLHF_HEAD_VALUE | RLHF_HEAD_SCORE | RLHF_HEAD_TOKEN_SCORE,
       (rlhf_model_open){.value_kind = RLHF_VALUE_MLP, .n_labels = 1}, 29);
}
static void test_score_first(void **state) {
    (void)state; // the first token sees only itself, so scores do not depend on query and key
    fd(RLHF_HEAD_SCORE, (rlhf_model_open){.n_labels = VEC_LABELS, .pooling = RLHF_POOL_FIRST}, 20);
}

static float *grads_of(struct trial *t, const char *name, uint64_t *n) {
    rlhf_param p = {.size = sizeof p};
    must(&t->m, t->m.ops->param(t->m.self, model_find(&t->m, name), &p));
    *n = param_count(&p);
    return device_read(t->m.c, p.grad, *n);
}

static void test_detach(void **state) {
    (void)state;
    static const char *const head[] = {"v_head.fc.weight", "v_head.out.weight", "v_head.out.bias"};
    struct trial a, b;
    uint64_t n;
    trial_open(&a, &backend, RLHF_HEAD_VALUE, (rlhf_model_open){.value_kind = RLHF_VALUE_MLP});
    trial_open(&b, &backend, RLHF_HEAD_VALUE,
               (rlhf_model_open){.value_kind = RLHF_VALUE_MLP, .value_detach = 1});
    trial_gradient(&a);
    trial_gradient(&b);
    for (uint32_t i = 0; i < 3; i++) {
        float *x = grads_of(&a, head[i], &n), *y = grads_of(&b, head[i], &n);
        assert_true(norm2(x, n) > 0);
        assert_memory_equal(x, y, n * sizeof *x);
        test_free(x);
        test_free(y);
    }
    float *x = grads_of(&a, "transformer.wte.weight", &n);
    float *y = grads_of(&b, "transformer.wte.weight", &n);
    assert_true(norm2(x, n) > 0);
    assert_true(norm2(y, n) <= 0);
    test_free(x);
    test_free(y);
    trial_close(&a);
    trial_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_value_mlp),    cmocka_unit_test(test_value_linear),
        cmocka_unit_test(test_entropy),      cmocka_unit_test(test_kl),
        cmocka_unit_test(test_together),     cmocka_unit_test(test_together_mean),
        cmocka_unit_test(test_encoder_mean), cmocka_unit_test(test_capped),
        cmocka_unit_test(test_score_mean),   cmocka_unit_test(test_score_first),
        cmocka_unit_test(test_token_score),  cmocka_unit_test(test_together_token),
        cmocka_unit_test(test_detach)};
    return on_backends("heads", ON_REFERENCE | ON_CPU, 1, tests, sizeof tests / sizeof *tests);
}
