// tests/models/test_prefix.c: rows that share a prefix give the same bits in every head as complete
// rows, and the same gradients up to the order of sums. Batches that break the rules of prefixes
// are refused.
#include "decoders.h"
#include "families.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shape {
    const char *plugin;
    const struct setting *settings;
    const struct family *families;
    int32_t vocab, reserved;
};
static const struct shape tiny = {"gpt2", tiny_gpt2, tiny_families, TINY_VOCAB, 0};
static const struct shape wider = {"gpt2", wider_gpt2, wider_families, WIDER_VOCAB, 0};
static const struct shape tiny_decoder = {"qwen3", tied_qwen3, tiny_families, TINY_VOCAB, 0};
static const struct shape states[] = {
    {"lfm2", tiny_lfm2, tiny_families, TINY_VOCAB, 0},
    {"qwen3_5_text", biased_qwen3_5, tiny_families, TINY_VOCAB, 0},
    {"lfm2", wider_lfm2, wider_families, WIDER_VOCAB, 0},
    {"qwen3_5_text", wider_qwen3_5, wider_families, WIDER_VOCAB, 0}};
static const struct shape wider_decoder = {"qwen3", wider_qwen3, wider_families, WIDER_VOCAB, 0};

enum {
    HEADS =
        RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY | RLHF_HEAD_KL | RLHF_HEAD_VALUE | RLHF_HEAD_TOKEN_SCORE,
    N_HEADS = 5 // per-token arrays of HEADS
};

// Policy and reference over one set of rows.
struct trial {
    struct backend backend;
    struct model m, ref;
    struct families rows;
    uint32_t *support; // of the response tokens, in both layouts; NULL: the whole vocabulary
};

// Makes supports that have a third of the ids and the target.
static uint32_t *make_support(const rlhf_batch *b, int32_t vocab) {
    const uint32_t words = rlhf_support_words(vocab);
    uint32_t *bits = test_calloc((uint64_t)b->total * words, sizeof *bits), *to = bits;
    for (uint32_t i = 0; i < b->n; i++)
        for (int32_t t = b->offset[i] + b->prompt_len[i]; t < b->offset[i + 1]; t++, to += words)
            for (int32_t v = 0; v < vocab; v++)
                if (v == b->ids[t] || (v * 7 + t) % 3 == 0) to[v / 32] |= 1u << v % 32;
    return bits;
}

static void trial_open(struct trial *t, const struct shape *s, const char *backend, int32_t dtype,
                       uint32_t threads, int32_t with_support) {
    const uint32_t guard = strcmp(backend, "reference") == 0; // guard: device memory is protected
    t->backend = backend_open(backend, threads, guard);
    assert_non_null(t->backend.compute);
    rlhf_model_open o = open_args(&t->backend, dtype, 1);
    o.value_kind = RLHF_VALUE_MLP;
    o.n_labels = 1;
    t->m = model_open(s->plugin, s->settings, &o);
    model_fill(&t->m, 0.3);
    o = open_args(&t->backend, dtype, 0);
    t->ref = model_open(s->plugin, s->settings, &o);
    model_fill(&t->ref, 0.25);
    t->rows = families_make(s->families, N_FAMILIES, s->vocab);
    t->support = with_support ? make_support(&t->rows.full, s->vocab) : NULL;
}

static void trial_close(struct trial *t) {
    families_free(&t->rows);
    test_free(t->support);
    model_close(&t->ref);
    model_close(&t->m);
    backend_close(&t->backend);
}

static rlhf_heads heads_at(float *x, uint32_t total) {
    const rlhf_heads h = {.size = sizeof h,
                          .logp = x,
                          .entropy = x + total,
                          .kl = x + 2 * (uint64_t)total,
                          .value = x + 3 * (uint64_t)total,
                          .token_score = x + 4 * (uint64_t)total};
    return h;
}

static float *hidden_of(struct model *m, const rlhf_batch *b) {
    float *x = test_malloc((uint64_t)b->total * (uint64_t)m->info.d_model * sizeof *x);
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_HIDDEN};
    const rlhf_heads h = {.size = sizeof h, .hidden = x};
    must(m, m->ops->forward(m->self, b, &f, &h));
    return x;
}

// Computes every head of HEADS, [N_HEADS, total]. If `d` is not NULL, runs the backward pass, too.
static float *run(struct trial *t, const rlhf_batch *b, float *d) {
    float *x = test_malloc(N_HEADS * (uint64_t)b->total * sizeof *x);
    float *hidden = hidden_of(&t->ref, b);
    const rlhf_forward f = {.size = sizeof f,
                            .heads = HEADS,
                            .train = d != NULL,
                            .kl_self = t->ref.self,
                            .kl_hidden = hidden,
                            .support = t->support};
    const rlhf_heads out = heads_at(x, b->total);
    must(&t->m, t->m.ops->forward(t->m.self, b, &f, &out));
    if (d) {
        const rlhf_heads grad = heads_at(d, b->total);
        must(&t->m, t->m.ops->backward(t->m.self, b, &f, &grad));
    }
    test_free(hidden);
    return x;
}

