// tests/models/test_quantised.c: a model whose frozen matrices stay quantised has the same bits as
// a model that was filled with the dequantised values: heads, gradients of an adapter, sampled
// tokens.
#include "adapters.h"

#include <stdio.h>
#include <string.h>

#define SHAPE                                                                                      \
    {"vocab_size", "61"}, {"hidden_size", "256"}, {"intermediate_size", "256"},                    \
        {"num_hidden_layers", "2"}, {"max_position_embeddings", "24"},                             \
        {"num_attention_heads", "4"}, {"num_key_value_heads", "2"}, {                              \
        "head_dim", "64"                                                                           \
    }

static const struct setting tied[] = {SHAPE, {"tie_word_embeddings", "true"}, {NULL, NULL}};
static const struct setting untied[] = {SHAPE, {"tie_word_embeddings", "false"}, {NULL, NULL}};

static const struct setting short_conv[] = {
    SHAPE, {"full_attn_idxs", "1"}, {"block_auto_adjust_ff_dim", "0"}, {NULL, NULL}};
static const struct setting delta[] = {SHAPE,
                                       {"full_attention_interval", "2"},
                                       {"linear_num_key_heads", "2"},
                                       {"linear_num_value_heads", "4"},
                                       {"linear_key_head_dim", "32"},
                                       {"linear_value_head_dim", "64"},
                                       {"tie_word_embeddings", "false"},
                                       {NULL, NULL}};

static const struct adapted kinds[] = {
    {"qwen3", tied, {"all-linear"}, 3, 0, RLHF_VALUE_LINEAR, 0, RLHF_HEAD_LOGP | RLHF_HEAD_VALUE},
    {"qwen2",
     untied,
     {"q_proj", "down_proj"},
     2,
     0,
     RLHF_VALUE_NONE,
     0,
     RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY},
    {"lfm2", short_conv, {"all-linear"}, 2, 0, RLHF_VALUE_NONE, 0, RLHF_HEAD_LOGP},
    {"qwen3_5_text",
     delta,
     {"in_proj_qkv", "in_proj_b", "q_proj"},
     2,
     0,
     RLHF_VALUE_NONE,
     0,
     RLHF_HEAD_LOGP},
    {"llama", untied, {"v_proj"}, 2, VEC_LABELS, RLHF_VALUE_NONE, 0, RLHF_HEAD_SCORE},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static const rlhf_batch batch = {sizeof(rlhf_batch), VEC_ROWS,       VEC_TOTAL, 0,   vec_ids,
                                 vec_offset,         vec_prompt_len, NULL,      NULL};

// ---- formats ----

// The values of layer 1 are not quantised, so its queries and keys are not either.
static int32_t format_of(void *ctx, const char *name) {
    static const struct {
        const char *part;
        int32_t format;
    } all[] = {{"layers.1.self_attn.v_proj", RLHF_FORMAT_F32},
               {"q_proj", RLHF_FORMAT_Q4_K},
               {"k_proj", RLHF_FORMAT_Q6_K},
               {"v_proj", RLHF_FORMAT_Q8_0},
               {"o_proj", RLHF_FORMAT_Q4_0},
               {"in_proj_z", RLHF_FORMAT_Q8_0},
               {"in_proj_b", RLHF_FORMAT_Q6_K},
               {"in_proj_a", RLHF_FORMAT_Q4_0},
               {"in_proj", RLHF_FORMAT_Q4_K},
               {"out_proj", RLHF_FORMAT_Q4_1},
               {"w1", RLHF_FORMAT_Q4_1},
               {"w3", RLHF_FORMAT_Q4_K},
               {"w2", RLHF_FORMAT_Q6_K},
               {"gate_proj", RLHF_FORMAT_Q4_1},
               {"up_proj", RLHF_FORMAT_Q4_K},
               {"down_proj", RLHF_FORMAT_Q6_K},
               {"embed_tokens", RLHF_FORMAT_Q8_0},
               {"lm_head", RLHF_FORMAT_Q4_0}};
    *(uint32_t *)ctx += 1;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strstr(name, all[i].part)) return all[i].format;
    return RLHF_FORMAT_F32;
}

static void put_half(uint8_t *at, uint16_t h) { memcpy(at, &h, sizeof h); }

// Random blocks whose numbers are below 0.5.
static uint8_t *blocks_of(const rlhf_param *p, int32_t format) {
    const uint64_t one = (uint64_t)rlhf_format_bytes(format);
    const uint64_t n = (uint64_t)p->shape[0] * rlhf_format_row_bytes(format, (int32_t)p->shape[1]);
    rlhf_rng r = {3, rlhf_rng_stream(p->name), 0};
    uint8_t *b = test_malloc(n);
    for (uint64_t i = 0; i < n; i++)
        b[i] = (uint8_t)rlhf_rng_below(&r, 256);
    for (uint64_t i = 0; i < n; i += one) {
        if (format == RLHF_FORMAT_Q8_0) put_half(b + i, 0x1400); // 2^-10
        if (format == RLHF_FORMAT_Q4_0) put_half(b + i, 0x2400); // 2^-6
        if (format == RLHF_FORMAT_Q4_1) put_half(b + i, 0x2400);
        if (format == RLHF_FORMAT_Q4_1) put_half(b + i + 2, 0xaf80); // -15/128
        if (format == RLHF_FORMAT_Q4_K) put_half(b + i, 0x0400);     // 2^-14
        if (format == RLHF_FORMAT_Q4_K) put_half(b + i + 2, 0x1000);
        if (format == RLHF_FORMAT_Q6_K) put_half(b + i + 208, 0x0200); // 2^-15
    }
    return b;
}

