// test_contract.c: tests what model.h promises, apart from numerical results: that rows do not
// affect each other, that gradients do not depend on the microbatches, and that the parameter list
// is right.
#include "on_backends.h"
#include "rollout.h"
#include "vectors.h"

#include <math.h>
#include <string.h>

// ---- rows ----

static void logp_of(struct model *m, const rlhf_batch *b, float *logp) {
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_LOGP};
    const rlhf_heads out = {.size = sizeof out, .logp = logp};
    must(m, m->ops->forward(m->self, b, &f, &out));
}

// An example from a published implementation: the query [23073] and the response [11, 339, 561].
// That implementation pads the query to three tokens, but gives these four tokens the positions 0 1
// 2 3. Here there is no padding. The row must have the same bits alone and between other rows, so
// its neighbors do not shift its positions.
static void test_neighbors(void **state) {
    (void)state;
    static const struct setting s[] = {{"vocab_size", "23074"}, {"n_positions", "16"},
                                       {"n_embd", "32"},        {"n_layer", "2"},
                                       {"n_head", "2"},         {NULL, NULL}};
    static const int32_t ids[] = {9, 8, 7, 6, 5, 4, 23073, 11, 339, 561, 1, 2};
    static const int32_t offset[] = {0, 6, 10, 12}, prompt[] = {3, 1, 1};
    static const int32_t alone_offset[] = {0, 4}, alone_prompt[] = {1};
    const rlhf_batch all = {sizeof(rlhf_batch), 3, 12, 0, ids, offset, prompt, NULL, NULL};
    const rlhf_batch alone = {sizeof(rlhf_batch), 1,    4,   0, ids + 6, alone_offset,
                              alone_prompt,       NULL, NULL};
    const rlhf_model_open o = open_args(&backend, RLHF_F32, 0);
    struct model m = model_open("gpt2", s, &o);
    float a[12], b[4];
    model_fill(&m, 0.3);
    logp_of(&m, &all, a);
    logp_of(&m, &alone, b);
    assert_memory_equal(a + 6, b, sizeof b);
    for (int i = 0; i < 3; i++)
        assert_true(a[i] >= 0 && a[i] <= 0); // prompt entries are 0
    for (int i = 7; i < 10; i++)
        assert_true(a[i] < -0.1f);
    model_close(&m);
}

// ---- microbatches ----

// Returns the gradients of the rollout's rows, computed in batches of `step` rows. All tensors are
// concatenated.
static float *gradients(struct model *m, const struct rollout *r, uint32_t step) {
    rlhf_param p = {.size = sizeof p};
    float *all = test_malloc((uint64_t)m->info.n_params * sizeof *all), *to = all;
    model_zero_grad(m);
    for (uint32_t first = 0; first < ROLL_ROWS; first += step) {
        struct rollout_batch b = rollout_batch(
            r, first, first + step > ROLL_ROWS ? ROLL_ROWS - first : step, m->info.n_vocab);
        float *d = test_malloc(b.b.total * sizeof *d);
        const rlhf_forward f = {
            .size = sizeof f, .heads = RLHF_HEAD_LOGP | RLHF_HEAD_VALUE, .train = 1};
        const rlhf_heads out = {.size = sizeof out};
        const rlhf_heads g = {.size = sizeof g, .logp = d, .value = d};
        for (uint32_t t = 0; t < b.b.total; t++)
            d[t] = (float)(b.b.ids[t] % 5) / 4 - 0.3f;
        must(m, m->ops->forward(m->self, &b.b, &f, &out));
        must(m, m->ops->backward(m->self, &b.b, &f, &g));
        test_free(d);
        rollout_batch_free(&b);
    }
    for (uint32_t i = 0; m->ops->param(m->self, i, &p) == RLHF_OK; i++, to += param_count(&p)) {
        float *g = device_read(m->c, p.grad, param_count(&p));
        memcpy(to, g, param_count(&p) * sizeof *g);
        test_free(g);
    }
    return all;
}

