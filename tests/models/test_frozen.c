// tests/models/test_frozen.c: frozen models. A packed weight exists only once, and results have the
// same bits as without freezing. The last group of tests checks that released values are never
// accessed: it uses a backend whose buffers are unreadable outside its own functions.
#include "decoders.h"
#include "on_backends.h"
#include "vectors.h"

#include <stdio.h>
#include <string.h>

static const rlhf_batch batch = {sizeof(rlhf_batch), VEC_ROWS,       VEC_TOTAL, 0,   vec_ids,
                                 vec_offset,         vec_prompt_len, NULL,      NULL};

static const struct setting untied_gpt2[] = {{"vocab_size", "61"},
                                             {"n_positions", "24"},
                                             {"n_embd", "32"},
                                             {"n_layer", "2"},
                                             {"n_head", "2"},
                                             {"n_inner", "64"},
                                             {"tie_word_embeddings", "0"},
                                             {NULL, NULL}};

static const struct setting tiny_distilbert[] = {
    {"vocab_size", "61"}, {"max_position_embeddings", "24"},
    {"dim", "32"},        {"n_layers", "2"},
    {"n_heads", "2"},     {"hidden_dim", "64"},
    {NULL, NULL}};

static const struct kind {
    const char *plugin;
    const struct setting *settings;
    int32_t n_labels, value_kind;
} kinds[] = {
    {"gpt2", tiny_gpt2, 0, RLHF_VALUE_NONE},
    {"gpt2", tiny_gpt2, 1, RLHF_VALUE_MLP},
    {"gpt2", untied_gpt2, 0, RLHF_VALUE_LINEAR},
    {"gpt2", untied_gpt2, VEC_LABELS, RLHF_VALUE_NONE},
    {"distilbert", tiny_distilbert, VEC_LABELS, RLHF_VALUE_NONE},
    {"qwen2", tiny_qwen2, 1, RLHF_VALUE_MLP},
    {"qwen3", tiny_qwen3, 0, RLHF_VALUE_LINEAR},
    {"lfm2", biased_lfm2, 0, RLHF_VALUE_NONE},
    {"qwen3_5_text", tiny_qwen3_5, 1, RLHF_VALUE_LINEAR},
    {"qwen3", tiny_qwen3, VEC_LABELS, RLHF_VALUE_NONE},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static struct model open_kind(const struct kind *k, int32_t dtype, int32_t frozen) {
    rlhf_model_open o = open_args(&backend, dtype, 0);
    o.n_labels = k->n_labels;
    o.value_kind = k->value_kind;
    o.frozen = frozen;
    return model_open(k->plugin, k->settings, &o);
}

// Every head that does not need a reference.
struct answers {
    float logp[VEC_TOTAL], entropy[VEC_TOTAL], kl[VEC_TOTAL], value[VEC_TOTAL];
    float token_score[VEC_TOTAL], score[VEC_ROWS * VEC_LABELS], hidden[VEC_TOTAL * 32];
};

static void ask(struct model *m, struct answers *a) {
    const rlhf_heads h = {.size = sizeof h,
                          .logp = a->logp,
                          .entropy = a->entropy,
                          .value = a->value,
                          .score = a->score,
                          .hidden = a->hidden,
                          .token_score = a->token_score};
    const rlhf_forward f = {.size = sizeof f, .heads = m->info.heads & ~(uint32_t)RLHF_HEAD_KL};
    memset(a, 0, sizeof *a);
    must(m, m->ops->forward(m->self, &batch, &f, &h));
}

static void same_bits(void **state) {
    (void)state;
    struct answers *a = test_malloc(2 * sizeof *a);
    for (int i = 0; i < 2 * N_KINDS; i++) {
        const struct kind *k = &kinds[i / 2];
        if (!plugin_fits(backend.compute, k->plugin)) continue;
        int32_t drawn[2][3] = {{0}};
        for (int32_t frozen = 0; frozen < 2; frozen++) {
            struct model m = open_kind(k, i & 1 ? RLHF_BF16 : RLHF_F32, frozen);
            model_fill(&m, 0.3);
            ask(&m, &a[frozen]);
            float logp[3];
            if (m.info.caps & RLHF_CAP_GENERATE) draw_three(&m, drawn[frozen], logp);
            model_close(&m);
        }
        assert_memory_equal(&a[0], &a[1], sizeof *a);
        assert_memory_equal(drawn[0], drawn[1], sizeof drawn[0]);
    }
    test_free(a);
}

// The reference of a full-distribution KL may be frozen.
static void same_kl(void **state) {
    (void)state;
    struct answers *a = test_malloc(2 * sizeof *a);
    for (int i = 0; i < 4; i++) {
        const struct kind *k = &kinds[i & 2];
        const int32_t dtype = i & 1 ? RLHF_BF16 : RLHF_F32;
        struct model policy = open_kind(k, dtype, 0);
        model_fill(&policy, 0.2);
        for (int32_t frozen = 0; frozen < 2; frozen++) {
            struct model ref = open_kind(k, dtype, frozen);
            model_fill(&ref, 0.3);
            ask(&ref, &a[frozen]);
            const rlhf_forward f = {.size = sizeof f,
                                    .heads = RLHF_HEAD_LOGP | RLHF_HEAD_KL,
                                    .kl_self = ref.self,
                                    .kl_hidden = a[frozen].hidden};
            const rlhf_heads h = {.size = sizeof h, .kl = a[frozen].kl};
            must(&policy, policy.ops->forward(policy.self, &batch, &f, &h));
            model_close(&ref);
        }
        assert_memory_equal(&a[0], &a[1], sizeof *a);
        assert_true(a[0].kl[VEC_TOTAL - 1] > 0);
        model_close(&policy);
    }
    test_free(a);
}

static int ends_with(const char *s, const char *end) {
    const size_t n = strlen(s), m = strlen(end);
    return n >= m && !strcmp(s + n - m, end);
}

// Returns true for values that the model does not keep: those of matrices, except lookup tables and
// heads that may never be packed.
static int goes(const struct kind *k, const rlhf_param *p) {
    if (p->ndim != 2) return 0;
    if (ends_with(p->name, "lm_head.weight")) return !k->n_labels;
    return !(p->flags & RLHF_PARAM_EMBED);
}

// The values of at most one matrix are in memory: the pieces of one that is fused (q, k and v, for
// example), or a whole parameter.
static void one_matrix_at_a_time(void **state) {
    (void)state;
    for (int i = 0; i < N_KINDS; i++) {
        if (!plugin_fits(backend.compute, kinds[i].plugin)) continue;
        struct model m = open_kind(&kinds[i], RLHF_BF16, 1);
        const uint64_t d = (uint64_t)m.info.d_model, before = m.c->bytes_in_use(m.c->ctx);
        uint64_t held = 0, all = 0, most = 0;
        uint32_t pieces = 0;
        rlhf_param p = {.size = sizeof p};
        for (uint32_t k = 0; m.ops->param(m.self, k, &p) == RLHF_OK; k++) {
            rlhf_dev to;
            assert_null(p.grad);
            assert_int_equal(p.value == NULL, goes(&kinds[i], &p));
            if (p.value) continue;
            all += param_count(&p) * sizeof(float);
            must(&m, m.ops->fill_begin(m.self, k, &to));
            const uint64_t in_use = m.c->bytes_in_use(m.c->ctx);
            held += param_count(&p) * sizeof(float);
            assert_true(++pieces <= 4 && in_use >= before + held);
            if (in_use - before > most) most = in_use - before;
            must(&m, m.ops->fill_end(m.self, k));
            if (m.c->bytes_in_use(m.c->ctx) < in_use) held = pieces = 0;
        }
        assert_true(all >= 2 * 8 * d * d * sizeof(float)); // the layers' matrices
        // The largest matrix is the LM head, or has 96 x d (q, k and v) or 128 x d (the MLP's two).
        // The program rounds an allocation up by less than 4 KiB (16 KiB on guarded pages).
        assert_true(most <= 128 * d * sizeof(float) + (16 << 10));
        must(&m, m.ops->refresh(m.self));
        // An untied LM head is packed at once instead of later: at most 16 bytes per element.
        const int32_t untied = kinds[i].settings == untied_gpt2 ||
                               kinds[i].settings == tiny_qwen3 || kinds[i].settings == biased_lfm2;
        const uint64_t head = untied && !kinds[i].n_labels ? 61 * d : 0;
        assert_true(m.c->bytes_in_use(m.c->ctx) <= before + head * 16);
        model_close(&m);
    }
}

static void not_frozen_keeps_all(void **state) {
    (void)state;
    struct model m = open_kind(&kinds[1], RLHF_F32, 0);
    rlhf_param p = {.size = sizeof p};
    model_fill(&m, 0.3);
    must(&m, m.ops->refresh(m.self));
    for (uint32_t k = 0; m.ops->param(m.self, k, &p) == RLHF_OK; k++)
        assert_non_null(p.value);
    model_close(&m);
}

static void refusals_of_filling(void **state) {
    (void)state;
    struct model m = open_kind(&kinds[0], RLHF_F32, 1);
    const uint32_t matrix = model_find(&m, "transformer.h.0.attn.c_attn.weight");
    const uint32_t norm = model_find(&m, "transformer.h.0.ln_1.weight");
    rlhf_dev to;
    assert_refused(m.ops->refresh(m.self), RLHF_E_INVALID, "c_attn.weight has not been filled");
    assert_refused(m.ops->fill_begin(m.self, 1000, &to), RLHF_E_INVALID, "no parameter 1000");
    assert_refused(m.ops->fill_begin(m.self, norm, &to), RLHF_E_INVALID, "takes no values here");
    assert_refused(m.ops->fill_end(m.self, matrix), RLHF_E_INVALID, "did not come before");
    must(&m, m.ops->fill_begin(m.self, matrix, &to));
    assert_refused(m.ops->fill_begin(m.self, matrix, &to), RLHF_E_INVALID, "is being filled");
    must(&m, m.ops->fill_end(m.self, matrix));
    assert_refused(m.ops->fill_begin(m.self, matrix, &to), RLHF_E_INVALID, "was filled before");
    model_close(&m); // with most parameters not filled
}

static void refusals(void **state) {
    (void)state;
    struct model m = open_kind(&kinds[0], RLHF_F32, 1);
    model_fill(&m, 0.3);
    assert_int_equal(m.ops->refresh(m.self), RLHF_E_INVALID);
    assert_non_null(strstr(host_failure(), "frozen"));
    struct answers *a = test_malloc(sizeof *a);
    ask(&m, a); // the model still works
    test_free(a);
    model_close(&m);
    rlhf_model_open o = open_args(&backend, RLHF_F32, 1);
    o.frozen = 1;
    assert_int_equal(model_create("gpt2", tiny_gpt2, &m), RLHF_OK);
    assert_int_equal(m.ops->open(m.self, &o), RLHF_E_INVALID);
    assert_string_equal(host_failure(), "open: a frozen model cannot be trained");
    model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits),
                                       cmocka_unit_test(same_kl),
                                       cmocka_unit_test(one_matrix_at_a_time),
                                       cmocka_unit_test(not_frozen_keeps_all),
                                       cmocka_unit_test(refusals_of_filling),
                                       cmocka_unit_test(refusals)};
    return on_backends("frozen", ON_ALL, 1, tests, sizeof tests / sizeof *tests);
}