// The numbers of the blocks of p.
static float *values_of(const rlhf_compute *c, const rlhf_param *p, int32_t format,
                        const uint8_t *blocks) {
    const int32_t rows = (int32_t)p->shape[0], k = (int32_t)p->shape[1];
    const rlhf_quantised q = {.size = sizeof q,
                              .k = k,
                              .n = rows,
                              .dtype = RLHF_F32,
                              .flags = RLHF_WEIGHT_OUT_IN,
                              .n_parts = 1,
                              .format = &format,
                              .count = &rows};
    int32_t *id = test_malloc((size_t)rows * sizeof *id);
    rlhf_weight *w = NULL;
    rlhf_dev ids, out;
    for (int32_t i = 0; i < rows; i++)
        id[i] = i;
    assert_int_equal(c->weight_create_quantised(c->ctx, &q, &w), RLHF_OK);
    assert_int_equal(c->weight_put(c->ctx, w, 0, rows, blocks), RLHF_OK);
    assert_int_equal(c->alloc(c->ctx, (uint64_t)rows * sizeof *id, &ids), RLHF_OK);
    assert_int_equal(c->alloc(c->ctx, param_count(p) * sizeof(float), &out), RLHF_OK);
    assert_int_equal(c->upload(c->ctx, ids, id, (uint64_t)rows * sizeof *id), RLHF_OK);
    assert_int_equal(c->embed_weight(c->ctx, out, ids, w, 1.0, (uint32_t)rows), RLHF_OK);
    float *x = device_read(c, out, param_count(p));
    c->release(c->ctx, out);
    c->release(c->ctx, ids);
    c->weight_destroy(c->ctx, w);
    test_free(id);
    return x;
}

// ---- two models ----

// Opens a model with (quantised) or without format_of.
static struct model open_one(const struct adapted *k, int32_t dtype, int32_t frozen,
                             int32_t quantised, uint32_t *asked) {
    const rlhf_adapter a = adapter_of(k);
    rlhf_model_open o = open_args(&backend, dtype, !frozen);
    o.n_labels = k->n_labels;
    o.value_kind = k->value_kind;
    o.frozen = frozen;
    o.adapter = frozen ? NULL : &a;
    o.format_of = quantised ? format_of : NULL;
    o.format_ctx = asked;
    return model_open(k->plugin, k->settings, &o);
}

static void fill_small(struct model *m, uint32_t i, const rlhf_param *p) {
    const uint64_t n = param_count(p);
    float *x = test_malloc(n * sizeof *x);
    rlhf_rng r = {7, rlhf_rng_stream(p->name), 0};
    for (uint64_t j = 0; j < n; j++)
        x[j] = (p->init == RLHF_INIT_ONE ? 1 : 0) + (float)(2 * rlhf_rng_next(&r) - 1) * 0.1f;
    model_write(m, i, x);
    test_free(x);
}

// Fills both models with the same numbers. Returns the number of parameters that stay quantised.
static uint32_t fill_both(struct model *quantised, struct model *plain) {
    uint32_t kept = 0, unused = 0;
    rlhf_param p = {.size = sizeof p}, q = {.size = sizeof q};
    for (uint32_t i = 0; quantised->ops->param(quantised->self, i, &p) == RLHF_OK; i++) {
        const int32_t format =
            p.ndim == 2 && p.group == RLHF_PARAM_TRUNK ? format_of(&unused, p.name) : 0;
        must(plain, plain->ops->param(plain->self, i, &q));
        assert_int_equal(q.format, RLHF_FORMAT_F32);
        if (!format) {
            fill_small(quantised, i, &p);
            fill_small(plain, i, &q);
            continue;
        }
        uint8_t *blocks = blocks_of(&p, format);
        float *x = values_of(plain->c, &p, format, blocks);
        model_write(plain, i, x);
        if (p.format) {
            const uint64_t one = rlhf_format_row_bytes(format, (int32_t)p.shape[1]);
            assert_int_equal(p.format, format);
            assert_null(p.value);
            kept++;
            for (int64_t at = 0; at < p.shape[0]; at += 40) { // not all at once
                const int64_t n = p.shape[0] - at < 40 ? p.shape[0] - at : 40;
                must(quantised, quantised->ops->fill_blocks(quantised->self, i, at, n,
                                                            blocks + (uint64_t)at * one));
            }
            must(quantised, quantised->ops->fill_end(quantised->self, i));
        } else {
            model_write(quantised, i, x);
        }
        test_free(x);
        test_free(blocks);
    }
    must(quantised, quantised->ops->refresh(quantised->self));
    must(plain, plain->ops->refresh(plain->self));
    return kept;
}