// ---- forward ----

static void same_heads(struct trial *t) {
    const struct families *k = &t->rows;
    float *full = run(t, &k->full, NULL), *compact = run(t, &k->compact, NULL);
    uint64_t scored = 0;
    for (uint32_t h = 0; h < N_HEADS; h++)
        for (uint32_t i = 0; i < k->compact.n; i++)
            for (int32_t j = k->c_offset[i]; j < k->c_offset[i + 1]; j++) {
                const float a = compact[(uint64_t)h * k->compact.total + (uint64_t)j];
                const float b = full[(uint64_t)h * k->full.total + (uint64_t)k->at[j]];
                if (memcmp(&a, &b, sizeof a) != 0)
                    fail_msg("head %u, row %u, token %d: %.9g with a prefix, %.9g without", h, i, j,
                             (double)a, (double)b);
                scored += fabsf(a) > 0;
            }
    assert_true(scored > 100);
    test_free(full);
    test_free(compact);
}

static void same_hidden(struct trial *t) {
    const struct families *k = &t->rows;
    const uint64_t row = (uint64_t)t->m.info.d_model * sizeof(float);
    float *full = hidden_of(&t->m, &k->full), *compact = hidden_of(&t->m, &k->compact);
    for (uint32_t j = 0; j < k->compact.total; j++)
        assert_memory_equal((char *)compact + j * row, (char *)full + (uint64_t)k->at[j] * row,
                            row);
    test_free(full);
    test_free(compact);
}

static void check_forward(const struct shape *s, const char *backend, int32_t dtype,
                          uint32_t threads) {
    for (int32_t with_support = 0; with_support < 2; with_support++) {
        struct trial t;
        trial_open(&t, s, backend, dtype, threads, with_support);
        same_heads(&t);
        same_hidden(&t);
        trial_close(&t);
    }
}

static int cpu_fits(void) {
    struct backend b = backend_open("cpu", 1, 0);
    const int fits = plugin_fits(b.compute, "lfm2");
    backend_close(&b);
    return fits;
}

static void test_forward_reference(void **state) {
    (void)state;
    check_forward(&tiny, "reference", RLHF_F32, 1);
    check_forward(&tiny, "reference", RLHF_BF16, 1);
    check_forward(&tiny_decoder, "reference", RLHF_F32, 1);
    check_forward(&tiny_decoder, "reference", RLHF_BF16, 1);
    for (size_t i = 0; i < 2; i++) {
        check_forward(&states[i], "reference", RLHF_F32, 1);
        check_forward(&states[i], "reference", RLHF_BF16, 1);
    }
}
static void test_forward_cpu(void **state) {
    (void)state;
    for (uint32_t threads = 1; threads < 3; threads++) {
        check_forward(&tiny, "cpu", RLHF_F32, threads);
        check_forward(&tiny, "cpu", RLHF_BF16, threads);
        check_forward(&tiny_decoder, "cpu", RLHF_F32, threads);
        check_forward(&tiny_decoder, "cpu", RLHF_BF16, threads);
        for (size_t i = 0; i < (backend_is_slow() ? 2 : 4) && cpu_fits(); i++) {
            check_forward(&states[i], "cpu", RLHF_F32, threads);
            check_forward(&states[i], "cpu", RLHF_BF16, threads);
        }
        if (backend_is_slow()) return;
        check_forward(&wider, "cpu", RLHF_F32, threads);
        check_forward(&wider, "cpu", RLHF_BF16, threads);
        check_forward(&wider_decoder, "cpu", RLHF_F32, threads);
        check_forward(&wider_decoder, "cpu", RLHF_BF16, threads);
    }
}

// ---- backward ----