static double distance(const float *a, const float *b, uint64_t n) {
    double diff = 0, len = 0;
    for (uint64_t i = 0; i < n; i++) {
        diff += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        len += (double)a[i] * (double)a[i];
    }
    assert_true(len > 0);
    return sqrt(diff / len);
}

static void test_microbatches(void **state) {
    (void)state;
    rlhf_model_open o = open_args(&backend, RLHF_F32, 1);
    o.value_kind = RLHF_VALUE_MLP;
    struct model m = model_open("gpt2", tiny_gpt2, &o);
    struct rollout *r = test_malloc(sizeof *r);
    const uint64_t n = (uint64_t)m.info.n_params;
    rollout_init(r, 61, 12, 12);
    for (int32_t i = 0; i < ROLL_ROWS; i++)
        for (int32_t t = r->prompt_len[i]; t < r->len[i]; t++)
            r->ids[i][t] = (7 * i + 3 * t) % 61;
    model_fill(&m, 0.3);
    float *one = gradients(&m, r, ROLL_ROWS);
    for (uint32_t step = 1; step < ROLL_ROWS; step += 3) {
        float *split = gradients(&m, r, step);
        assert_true(distance(one, split, n) < 1e-6);
        test_free(split);
    }
    float *again = gradients(&m, r, ROLL_ROWS); // buffers hold other batches now: still the same
    assert_memory_equal(one, again, n * sizeof *one);
    test_free(one);
    test_free(again);
    test_free(r);
    model_close(&m);
}

// bf16 activations agree with f32 to eight bits.
static void test_bf16_near_f32(void **state) {
    (void)state;
    float logp[2][VEC_TOTAL];
    for (int i = 0; i < 2; i++) {
        const rlhf_model_open o = open_args(&backend, i ? RLHF_BF16 : RLHF_F32, 1);
        struct model m = model_open("gpt2", tiny_gpt2, &o);
        model_fill(&m, 0.3);
        logp_of(&m, &vec_batch, logp[i]);
        model_close(&m);
    }
    assert_true(memcmp(logp[0], logp[1], sizeof logp[0]) != 0);
    assert_tensor_close(logp[1], logp[0], VEC_TOTAL, 0.02, 0, "bf16 log-probs");
}

// ---- parameters ----

static void check_params(struct model *m, int32_t trainable) {
    rlhf_param p = {.size = sizeof p}, q = {.size = sizeof q};
    int64_t total = 0;
    uint32_t n = 0;
    for (; m->ops->param(m->self, n, &p) == RLHF_OK; n++) {
        total += (int64_t)param_count(&p);
        assert_non_null(p.value);
        assert_int_equal(p.grad != NULL, trainable);
        if (trainable) {
            uint64_t at = (uint64_t)((uintptr_t)p.grad - (uintptr_t)m->info.grad_base);
            assert_true(at + 4 * param_count(&p) <= m->info.grad_bytes);
        }
        for (uint32_t k = 0; k < n; k++) {
            assert_int_equal(m->ops->param(m->self, k, &q), RLHF_OK);
            assert_string_not_equal(p.name, q.name);
        }
        assert_int_equal(p.ndim == 2, (p.flags & RLHF_PARAM_DECAY) != 0);
        // c_attn, c_fc and both c_proj are stored as in Conv1D, everything else as in
        // torch.nn.Linear.
        assert_int_equal(strstr(p.name, ".c_") && p.ndim == 2, (p.flags & RLHF_PARAM_IN_OUT) != 0);
        assert_int_equal(strstr(p.name, "v_head.") != NULL, p.group == RLHF_PARAM_VALUE);
    }
    assert_int_equal(m->info.grad_base != NULL, trainable);
    assert_int_equal(m->info.grad_bytes != 0, trainable);
    assert_int_equal(n, m->info.n_tensors);
    assert_int_equal(total, m->info.n_params);
    assert_int_equal(m->ops->param(m->self, n, &p), RLHF_E_INVALID);
}

