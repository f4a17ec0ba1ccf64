// tests/models/test_recompute.c: one model stores only the inputs of its layers, another stores all
// activations. Heads and gradients have the same bits, and the first model uses less memory.
#include "decoders.h"
#include "families.h"
#include "on_backends.h"
#include "vectors.h"

#include <stdlib.h>
#include <string.h>

static const struct kind {
    const char *plugin;
    const struct setting *settings;
    uint32_t heads;
    int32_t n_labels, value_kind, reserved;
} kinds[] = {
    {"gpt2", tiny_gpt2, RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY | RLHF_HEAD_VALUE, 0, RLHF_VALUE_MLP, 0},
    {"qwen2", tiny_qwen2, RLHF_HEAD_LOGP | RLHF_HEAD_TOKEN_SCORE, 1, RLHF_VALUE_NONE, 0},
    {"qwen3", tiny_qwen3, RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY, 0, RLHF_VALUE_NONE, 0},
    {"gemma2", tiny_gemma2, RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY, 0, RLHF_VALUE_NONE, 0},
    {"gemma3_text", tiny_gemma3, RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY, 0, RLHF_VALUE_NONE, 0},
    {"smollm3", tiny_smollm3, RLHF_HEAD_LOGP, 0, RLHF_VALUE_NONE, 0},
    {"olmo2", tiny_olmo2, RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY, 0, RLHF_VALUE_NONE, 0},
    {"olmo3", tiny_olmo3, RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY, 0, RLHF_VALUE_NONE, 0},
    {"lfm2", tiny_lfm2, RLHF_HEAD_LOGP | RLHF_HEAD_TOKEN_SCORE, 1, RLHF_VALUE_NONE, 0},
    {"lfm2", biased_lfm2, RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY, 0, RLHF_VALUE_NONE, 0},
    {"qwen3_5_text", tiny_qwen3_5, RLHF_HEAD_LOGP | RLHF_HEAD_VALUE, 0, RLHF_VALUE_MLP, 0},
    {"qwen3_5_text", biased_qwen3_5, RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY, 0, RLHF_VALUE_NONE, 0},
    {"granitemoehybrid", tiny_hybrid, RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY, 0, RLHF_VALUE_NONE, 0},
    {"distilbert", tiny_post_norm, RLHF_HEAD_SCORE, VEC_LABELS, RLHF_VALUE_NONE, 0},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static struct model open_kind(const struct kind *k, int32_t dtype, int32_t recompute) {
    rlhf_model_open o = open_args(&backend, dtype, 1);
    o.n_labels = k->n_labels;
    o.value_kind = k->value_kind;
    o.recompute = recompute;
    struct model m = model_open(k->plugin, k->settings, &o);
    model_fill(&m, 0.3);
    return m;
}

// Returns all heads and then all gradients of one step. Calls backward twice, as a caller may.
// Release the result with test_free.
static float *step(struct model *m, const struct kind *k, const rlhf_batch *b, uint64_t *n) {
    enum { HEADS = 5 };
    const uint64_t total = b->total + VEC_ROWS * VEC_LABELS;
    *n = HEADS * total + (uint64_t)m->info.n_params;
    float *all = test_calloc(*n, sizeof *all), *d = test_calloc(total, sizeof *d);
    float *to = all + HEADS * total;
    const rlhf_forward f = {.size = sizeof f, .heads = k->heads, .train = 1};
    const rlhf_heads h = {.size = sizeof h,
                          .logp = all,
                          .entropy = all + total,
                          .value = all + 2 * total,
                          .token_score = all + 3 * total,
                          .score = all + 4 * total};
    const rlhf_heads g = {
        .size = sizeof g, .logp = d, .entropy = d, .value = d, .token_score = d, .score = d};
    rlhf_param p = {.size = sizeof p};
    for (uint64_t i = 0; i < total; i++)
        d[i] = vec_weight(i);
    must(m, m->ops->forward(m->self, b, &f, &h));
    must(m, m->ops->backward(m->self, b, &f, &g));
    must(m, m->ops->backward(m->self, b, &f, &g));
    for (uint32_t i = 0; m->ops->param(m->self, i, &p) == RLHF_OK; i++) {
        float *x = device_read(m->c, p.grad, param_count(&p));
        memcpy(to, x, param_count(&p) * sizeof *x);
        to += param_count(&p);
        test_free(x);
    }
    test_free(d);
    return all;
}

static void same_bits_of(const struct kind *k, int32_t dtype, const rlhf_batch *b) {
    uint64_t n = 0, used[2];
    float *x[2];
    if (!plugin_fits(backend.compute, k->plugin)) return;
    for (int32_t r = 0; r < 2; r++) {
        const uint64_t before = backend.compute->bytes_in_use(backend.compute->ctx);
        struct model m = open_kind(k, dtype, r);
        x[r] = step(&m, k, b, &n);
        used[r] = backend.compute->bytes_in_use(backend.compute->ctx) - before;
        model_close(&m);
    }
    assert_memory_equal(x[0], x[1], n * sizeof *x[0]);
    assert_true(used[1] < used[0]);
    test_free(x[0]);
    test_free(x[1]);
}

static void same_bits(void **state) {
    (void)state;
    for (int32_t i = 0; i < N_KINDS; i++) {
        same_bits_of(&kinds[i], RLHF_F32, &vec_batch);
        same_bits_of(&kinds[i], RLHF_BF16, &vec_batch);
    }
}

static void shared_prompts(void **state) {
    (void)state;
    struct families rows = families_make(tiny_families, N_FAMILIES, TINY_VOCAB);
    for (int32_t i = 0; i < N_KINDS; i++) {
        if (kinds[i].heads & RLHF_HEAD_SCORE) continue;
        same_bits_of(&kinds[i], RLHF_F32, &rows.compact);
        same_bits_of(&kinds[i], RLHF_BF16, &rows.compact);
    }
    families_free(&rows);
}

// Only the input of each layer is stored. So a further layer costs the size of the residual stream,
// plus its weights and gradients.
static void holds_less(void **state) {
    (void)state;
    uint64_t used[2][2];
    for (int32_t deep = 0; deep < 2; deep++) {
        const struct setting settings[] = {
            {"vocab_size", "61"}, {"n_positions", "128"},        {"n_embd", "16"},
            {"n_head", "2"},      {"n_layer", deep ? "8" : "2"}, {NULL, NULL}};
        const struct kind k = {"gpt2", settings, RLHF_HEAD_LOGP, 0, RLHF_VALUE_NONE, 0};
        enum { LONG = 128 };
        int32_t *ids = test_calloc(LONG, sizeof *ids), offset[] = {0, LONG}, prompt = 1;
        const rlhf_batch b = {sizeof b, 1, LONG, 0, ids, offset, &prompt, NULL, NULL};
        for (int32_t r = 0; r < 2; r++) {
            uint64_t n = 0;
            struct model m = open_kind(&k, RLHF_F32, r);
            const uint64_t before = m.c->bytes_in_use(m.c->ctx);
            test_free(step(&m, &k, &b, &n));
            used[deep][r] = m.c->bytes_in_use(m.c->ctx) - before;
            model_close(&m);
        }
        test_free(ids);
    }
    const uint64_t stream = 128 * 16 * sizeof(float);
    assert_int_equal(used[1][1] - used[0][1], 6 * stream);
    assert_true(used[1][0] - used[0][0] >
                6 * 12 * stream); // in, mid, h1, h2, 3 for qkv, att, 8 for the MLP
}

// Returns the bytes in use after a step with rows of a wide model. *x receives the step's results.
static uint64_t wide_step(const char *plugin, const char *layers, int32_t dtype, int32_t recompute,
                          float **x, uint64_t *n) {
    enum { LONG = 32, MANY = 6 };
    const struct setting gpt2[] = {{"vocab_size", "61"}, {"n_positions", "32"}, {"n_embd", "512"},
                                   {"n_head", "4"},      {"n_layer", layers},   {NULL, NULL}};
    const struct setting qwen3[] = {{"vocab_size", "61"},
                                    {"max_position_embeddings", "32"},
                                    {"hidden_size", "512"},
                                    {"intermediate_size", "2048"},
                                    {"num_hidden_layers", layers},
                                    {"num_attention_heads", "4"},
                                    {"num_key_value_heads", "2"},
                                    {"head_dim", "64"},
                                    {NULL, NULL}};
    const struct kind k = {
        plugin, strcmp(plugin, "gpt2") ? qwen3 : gpt2, RLHF_HEAD_LOGP, 0, RLHF_VALUE_NONE, 0};
    static int32_t ids[MANY * LONG], offset[MANY + 1], prompt[MANY];
    const rlhf_batch b = {sizeof b, MANY, MANY * LONG, 0, ids, offset, prompt, NULL, NULL};
    for (int32_t i = 0; i < MANY * LONG; i++)
        ids[i] = i * 7 % 61;
    for (int32_t i = 0; i < MANY; i++) {
        offset[i + 1] = (i + 1) * LONG;
        prompt[i] = 1 + i;
    }
    struct model m = open_kind(&k, dtype, recompute);
    const uint64_t before = m.c->bytes_in_use(m.c->ctx);
    *x = step(&m, &k, &b, n);
    const uint64_t used = m.c->bytes_in_use(m.c->ctx) - before;
    model_close(&m);
    return used;
}

// In wide layers the results of norms and activations are recomputed, even if all matrix products
// are stored. Memory with recomputation and without it, in units of the f32 residual stream of all
// rows:
//
//                        gpt2 f32   qwen f32   gpt2 bf16   qwen bf16
// one more layer            10       12.25        6          7.125
//   without                 16       18.25        9         10.125
// all layers together       12       19.5         9.3       13
//   without                 21       26.5        13.8       16.5
//
// A further layer of gpt2 in f32 stores `in` (1), `mid` (1), qkv (3), att (1) and the MLP (4). qwen
// has a gated MLP and few key heads. In bf16, `in` and `mid` stay f32. All layers share one set of
// buffers, which the backward pass and the recomputed results use alternately. The bounds of the
// test are a little higher than these numbers.
static void wide_layers(void **state) {
    (void)state;
    static const char *const plugins[] = {"gpt2", "qwen3"};
    static const uint64_t streams[] = {11, 13, 7, 8};
    static const uint64_t once[] = {13, 21, 11, 15};
    // This runs only on the cpu backend, because the reference and emulations would take too long.
    if (strcmp(backend_name(), "cpu") != 0 || getenv("RLHF_TEST_BACKEND")) skip();
    for (size_t i = 0; i < 4; i++) {
        const char *plugin = plugins[i % 2];
        const int32_t dtype = i < 2 ? RLHF_F32 : RLHF_BF16;
        if (dtype == RLHF_BF16 && !(backend.compute->dtypes & (1u << RLHF_BF16))) continue;
        float *x[3];
        uint64_t n;
        wide_step(plugin, "4", dtype, 1, &x[1], &n); // runs first, to create the workspaces
        const uint64_t more = wide_step(plugin, "5", dtype, 0, &x[0], &n);
        const uint64_t few = wide_step(plugin, "4", dtype, 0, &x[2], &n);
        const uint64_t stream = 6 * 32 * 512 * sizeof(float);
        assert_true(more - few < streams[i] * stream);
        assert_true(few - 4 * (more - few) < once[i] * stream);
        assert_memory_equal(x[1], x[2], n * sizeof *x[1]);
        for (int k = 0; k < 3; k++)
            test_free(x[k]);
    }
}

static void refused(void **state) {
    (void)state;
    rlhf_model_open o = open_args(&backend, RLHF_F32, 1);
    struct model m;
    o.recompute = 2;
    assert_int_equal(model_create("gpt2", tiny_gpt2, &m), RLHF_OK);
    assert_int_equal(m.ops->open(m.self, &o), RLHF_E_UNSUPPORTED);
    assert_string_equal(host_failure(), "open: unknown recompute 2");
    model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits), cmocka_unit_test(shared_prompts), cmocka_unit_test(holds_less),
        cmocka_unit_test(wide_layers), cmocka_unit_test(refused)};
    return on_backends("recompute", ON_ALL, 2, tests, sizeof tests / sizeof *tests);
}