// Returns all gradients, concatenated. The derivatives of a token depend only on its index in the
// full batch.
static float *gradients(struct trial *t, const rlhf_batch *b, const int32_t *at) {
    float *d = test_malloc(N_HEADS * (uint64_t)b->total * sizeof *d);
    float *all = test_malloc((uint64_t)t->m.info.n_params * sizeof *all), *to = all;
    rlhf_param p = {.size = sizeof p};
    for (uint64_t h = 0; h < N_HEADS; h++)
        for (uint64_t j = 0; j < b->total; j++) {
            const uint64_t e = at ? (uint64_t)at[j] : j;
            d[h * b->total + j] = (float)((int)((e * 7 + h * 5) % 11) - 3) / 8;
        }
    model_zero_grad(&t->m);
    test_free(run(t, b, d));
    test_free(d);
    for (uint32_t i = 0; t->m.ops->param(t->m.self, i, &p) == RLHF_OK; i++) {
        float *g = device_read(t->m.c, p.grad, param_count(&p));
        memcpy(to, g, param_count(&p) * sizeof *g);
        to += param_count(&p);
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

// Compares tensor by tensor, relative to the tensor's largest value plus a small share of the
// largest value of all tensors. The share is for gradients that are zero in theory, such as the
// gradient of a key bias.
static void same_gradients(struct trial *t, double bound) {
    const struct families *k = &t->rows;
    const uint64_t n = (uint64_t)t->m.info.n_params;
    float *full = gradients(t, &k->full, NULL);
    float *compact = gradients(t, &k->compact, k->at);
    float *again = gradients(t, &k->compact, k->at);
    const double far = distance(full, compact, n);
    const float *a = compact, *b = full;
    float top = 0;
    rlhf_param p = {.size = sizeof p};
    if (getenv("RLHF_TEST_VERBOSE")) print_message("gradients: %.3g apart\n", far);
    if (!(far <= bound)) fail_msg("gradients are %.3g apart, at most %.3g is allowed", far, bound);
    assert_memory_equal(compact, again, n * sizeof *again);
    for (uint64_t i = 0; i < n; i++)
        top = fmaxf(top, fabsf(full[i]));
    for (uint32_t i = 0; t->m.ops->param(t->m.self, i, &p) == RLHF_OK; i++) {
        assert_tensor_close(a, b, param_count(&p), 5 * bound, 1e-1 * bound * (double)top, p.name);
        a += param_count(&p);
        b += param_count(&p);
    }
    test_free(full);
    test_free(compact);
    test_free(again);
}

static void check_backward(const struct shape *s, const char *backend, int32_t dtype,
                           uint32_t threads, double bound) {
    for (int32_t with_support = 0; with_support < 2; with_support++) {
        struct trial t;
        trial_open(&t, s, backend, dtype, threads, with_support);
        same_gradients(&t, bound);
        trial_close(&t);
    }
}

static void test_backward_reference(void **state) {
    (void)state;
    check_backward(&tiny, "reference", RLHF_F32, 1, 1e-6);
    check_backward(&tiny, "reference", RLHF_BF16, 1, 1e-2);
    check_backward(&tiny_decoder, "reference", RLHF_F32, 1, 1e-6);
    check_backward(&tiny_decoder, "reference", RLHF_BF16, 1, 1e-2);
    for (size_t i = 0; i < 2; i++) {
        check_backward(&states[i], "reference", RLHF_F32, 1, 1e-6);
        check_backward(&states[i], "reference", RLHF_BF16, 1, 1e-2);
    }
}
static void test_backward_cpu(void **state) {
    (void)state;
    for (uint32_t threads = 1; threads < 3; threads++) {
        check_backward(&tiny, "cpu", RLHF_F32, threads, 1e-6);
        check_backward(&tiny_decoder, "cpu", RLHF_F32, threads, 1e-6);
        for (size_t i = 0; i < (backend_is_slow() ? 2 : 4) && cpu_fits(); i++) {
            // the derivatives of decays are sums whose parts nearly cancel
            check_backward(&states[i], "cpu", RLHF_F32, threads, i < 2 ? 1e-6 : 1e-5);
            check_backward(&states[i], "cpu", RLHF_BF16, threads, 1e-2);
        }
        if (backend_is_slow()) {
            check_backward(&tiny, "cpu", RLHF_BF16, threads, 1e-2);
            return;
        }
        check_backward(&wider, "cpu", RLHF_F32, threads, 1e-6);
        check_backward(&wider, "cpu", RLHF_BF16, threads, 1e-2);
        check_backward(&wider_decoder, "cpu", RLHF_F32, threads, 1e-6);
        check_backward(&wider_decoder, "cpu", RLHF_BF16, threads, 1e-2);
    }
}

// ---- refusals, each with a message ----

// Makes a prefix of 20 tokens, two rows that continue it, and one separate row. Each row has 2
// tokens, but row 1 has `longer` more tokens.
static rlhf_batch example(int32_t longer, int32_t offset[5], int32_t prompt[4], int32_t prefix[4]) {
    static const int32_t ids[40] = {0}, starts[] = {0, 20, 22, 24, 26};
    for (int32_t i = 0; i < 5; i++)
        offset[i] = starts[i] + (i > 1 ? longer : 0);
    for (int32_t i = 0; i < 4; i++) {
        prompt[i] = i ? 1 : 20;
        prefix[i] = i == 1 || i == 2 ? 0 : -1;
    }
    return (rlhf_batch){
        sizeof(rlhf_batch), 4, (uint32_t)offset[4], 0, ids, offset, prompt, prefix, NULL};
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        int32_t longer, prompt_0, row, to;
        const char *text;
    } cases[] = {{0, 20, 1, 1, "row 1: its prefix must be an earlier row or -1, not 1"},
                 {0, 20, 1, -2, "row 1: its prefix must be an earlier row or -1, not -2"},
                 {0, 20, 0, 0, "row 0: its prefix must be"},
                 {0, 20, 2, 1, "row 2: its prefix, row 1, has a prefix of its own"},
                 {0, 20, 1, -1, "row 2: the rows that share row 0 must follow it directly"},
                 {0, 19, 1, 0, "row 0: prompt_len 19 of a prefix of 20 tokens"},
                 {3, 20, 1, 0, "row 1: 25 tokens with its prefix do not fit the model's context"}};
    struct backend backend = backend_open("reference", 1, 0);
    const rlhf_model_open o = open_args(&backend, RLHF_F32, 0);
    struct model m = model_open("gpt2", tiny_gpt2, &o);
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_LOGP};
    const rlhf_heads h = {.size = sizeof h};
    int32_t offset[5], prompt[4], prefix[4];
    model_fill(&m, 0.3);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const rlhf_batch b = example(cases[i].longer, offset, prompt, prefix);
        prompt[0] = cases[i].prompt_0;
        prefix[cases[i].row] = cases[i].to;
        assert_refused(m.ops->forward(m.self, &b, &f, &h), RLHF_E_INVALID, cases[i].text);
    }
    const rlhf_batch b = example(2, offset, prompt, prefix); // 24 tokens: the whole context
    must(&m, m.ops->forward(m.self, &b, &f, &h));
    model_close(&m);
    backend_close(&backend);
}