static void test_params(void **state) {
    (void)state;
    static const struct setting untied[] = {
        {"vocab_size", "61"},         {"n_embd", "32"}, {"n_layer", "1"}, {"n_head", "2"},
        {"tie_word_embeddings", "0"}, {NULL, NULL}};
    for (int32_t trainable = 0; trainable < 2; trainable++) {
        rlhf_model_open o = open_args(&backend, RLHF_F32, trainable);
        o.value_kind = RLHF_VALUE_MLP;
        struct model m = model_open("gpt2", untied, &o);
        check_params(&m, trainable);
        model_find(&m, "lm_head.weight");
        assert_int_equal(m.info.n_ctx, 1024);
        model_close(&m);
        o.n_labels = 3; // a classifier's checkpoint lacks an LM head, and so does the model
        m = model_open("gpt2", untied, &o);
        check_params(&m, trainable);
        model_find(&m, "score.weight");
        rlhf_param p = {.size = sizeof p};
        for (uint32_t i = 0; m.ops->param(m.self, i, &p) == RLHF_OK; i++)
            assert_string_not_equal(p.name, "lm_head.weight");
        assert_false(m.info.heads & (RLHF_HEAD_LOGP | RLHF_HEAD_KL));
        assert_false(m.info.caps & (RLHF_CAP_GENERATE | RLHF_CAP_SUPPORT | RLHF_CAP_DIVERGENCE));
        rlhf_gen *g = NULL;
        assert_int_equal(m.ops->gen_open(m.self, 1, 8, &g), RLHF_E_UNSUPPORTED);
        assert_non_null(strstr(host_failure(), "without an LM head"));
        model_close(&m);
    }
    rlhf_model_open o = open_args(&backend, RLHF_F32, 1);
    o.n_labels = 2;
    struct model m = model_open("distilbert", tiny_gpt2, &o);
    check_params(&m, 1);
    model_close(&m);
}

// The standard deviation of a new score head is the architecture's, or the one for reward models.
static void test_score_init(void **state) {
    (void)state;
    static const double want[] = {0.02, 0.17407765595569785}; // 1 / sqrt(32 + 1)
    rlhf_model_open o = open_args(&backend, RLHF_F32, 1);
    rlhf_param p = {.size = sizeof p};
    o.n_labels = 1;
    for (int32_t init = RLHF_SCORE_INIT_DEFAULT; init <= RLHF_SCORE_INIT_REWARD; init++) {
        o.score_init = init;
        struct model m = model_open("gpt2", tiny_gpt2, &o);
        must(&m, m.ops->param(m.self, model_find(&m, "score.weight"), &p));
        assert_int_equal(p.init, RLHF_INIT_NORMAL);
        assert_true(fabs(p.init_std - want[init]) < 1e-15);
        model_close(&m);
    }
}

// An untied head has a separate gradient. The embedding keeps only the gradient that flows through
// it.
static void test_untied(void **state) {
    (void)state;
    static const struct setting untied[] = {
        {"vocab_size", "61"}, {"n_positions", "24"},        {"n_embd", "32"}, {"n_layer", "1"},
        {"n_head", "2"},      {"tie_word_embeddings", "0"}, {NULL, NULL}};
    const rlhf_model_open o = open_args(&backend, RLHF_F32, 1);
    struct model m = model_open("gpt2", untied, &o);
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_LOGP, .train = 1};
    float d[VEC_TOTAL];
    const rlhf_heads none = {.size = sizeof none}, g = {.size = sizeof g, .logp = d};
    rlhf_param head = {.size = sizeof head}, wte = {.size = sizeof wte};
    for (uint32_t i = 0; i < VEC_TOTAL; i++)
        d[i] = 1;
    model_fill(&m, 0.3);
    must(&m, m.ops->forward(m.self, &vec_batch, &f, &none));
    must(&m, m.ops->backward(m.self, &vec_batch, &f, &g));
    must(&m, m.ops->param(m.self, model_find(&m, "lm_head.weight"), &head));
    must(&m, m.ops->param(m.self, model_find(&m, "transformer.wte.weight"), &wte));
    float *a = device_read(m.c, head.grad, 61 * 32), *b = device_read(m.c, wte.grad, 61 * 32);
    int head_moves = 0, unused_stays = 1; // id 13 is in no row
    for (int i = 0; i < 32; i++) {
        if (fabsf(a[13 * 32 + i]) > 0) head_moves = 1;
        if (fabsf(b[13 * 32 + i]) > 0) unused_stays = 0;
    }
    assert_true(head_moves && unused_stays);
    test_free(a);
    test_free(b);
    model_close(&m);
}

