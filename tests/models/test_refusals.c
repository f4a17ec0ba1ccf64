// test_refusals.c: which configs, tables, batches and calls a model refuses, and the message for
// each.
#include "decoders.h"
#include "on_backends.h"
#include "vectors.h"

#include <string.h>

static void test_refused_configs(void **state) {
    (void)state;
    static const struct {
        const char *plugin;
        struct setting s;
        const char *text;
    } cases[] = {
        {"gpt2", {"activation_function", "mish"}, "activation_function \"mish\""},
        {"gpt2", {"add_cross_attention", "1"}, "add_cross_attention"},
        {"gpt2", {"n_head", "7"}, "n_embd (768) must be a multiple of n_head (7)"},
        {"distilbert", {"activation", "mish"}, "activation \"mish\""},
        {"distilbert", {"sinusoidal_pos_embds", "1"}, "sinusoidal_pos_embds"},
        {"distilbert", {"dim", "100"}, "dim (100) must be a multiple of n_heads (12)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct setting s[] = {cases[i].s, {NULL, NULL}};
        struct model m;
        assert_true(model_create(cases[i].plugin, s, &m) < 0);
        if (!strstr(host_failure(), cases[i].text))
            fail_msg("\"%s\" does not say \"%s\"", host_failure(), cases[i].text);
        model_close(&m);
    }
}

// If the backend lacks an op that the model needs, open() of the model fails, and the message names
// the op.
static void test_refused_tables(void **state) {
    (void)state;
    rlhf_compute table = *backend.compute;
    rlhf_model_open o = open_args(&backend, RLHF_F32, 1);
    struct model m;
    o.compute = &table;
    table.linear_dx = NULL;
    assert_int_equal(model_create("gpt2", tiny_gpt2, &m), RLHF_OK);
    assert_refused(m.ops->open(m.self, &o), RLHF_E_UNSUPPORTED, "does not support linear_dx");
    o.trainable = 0;
    table.size = RLHF_SIZE_TO(rlhf_compute, lm_sample); // an older table, without the optimizer
    must(&m, m.ops->open(m.self, &o));
    model_close(&m);
    table.size = RLHF_SIZE_TO(rlhf_compute, lm_head);
    assert_int_equal(model_create("gpt2", tiny_gpt2, &m), RLHF_OK);
    assert_refused(m.ops->open(m.self, &o), RLHF_E_UNSUPPORTED, "does not support lm_sample");
    model_close(&m);
}

// What a model asked `supports`. It answers that windows are not supported in `refused` (an op).
static struct {
    rlhf_attn attn;
    uint32_t asked, refused;
} limits;

static rlhf_status limited(void *ctx, const rlhf_call *call) {
    (void)ctx;
    limits.attn = *call->attn;
    limits.asked++;
    return call->op == limits.refused && call->attn->window ? RLHF_E_UNSUPPORTED : RLHF_OK;
}

// When a model is opened, it asks the backend about the geometry of its attention, in both passes
// if it is trained. open() returns the backend's refusal.
static void test_limits(void **state) {
    (void)state;
    static const struct {
        uint32_t refused, asked;
        int32_t trainable, status;
    } cases[] = {{0, 2, 1, RLHF_OK},
                 {0, 1, 0, RLHF_OK},
                 {RLHF_COMPUTE_OP(attention), 1, 1, RLHF_E_UNSUPPORTED},
                 {RLHF_COMPUTE_OP(attention_bwd), 2, 1, RLHF_E_UNSUPPORTED},
                 {RLHF_COMPUTE_OP(attention_bwd), 1, 0, RLHF_OK}};
    rlhf_compute table = *backend.compute;
    table.supports = limited;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rlhf_model_open o = open_args(&backend, RLHF_F32, cases[i].trainable);
        struct model m;
        o.compute = &table;
        limits.asked = 0;
        limits.refused = cases[i].refused;
        assert_int_equal(model_create("mistral", tiny_window, &m), RLHF_OK);
        assert_int_equal(m.ops->open(m.self, &o), cases[i].status);
        assert_int_equal(limits.asked, cases[i].asked);
        assert_int_equal(limits.attn.window, 4);
        assert_int_equal(limits.attn.head_dim, 8);
        assert_int_equal(limits.attn.kv_heads, 2);
        model_close(&m);
    }
}