// Three things are refused: heads that do not support prefixes, a backward pass for a batch other
// than that of the forward pass, and prefixes in a model that does not support them.
static void test_refused_heads(void **state) {
    (void)state;
    struct backend backend = backend_open("reference", 1, 0);
    rlhf_model_open o = open_args(&backend, RLHF_F32, 1);
    rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_LOGP, .train = 1};
    const rlhf_heads h = {.size = sizeof h};
    int32_t offset[5], prompt[4], prefix[4];
    rlhf_batch b = example(0, offset, prompt, prefix);
    o.n_labels = 1;
    struct model m = model_open("gpt2", tiny_gpt2, &o);
    assert_true(m.info.caps & RLHF_CAP_PREFIX);
    assert_true(m.info.heads & RLHF_HEAD_TOKEN_SCORE);
    model_fill(&m, 0.3);
    must(&m, m.ops->forward(m.self, &b, &f, &h));
    b.prefix = NULL;
    assert_refused(m.ops->backward(m.self, &b, &f, &h), RLHF_E_INVALID, "no forward");
    b.prefix = prefix;
    must(&m, m.ops->backward(m.self, &b, &f, &h));
    f.heads = RLHF_HEAD_SCORE;
    assert_refused(m.ops->forward(m.self, &b, &f, &h), RLHF_E_UNSUPPORTED, "pooled scores");
    f.heads = 2 * RLHF_HEAD_TOKEN_SCORE;
    assert_refused(m.ops->forward(m.self, &b, &f, &h), RLHF_E_UNSUPPORTED, "heads");
    model_close(&m);
    m = model_open("distilbert", tiny_gpt2, &o);
    assert_int_equal(m.info.heads & RLHF_HEAD_TOKEN_SCORE, 0);
    assert_int_equal(m.info.caps & (RLHF_CAP_PREFIX | RLHF_CAP_TURNS), 0);
    f.heads = RLHF_HEAD_HIDDEN;
    assert_refused(m.ops->forward(m.self, &b, &f, &h), RLHF_E_UNSUPPORTED, "encoder");
    model_close(&m);
    o.n_labels = 2;
    m = model_open("gpt2", tiny_gpt2, &o);
    assert_int_equal(m.info.heads & RLHF_HEAD_TOKEN_SCORE, 0);
    model_close(&m);
    backend_close(&backend);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forward_reference),
                                       cmocka_unit_test(test_forward_cpu),
                                       cmocka_unit_test(test_backward_reference),
                                       cmocka_unit_test(test_backward_cpu),
                                       cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_refused_heads)};
    return cmocka_run_group_tests_name("shared prefixes", tests, NULL, NULL);
}