static void same_draws(struct model *a, struct model *b) {
    int32_t x[3], y[3];
    float p[3], q[3];
    if (!(a->info.caps & RLHF_CAP_GENERATE)) return;
    draw_three(a, x, p);
    draw_three(b, y, q);
    assert_memory_equal(x, y, sizeof x);
    assert_memory_equal(p, q, sizeof p);
}

static void same_bits(void **state) {
    (void)state;
    for (int i = 0; i < 4 * N_KINDS; i++) {
        const struct adapted *k = &kinds[i / 4];
        const int32_t dtype = i & 1 ? RLHF_BF16 : RLHF_F32, frozen = i >> 1 & 1;
        uint32_t asked = 0;
        if (!plugin_fits(backend.compute, k->plugin)) continue;
        struct model quantised = open_one(k, dtype, frozen, 1, &asked);
        struct model plain = open_one(k, dtype, frozen, 0, NULL);
        // q, k and v of layer 0, four matrices of each layer, the table, and an untied head
        const int one_table = k->settings == tied || k->settings == short_conv || k->n_labels;
        const uint32_t tables = one_table ? 1 : 2;
        // the matrices before the four of layer 0: one of LFM2, four of Qwen3.5
        const uint32_t first = k->settings == short_conv ? 1 : k->settings == delta ? 4 : 3;
        assert_int_equal(fill_both(&quantised, &plain), first + 2 * 4 + tables);
        assert_int_equal(asked, first + 4 + 7 + tables);
        assert_true(quantised.c->bytes_in_use(quantised.c->ctx) > 0);
        if (frozen) {
            float *a = adapted_heads(&quantised, k, &batch, 0, 0),
                  *b = adapted_heads(&plain, k, &batch, 0, 0);
            adapted_same(a, b, ADAPTED_HEADS * adapted_per_head(&batch), "heads");
            test_free(a);
            test_free(b);
        } else {
            adapted_same_step(k, &quantised, &plain, &batch);
        }
        same_draws(&quantised, &plain);
        model_close(&plain);
        model_close(&quantised);
    }
}

// Another instance that shares the quantised trunk.
static void same_bits_of_base(void **state) {
    (void)state;
    const struct adapted *k = &kinds[0];
    uint32_t asked = 0;
    for (int32_t dtype = RLHF_F32; dtype <= RLHF_BF16; dtype++) {
        struct model quantised = open_one(k, dtype, 0, 1, &asked);
        struct model plain = open_one(k, dtype, 0, 0, NULL);
        fill_both(&quantised, &plain);
        struct model a = adapted_open(
            k, (struct adapted_how){.dtype = dtype, .trainable = 1, .base = quantised.self});
        struct model b = adapted_open(
            k, (struct adapted_how){.dtype = dtype, .trainable = 1, .base = plain.self});
        adapted_same_step(k, &a, &b, &batch);
        model_close(&b);
        model_close(&a);
        model_close(&plain);
        model_close(&quantised);
    }
}

static void refusals(void **state) {
    (void)state;
    uint32_t asked = 0;
    struct model m = open_one(&kinds[0], RLHF_F32, 1, 1, &asked);
    const uint32_t i = model_find(&m, "model.layers.0.self_attn.k_proj.weight");
    const uint32_t norm = model_find(&m, "model.norm.weight");
    rlhf_param p = {.size = sizeof p};
    must(&m, m.ops->param(m.self, i, &p));
    uint8_t *b = blocks_of(&p, RLHF_FORMAT_Q6_K);
    rlhf_dev to;
    assert_refused(m.ops->refresh(m.self), RLHF_E_INVALID, "has not been filled");
    assert_refused(m.ops->fill_begin(m.self, i, &to), RLHF_E_INVALID, "takes no values here");
    assert_refused(m.ops->fill_blocks(m.self, norm, 0, 1, b), RLHF_E_INVALID, "takes no blocks");
    assert_refused(m.ops->fill_blocks(m.self, i, 1, 1, b), RLHF_E_INVALID, "row 1");
    assert_refused(m.ops->fill_blocks(m.self, i, 0, 129, b), RLHF_E_INVALID, "129 rows");
    must(&m, m.ops->fill_blocks(m.self, i, 0, 100, b));
    assert_refused(m.ops->fill_blocks(m.self, i + 1, 0, 1, b), RLHF_E_INVALID, "is being filled");
    assert_refused(m.ops->fill_end(m.self, i), RLHF_E_INVALID, "only 100 rows");
    must(&m, m.ops->fill_blocks(m.self, i, 100, 28, b));
    must(&m, m.ops->fill_end(m.self, i));
    assert_refused(m.ops->fill_blocks(m.self, i, 0, 1, b), RLHF_E_INVALID, "takes no blocks");
    test_free(b);
    model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits),
                                       cmocka_unit_test(same_bits_of_base),
                                       cmocka_unit_test(refusals)};
    return on_backends("quantised", ON_ALL, 1, tests, sizeof tests / sizeof *tests);
}