// Passes a batch of a newer host with a field that this model does not know, and a parameter struct
// of an older host.
static void test_other_sizes(void **state) {
    (void)state;
    const rlhf_model_open o = open_args(&backend, RLHF_F32, 0);
    struct model m = model_open("gpt2", tiny_gpt2, &o);
    float x[VEC_TOTAL];
    struct {
        rlhf_batch b;
        uint64_t later;
    } newer = {vec_batch, 0};
    struct {
        rlhf_param p;
        uint64_t later;
    } out = {{.size = sizeof out}, 7};
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_LOGP};
    const rlhf_heads h = {.size = sizeof h, .logp = x};
    model_fill(&m, 0.3);
    newer.b.size = sizeof newer;
    assert_int_equal(m.ops->forward(m.self, &newer.b, &f, &h), RLHF_OK);
    newer.later = 1;
    assert_refused(m.ops->forward(m.self, &newer.b, &f, &h), RLHF_E_UNSUPPORTED, "rlhf_batch");
    newer.b.size = 8;
    assert_refused(m.ops->forward(m.self, &newer.b, &f, &h), RLHF_E_INVALID, "rlhf_batch");
    assert_int_equal(m.ops->param(m.self, 0, &out.p), RLHF_OK);
    assert_int_equal(out.p.size, sizeof out);
    assert_int_equal(out.later, 0);
    assert_non_null(out.p.value);
    out.p.size = 8;
    assert_int_equal(m.ops->param(m.self, 0, &out.p), RLHF_E_INVALID);
    model_close(&m);
}

static void test_refused_batches(void **state) {
    (void)state;
    const rlhf_model_open o = open_args(&backend, RLHF_F32, 0);
    struct model m = model_open("gpt2", tiny_gpt2, &o);
    float x[32];
    int32_t ids[32] = {0}, offset[] = {0, 3, 4}, prompt[] = {1, 1}, longer[] = {0, 25};
    rlhf_batch b = {sizeof(rlhf_batch), 2, 4, 0, ids, offset, prompt, NULL, NULL};
    rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_LOGP};
    const rlhf_heads h = {.size = sizeof h, .logp = x};
    model_fill(&m, 0.3);
    assert_int_equal(m.ops->forward(m.self, &b, &f, &h), RLHF_OK);
    ids[2] = 61;
    assert_refused(m.ops->forward(m.self, &b, &f, &h), RLHF_E_INVALID, "token id 61");
    ids[2] = -1;
    assert_refused(m.ops->forward(m.self, &b, &f, &h), RLHF_E_INVALID, "token id -1");
    ids[2] = 0;
    prompt[1] = 0;
    assert_refused(m.ops->forward(m.self, &b, &f, &h), RLHF_E_INVALID, "prompt_len 0");
    prompt[1] = 1;
    offset[1] = 4;
    assert_refused(m.ops->forward(m.self, &b, &f, &h), RLHF_E_INVALID, "0 tokens");
    offset[1] = 3;
    b.total = 5;
    assert_refused(m.ops->forward(m.self, &b, &f, &h), RLHF_E_INVALID, "5 tokens");
    const rlhf_batch big = {sizeof(rlhf_batch), 1, 25, 0, ids, longer, prompt, NULL, NULL};
    assert_refused(m.ops->forward(m.self, &big, &f, &h), RLHF_E_INVALID, "context of 24");
    b.total = 4;
    f.train = 1;
    assert_refused(m.ops->forward(m.self, &b, &f, &h), RLHF_E_INVALID, "not opened for training");
    f.train = 0;
    f.heads = RLHF_HEAD_VALUE;
    assert_refused(m.ops->forward(m.self, &b, &f, &h), RLHF_E_UNSUPPORTED, "heads");
    f.heads = RLHF_HEAD_KL;
    assert_refused(m.ops->forward(m.self, &b, &f, &h), RLHF_E_INVALID, "no reference");
    model_close(&m);
}

