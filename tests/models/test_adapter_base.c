// tests/models/test_adapter_base.c: models that share one base do not affect each other.
#include "adapters.h"
#include "decoders.h"

// An adapter gives the same bits on a shared base and in a separate model.
static void on_a_base(void **state) {
    (void)state;
    for (int32_t i = 0; i < N_ADAPTED; i++)
        if (plugin_fits(backend.compute, adapted_kinds[i].plugin))
            for (int32_t dtype = RLHF_F32; dtype <= RLHF_BF16; dtype++) {
                const struct adapted *k = &adapted_kinds[i];
                const struct adapted_how alone = {.dtype = dtype, .trainable = 1};
                struct adapted_how on = alone;
                const uint64_t nothing = backend.compute->bytes_in_use(backend.compute->ctx);
                struct model x = adapted_open(k, alone);
                const uint64_t one = backend.compute->bytes_in_use(backend.compute->ctx);
                struct model base = adapted_open(k, alone);
                const uint64_t two = backend.compute->bytes_in_use(backend.compute->ctx);
                adapted_zero_ups(&base); // the base has a different adapter
                on.base = base.self;
                struct model y = adapted_open(k, on), z;
                const uint64_t three = backend.compute->bytes_in_use(backend.compute->ctx);
                assert_true(three - two < one - nothing);
                rlhf_param p = {.size = sizeof p};
                for (uint32_t j = 0; y.ops->param(y.self, j, &p) == RLHF_OK; j++)
                    assert_int_not_equal(p.group, RLHF_PARAM_TRUNK);
                adapted_same_step(k, &x, &y, &vec_batch);
                // A model without an adapter has the heads of its base. If it is opened on an
                // adapted instance, it has the heads of that instance's base.
                on = (struct adapted_how){.dtype = dtype, .plain = 1, .base = y.self};
                z = adapted_open(k, on);
                float *want = adapted_heads(&base, k, &vec_batch, 0, 0);
                float *got = adapted_heads(&z, k, &vec_batch, 0, 0);
                adapted_same(got, want, ADAPTED_HEADS * adapted_per_head(&vec_batch), "the base");
                test_free(want);
                test_free(got);
                model_close(&z);
                model_close(&y);
                model_close(&base);
                model_close(&x);
            }
}

// If an instance has a base but no adapter, it trains, stores and computes only its heads.
static void heads_alone(void **state) {
    (void)state;
    const struct adapted k = {
        "gpt2", tiny_gpt2,      {"c_fc"}, 2,
        1,      RLHF_VALUE_MLP, 1,        RLHF_HEAD_VALUE | RLHF_HEAD_TOKEN_SCORE | RLHF_HEAD_LOGP};
    const struct adapted_how h = {.dtype = RLHF_F32, .trainable = 1, .zero = 1};
    struct model base = adapted_open(&k, h);
    struct model full =
        adapted_open(&k, (struct adapted_how){.dtype = RLHF_F32, .trainable = 1, .plain = 1});
    struct model m = adapted_open(
        &k, (struct adapted_how){.dtype = RLHF_F32, .trainable = 1, .plain = 1, .base = base.self});
    rlhf_param p = {.size = sizeof p};
    float *x = adapted_heads(&m, &k, &vec_batch, 1, 0),
          *y = adapted_heads(&full, &k, &vec_batch, 1, 0);
    adapted_same(x, y, ADAPTED_HEADS * adapted_per_head(&vec_batch), "heads");
    test_free(x);
    test_free(y);
    adapted_backward(&m, &k, &vec_batch);
    adapted_backward(&full, &k, &vec_batch);
    uint32_t n = 0;
    for (; m.ops->param(m.self, n, &p) == RLHF_OK; n++) {
        x = device_read(m.c, p.grad, param_count(&p));
        y = device_read(m.c, adapted_param(&full, p.name).grad, param_count(&p));
        adapted_same(x, y, param_count(&p), p.name);
        test_free(x);
        test_free(y);
    }
    assert_int_equal(n, 5);
    model_close(&m);
    model_close(&full);
    model_close(&base);
}

// Tests a frozen base, and the reference's KL against a model that was derived from it.
static void frozen_base(void **state) {
    (void)state;
    const struct adapted *k = &adapted_kinds[5];
    rlhf_model_open o = open_args(&backend, RLHF_BF16, 0);
    o.frozen = 1;
    struct model base = model_open(k->plugin, k->settings, &o);
    model_fill(&base, 0.3);
    struct model m = adapted_open(k, (struct adapted_how){.dtype = RLHF_BF16, .base = base.self});
    struct model alone = adapted_open(k, (struct adapted_how){.dtype = RLHF_BF16});
    float *x = adapted_heads(&m, k, &vec_batch, 0, 0),
          *y = adapted_heads(&alone, k, &vec_batch, 0, 0);
    adapted_same(x, y, ADAPTED_HEADS * adapted_per_head(&vec_batch), "a frozen base");
    test_free(x);
    test_free(y);
    const uint64_t states = VEC_TOTAL * (uint64_t)m.info.d_model;
    float *hidden = test_calloc(states, sizeof *hidden), kl[VEC_TOTAL], self[VEC_TOTAL];
    const rlhf_forward ref = {
        .size = sizeof ref, .heads = RLHF_HEAD_HIDDEN, .flags = RLHF_FORWARD_BASE};
    const rlhf_heads h = {.size = sizeof h, .hidden = hidden};
    for (int32_t r = 0; r < 2; r++) { // the reference is the base or the model itself
        struct model *from = r ? &m : &base;
        const rlhf_forward f = {.size = sizeof f,
                                .heads = RLHF_HEAD_LOGP | RLHF_HEAD_KL,
                                .kl_self = from->self,
                                .kl_hidden = hidden};
        const rlhf_heads out = {.size = sizeof out, .kl = r ? self : kl};
        must(from, from->ops->forward(from->self, &vec_batch, &ref, &h));
        must(&m, m.ops->forward(m.self, &vec_batch, &f, &out));
    }
    assert_memory_equal(kl, self, sizeof kl);
    double sum = 0;
    for (int32_t t = 0; t < VEC_TOTAL; t++)
        sum += (double)kl[t];
    assert_true(sum > 0.01);
    test_free(hidden);
    model_close(&alone);
    model_close(&m);
    model_close(&base);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(on_a_base), cmocka_unit_test(heads_alone),
                                       cmocka_unit_test(frozen_base)};
    return on_backends("adapter on a base", ON_ALL, 2, tests, sizeof tests / sizeof *tests);
}