// The range of gradients contains all gradients. The gaps are 0, and zeroing the range zeroes each
// gradient.
static void test_gradient_range(void **state) {
    (void)state;
    const rlhf_model_open o = open_args(&backend, RLHF_F32, 1);
    struct model m = model_open("gpt2", tiny_gpt2, &o);
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_LOGP, .train = 1};
    float d[VEC_TOTAL], logp[VEC_TOTAL];
    for (int i = 0; i < VEC_TOTAL; i++)
        d[i] = 1;
    const rlhf_heads out = {.size = sizeof out, .logp = logp}, in = {.size = sizeof in, .logp = d};
    model_fill(&m, 0.3);
    must(&m, m.ops->forward(m.self, &vec_batch, &f, &out));
    must(&m, m.ops->backward(m.self, &vec_batch, &f, &in));
    double all = 0, each = 0, part;
    rlhf_param p = {.size = sizeof p};
    for (uint32_t i = 0; m.ops->param(m.self, i, &p) == RLHF_OK; i++) {
        must(&m, m.c->sumsq(m.c->ctx, p.grad, param_count(&p), &part));
        each += part;
    }
    must(&m, m.c->sumsq(m.c->ctx, m.info.grad_base, m.info.grad_bytes / 4, &all));
    assert_true(each > 0 && all > each * (1 - 1e-6) && all < each * (1 + 1e-6));
    must(&m, m.c->zero(m.c->ctx, m.info.grad_base, m.info.grad_bytes));
    for (uint32_t i = 0; m.ops->param(m.self, i, &p) == RLHF_OK; i++) {
        must(&m, m.c->sumsq(m.c->ctx, p.grad, param_count(&p), &part));
        assert_true(part == 0);
    }
    model_close(&m);
}

// Without an adapter, the base is the model itself.
static void test_base(void **state) {
    (void)state;
    const rlhf_model_open o = open_args(&backend, RLHF_F32, 1);
    struct model m = model_open("gpt2", tiny_gpt2, &o);
    rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_LOGP};
    float a[VEC_TOTAL], b[VEC_TOTAL];
    rlhf_heads out = {.size = sizeof out, .logp = a};
    model_fill(&m, 0.3);
    must(&m, m.ops->forward(m.self, &vec_batch, &f, &out));
    f.flags = RLHF_FORWARD_BASE;
    out.logp = b;
    must(&m, m.ops->forward(m.self, &vec_batch, &f, &out));
    assert_memory_equal(a, b, sizeof a);
    f.train = 1;
    assert_refused(m.ops->forward(m.self, &vec_batch, &f, &out), RLHF_E_INVALID,
                   "not for training");
    f.train = 0;
    f.flags = 2 * RLHF_FORWARD_BASE; // unknown
    assert_refused(m.ops->forward(m.self, &vec_batch, &f, &out), RLHF_E_UNSUPPORTED, "flags 0x2");
    model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_neighbors),      cmocka_unit_test(test_microbatches),
        cmocka_unit_test(test_bf16_near_f32),  cmocka_unit_test(test_params),
        cmocka_unit_test(test_untied),         cmocka_unit_test(test_score_init),
        cmocka_unit_test(test_gradient_range), cmocka_unit_test(test_base)};
    return on_backends("contract", ON_REFERENCE | ON_CPU, 1, tests, sizeof tests / sizeof *tests);
}