static void test_refused_backward(void **state) {
    (void)state;
    const rlhf_model_open o = open_args(&backend, RLHF_F32, 1);
    struct model m = model_open("gpt2", tiny_gpt2, &o);
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_LOGP, .train = 1};
    const rlhf_heads h = {.size = sizeof h};
    model_fill(&m, 0.3);
    assert_refused(m.ops->backward(m.self, &vec_batch, &f, &h), RLHF_E_INVALID, "no forward");
    must(&m, m.ops->forward(m.self, &vec_batch, &f, &h));
    must(&m, m.ops->backward(m.self, &vec_batch, &f, &h));
    must(&m, m.ops->refresh(m.self));
    assert_refused(m.ops->backward(m.self, &vec_batch, &f, &h), RLHF_E_INVALID, "no forward");
    model_close(&m);
}

static void test_refused_generation(void **state) {
    (void)state;
    rlhf_model_open o = open_args(&backend, RLHF_F32, 0);
    struct model m = model_open("gpt2", tiny_gpt2, &o);
    rlhf_gen *g = NULL;
    int32_t slot[2] = {0, 0}, start[2] = {0, 0}, ids[9] = {1, 2}, offset[3] = {0, 1, 2}, next[2];
    uint64_t counter[2] = {0, 1};
    float logp[2];
    rlhf_gen_step s = {.size = sizeof s,
                       .n = 2,
                       .slot = slot,
                       .start = start,
                       .ids = ids,
                       .offset = offset,
                       .counter = counter,
                       .next = next,
                       .logp = logp};
    model_fill(&m, 0.3);
    assert_refused(m.ops->gen_open(m.self, 2, 25, &g), RLHF_E_INVALID, "1 .. 24");
    must(&m, m.ops->gen_open(m.self, 2, 8, &g));
    assert_refused(m.ops->gen_step(m.self, g, &s), RLHF_E_INVALID, "slot 0 is used twice");
    slot[1] = 2;
    assert_refused(m.ops->gen_step(m.self, g, &s), RLHF_E_INVALID, "slot 2 is out of range");
    slot[1] = 1;
    must(&m, m.ops->gen_step(m.self, g, &s));
    start[0] = 2;
    assert_refused(m.ops->gen_step(m.self, g, &s), RLHF_E_INVALID, "holds 1 tokens");
    start[0] = 0;
    offset[1] = 8;
    offset[2] = 9;
    start[1] = 1;
    must(&m, m.ops->gen_step(m.self, g, &s));
    start[0] = 8;
    start[1] = 0;
    offset[1] = 1;
    offset[2] = 2;
    assert_refused(m.ops->gen_step(m.self, g, &s), RLHF_E_INVALID, "do not fit a slot of 8");
    m.ops->gen_close(m.self, g);
    model_close(&m);
    o.n_labels = 2;
    m = model_open("distilbert", tiny_gpt2, &o);
    assert_refused(m.ops->gen_open(m.self, 2, 8, &g), RLHF_E_UNSUPPORTED, "encoder");
    model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refused_configs),
                                       cmocka_unit_test(test_refused_batches),
                                       cmocka_unit_test(test_refused_backward),
                                       cmocka_unit_test(test_refused_generation),
                                       cmocka_unit_test(test_refused_tables),
                                       cmocka_unit_test(test_other_sizes),
                                       cmocka_unit_test(test_limits)};
    return on_backends("refusals", ON_REFERENCE | ON_CPU, 1, tests, sizeof tests / sizeof *tests);
}
