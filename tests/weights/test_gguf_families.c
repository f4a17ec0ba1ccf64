// test_gguf_families.c: the keys and tensors of a GGUF file for each of llama.cpp's architectures,
// and which models of them are refused.
#include "gguf_model.h"

#include <math.h>

static struct rlhf__tensor *named(struct model *m, const char *name) {
    for (size_t i = 0; i < m->m.n; i++)
        if (strcmp(m->tensor[i].name, name) == 0) return &m->tensor[i];
    fail_msg("no tensor %s", name);
    return NULL;
}

// A file has exactly the tensors that llama.cpp's loader creates for its architecture.
static void architectures(void **state) {
#define AS(type)                                                                                   \
    "{\"model_type\": \"" type "\", \"vocab_size\": 260, \"hidden_size\": 4, "                     \
    "\"intermediate_size\": 3, \"num_hidden_layers\": 1, \"num_attention_heads\": 2, "             \
    "\"num_key_value_heads\": 1, \"head_dim\": 4, \"max_position_embeddings\": 16, "               \
    "\"rms_norm_eps\": 0.5, \"tie_word_embeddings\": true}"
#define IN "model.layers.0."
    static const char *const more[][4] = {
        {AS("llama"), "input_layernorm.bias", "self_attn.q_norm.weight", "self_attn.k_norm.weight"},
        {AS("qwen2"), "self_attn.o_proj.bias", "self_attn.q_norm.weight", "mlp.down_proj.bias"},
        {AS("qwen3"), "self_attn.q_proj.bias", "self_attn.o_proj.bias", "mlp.up_proj.bias"},
        {AS("smollm3"), "self_attn.q_proj.bias", "self_attn.q_norm.weight", "mlp.up_proj.bias"},
    };
    static const char *const own[][5] = {
        {NULL},
        {"self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias", NULL},
        {"self_attn.q_norm.weight", "self_attn.k_norm.weight", NULL},
        {NULL},
    };
    static const char *const lacks[][3] = {{NULL},
                                           {"attn_q.bias", "attn_k.bias", "attn_v.bias"},
                                           {"attn_q_norm.weight", "attn_k_norm.weight", NULL},
                                           {NULL}};
    for (size_t a = 0; a < CHECK_COUNT(more); a++) {
        struct model m;
        char name[8][96], says[96];
        size_t n = 0;
        model_begin(&m, *state, more[a][0], GPT2_FORM);
        model_add_llama(&m);
        m.tensor[4] = m.tensor[--m.m.n]; // the bias of keys is removed
        for (; own[a][n]; n++) {
            snprintf(name[n], sizeof name[n], IN "%s", own[a][n]);
            model_add(&m, name[n], strstr(name[n], "q_proj") ? 8 : 4, 0);
        }
        model_written(&m, &(size_t){0});
        for (size_t i = 1; i < 4; i++) {
            snprintf(name[n], sizeof name[n], IN "%s", more[a][i]);
            snprintf(says, sizeof says, "tensor " IN "%s is not supported in a GGUF file",
                     more[a][i]);
            model_add(&m, name[n], strstr(name[n], "q_proj") ? 8 : 4, 0);
            model_refused(&m, says);
            m.m.n--;
        }
        for (size_t i = 0; own[a][i]; i++) {
            struct rlhf__tensor *t = named(&m, name[i]), kept = *t;
            *t = m.tensor[--m.m.n];
            snprintf(says, sizeof says, "the weights lack what is blk.0.%s in a GGUF file",
                     lacks[a][i]);
            model_refused(&m, says);
            m.tensor[m.m.n++] = *t;
            *t = kept;
        }
        model_end(&m);
    }
    struct model m;
    model_begin(&m, *state, AS("llama"), GPT2_FORM);
    model_add_llama(&m);
    model_add(&m, "lm_head.bias", 260, 0);
    model_refused(
        &m,
        "tensor lm_head.bias is not supported in a GGUF file of llama.cpp's architecture llama");
    model_end(&m);
}

// Granite 4: the four factors, the switch of positions, and two tensors for the fused one, which is
// model.layers.0.shared_mlp.input_linear.weight.
static void granite(void **state) {
    static const char config[] =
        "{\"model_type\": \"granitemoehybrid\", \"vocab_size\": 260, \"hidden_size\": 4, "
        "\"intermediate_size\": 9, \"shared_intermediate_size\": 3, \"num_hidden_layers\": 1, "
        "\"num_attention_heads\": 2, \"num_key_value_heads\": 1, \"head_dim\": 4, "
        "\"max_position_embeddings\": 16, \"rms_norm_eps\": 0.5, \"tie_word_embeddings\": true, "
        "\"embedding_multiplier\": 12, \"residual_multiplier\": 0.25, \"logits_scaling\": %s}";
    static const char *const keys[] = {
        "granite.feed_forward_length 4 3\n", "granite.attention.scale 6 1\n",
        "granite.embedding_scale 6 12\n",    "granite.residual_scale 6 0.25\n",
        "granite.logit_scale 6 10\n",        "granite.rope.scaling.finetuned 7 false\n",
        "blk.0.ffn_gate.weight 4 3 type 0",  "blk.0.ffn_up.weight 4 3 type 0",
        "blk.0.ffn_down.weight 3 4 type 0"};
    for (int odd = 0; odd < 2; odd++) {
        struct model m;
        struct reader r;
        struct rlhf__buf text = RLHF__BUF_INIT;
        size_t len;
        rlhf__buf_printf(&text, config, "10");
        model_begin(&m, *state, rlhf__buf_text(&text), GPT2_FORM);
        model_add_llama(&m);
        m.tensor[10].name = "model.layers.0.shared_mlp.output_linear.weight";
        m.tensor[9] = m.tensor[--m.m.n];
        model_add(&m, "model.layers.0.shared_mlp.input_linear.weight", odd ? 7 : 6, 4);
        m.tensor[8] = m.tensor[--m.m.n];
        m.m.dtype = RLHF__TENSOR_F32;
        if (odd) {
            model_refused(&m, "has 7 rows; its halves are gate and up projection");
        } else {
            const uint8_t *bytes = model_written(&m, &len);
            const char *head = reader_head(&r, bytes, len);
            for (size_t i = 0; i < CHECK_COUNT(keys); i++)
                if (!strstr(head, keys[i])) fail_msg("no %s in\n%s", keys[i], head);
            const float *fused = m.data[11];
            float got[12];
            const char *at[2] = {strstr(head, keys[6]), strstr(head, keys[7])};
            for (int up = 0; up < 2; up++) {
                memcpy(got, r.p + strtoul(strstr(at[up], " at ") + 4, NULL, 10), sizeof got);
                assert_memory_equal(got, fused + 12 * up, sizeof got);
            }
            rlhf__buf_finish(&r.out);
        }
        rlhf__buf_finish(&text);
        model_end(&m);
    }
    struct model m;
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__buf_printf(&text, config, "\"8\"");
    model_begin(&m, *state, rlhf__buf_text(&text), GPT2_FORM);
    model_add_llama(&m);
    model_refused(&m, "logits_scaling is \"8\"");
    rlhf__buf_finish(&text);
    model_end(&m);
}

// OLMo 2 and 3: norms of the blocks' outputs, norms of all queries and of all keys; llama.cpp takes
// the rows of queries and keys as they are.
static void olmo2(void **state) {
#define OLMO(type, d, more)                                                                        \
    "{\"model_type\": \"" type "\", \"vocab_size\": 260, \"hidden_size\": " d                      \
    ", \"intermediate_size\": 3, \"num_hidden_layers\": 1, \"num_attention_heads\": 2, "           \
    "\"num_key_value_heads\": 1, \"head_dim\": 4, \"max_position_embeddings\": 16, "               \
    "\"rms_norm_eps\": 0.5" more "}"
#define OLMO2(d, more) OLMO("olmo2", d, ", \"rope_theta\": 9" more)
#define KINDS(type, full, sliding)                                                                 \
    ", \"rope_parameters\": {\"full_attention\": {\"rope_type\": \"" type                          \
    "\", \"factor\": 4, \"original_max_position_embeddings\": 8, \"rope_theta\": " full            \
    "}, \"sliding_attention\": {\"rope_theta\": " sliding "}}"
    static const char *const keys[] = {"olmo2.attention.head_count 4 2\n",
                                       "olmo2.attention.layer_norm_rms_epsilon 6 0.5\n",
                                       "olmo2.attention.head_count_kv 4 1\n",
                                       "olmo2.rope.dimension_count 4 4\n",
                                       "blk.0.attn_q_norm.weight 8 type 0",
                                       "blk.0.attn_k_norm.weight 4 type 0",
                                       "blk.0.post_attention_norm.weight 8 type 0",
                                       "blk.0.post_ffw_norm.weight 8 type 0"};
    static const struct {
        const char *config, *key, *says; // says NULL: accepted
    } cases[] = {
        {OLMO2("8", ""), "olmo2.rope.freq_base 6 9\ntokenizer", NULL},
        {OLMO("olmo3", "8", ""),
         "olmo2.rope.freq_base 6 500000\nolmo2.attention.sliding_window 4 "
         "4096\nolmo2.attention.sliding_window_pattern 9 true\n",
         NULL},
        {OLMO("olmo3", "8", KINDS("yarn", "9", "9") ", \"sliding_window\": 7"),
         "olmo2.rope.freq_base 6 9\nolmo2.rope.scaling.type 8 yarn\nolmo2.rope.scaling.factor 6 4\n"
         "olmo2.rope.scaling.original_context_length 4 8\nolmo2.rope.scaling.yarn_beta_fast 6 32\n"
         "olmo2.rope.scaling.yarn_beta_slow 6 1\nolmo2.attention.sliding_window 4 7\n",
         NULL},
        {OLMO2("12", ""), "", "2 heads of width 4, but hidden_size is 12"},
        {OLMO2("8", ", \"tie_word_embeddings\": true"), "", "tie_word_embeddings is true"},
        {OLMO2("8", ", \"hidden_act\": \"gelu\""), "", "hidden_act is \"gelu\""},
        {OLMO("olmo3", "8", KINDS("default", "9", "8")), "",
         "rope_theta of the rotary positions is 8"},
        {OLMO("olmo3", "8", ", \"rope_theta\": 9"), "", "rope_theta of the rotary positions is 9"},
        {OLMO("olmo3", "8", ", \"layer_types\": [\"full_attention\"]"), "",
         "layer_types is [\"full_attention\"]"},
        {OLMO("olmo3", "8", ", \"sliding_window\": null"), "", "sliding_window is null"}};
    for (size_t c = 0; c < CHECK_COUNT(cases); c++) {
        struct model m;
        struct reader r;
        size_t len;
        model_begin(&m, *state, cases[c].config, GPT2_FORM);
        model_add(&m, "model.embed_tokens.weight", 260, 8);
        model_add(&m, IN "self_attn.q_proj.weight", 8, 8);
        model_add(&m, IN "self_attn.k_proj.weight", 4, 8);
        model_add(&m, IN "self_attn.v_proj.weight", 4, 8);
        model_add(&m, IN "self_attn.o_proj.weight", 8, 8);
        model_add(&m, IN "self_attn.q_norm.weight", 8, 0);
        model_add(&m, IN "self_attn.k_norm.weight", 4, 0);
        model_add(&m, IN "post_attention_layernorm.weight", 8, 0);
        model_add(&m, IN "mlp.gate_proj.weight", 3, 8);
        model_add(&m, IN "mlp.up_proj.weight", 3, 8);
        model_add(&m, IN "mlp.down_proj.weight", 8, 3);
        model_add(&m, IN "post_feedforward_layernorm.weight", 8, 0);
        model_add(&m, "model.norm.weight", 8, 0);
        model_add(&m, "lm_head.weight", 260, 8);
        m.m.dtype = RLHF__TENSOR_F32;
        if (cases[c].says) {
            model_refused(&m, cases[c].says);
            model_end(&m);
            continue;
        }
        const uint8_t *bytes = model_written(&m, &len);
        const char *head = reader_head(&r, bytes, len);
        float got[64];
        for (size_t i = 0; i < CHECK_COUNT(keys); i++)
            if (!strstr(head, keys[i])) fail_msg("no %s in\n%s", keys[i], head);
        if (!strstr(head, cases[c].key)) fail_msg("no %s in\n%s", cases[c].key, head);
        const char *at = strstr(strstr(head, "\nblk.0.attn_q.weight "), " at ");
        memcpy(got, r.p + strtoul(at + 4, NULL, 10), sizeof got);
        assert_memory_equal(got, m.data[1], sizeof got);
        rlhf__buf_finish(&r.out);
        model_add(&m, IN "self_attn.q_proj.bias", 8, 0);
        model_refused(&m, "self_attn.q_proj.bias is not supported in a GGUF file");
        m.m.n -= 2; // without the output table, too
        model_refused(&m, "the weights lack what is output.weight in a GGUF file");
        model_end(&m);
    }
}

// Phi-3: fused tensors as they are, heads of which a part is rotated, the window, and the two lists
// of longrope as tensors, in f32.
static void phi3(void **state) {
    static const char config[] =
        "{\"model_type\": \"phi3\", \"vocab_size\": 260, \"hidden_size\": 8, "
        "\"intermediate_size\": 3, \"num_hidden_layers\": 1, \"num_attention_heads\": 1, "
        "\"num_key_value_heads\": 1, \"max_position_embeddings\": 256, \"rms_norm_eps\": 0.5, "
        "\"tie_word_embeddings\": true, \"partial_rotary_factor\": 0.5, "
        "\"original_max_position_embeddings\": 16, \"sliding_window\": %s, \"rope_scaling\": "
        "{\"type\": \"%s\", \"short_factor\": [1.5, 2], \"long_factor\": %s}}";
    static const char *const keys[] = {
        "phi3.rope.dimension_count 4 4\n",
        "phi3.rope.scaling.original_context_length 4 16\n",
        "phi3.rope.scaling.attn_factor 6 1.41421\n", // sqrt(1 + ln(256 / 16) / ln(16))
        "phi3.attention.sliding_window 4 7\n",
        "blk.0.attn_qkv.weight 8 24 type 0",
        "blk.0.ffn_up.weight 8 6 type 0",
        "rope_factors_long.weight 2 type 0",
        "rope_factors_short.weight 2 type 0"};
    static const struct {
        const char *window, *type, *factors, *says; // says NULL: accepted
    } cases[] = {
        {"7", "su", "[3, 40]", NULL},
        {"null", "longrope", "[3, 40, 5]", "long_factor of the rotary positions is [3, 40, 5]"},
        {"null", "longrope", "[3, \"a\"]", "long_factor of the rotary positions is [3, \"a\"]"},
        {"null", "linear", "[3, 40]", "rope_type of the rotary positions is \"linear\""},
        {"-1", "su", "[3, 40]", "sliding_window is -1"}};
    for (size_t c = 0; c < CHECK_COUNT(cases); c++) {
        static const float want[] = {3, 40, 1.5, 2};
        struct model m;
        struct reader r;
        struct rlhf__buf text = RLHF__BUF_INIT;
        size_t len;
        rlhf__buf_printf(&text, config, cases[c].window, cases[c].type, cases[c].factors);
        model_begin(&m, *state, rlhf__buf_text(&text), GPT2_FORM);
        model_add(&m, "model.embed_tokens.weight", 260, 8);
        model_add(&m, "model.layers.0.input_layernorm.weight", 8, 0);
        model_add(&m, "model.layers.0.self_attn.qkv_proj.weight", 24, 8);
        model_add(&m, "model.layers.0.self_attn.o_proj.weight", 8, 8);
        model_add(&m, "model.layers.0.post_attention_layernorm.weight", 8, 0);
        model_add(&m, "model.layers.0.mlp.gate_up_proj.weight", 6, 8);
        model_add(&m, "model.layers.0.mlp.down_proj.weight", 8, 3);
        model_add(&m, "model.norm.weight", 8, 0);
        m.m.dtype = RLHF__TENSOR_F32;
        if (cases[c].says) {
            model_refused(&m, cases[c].says);
        } else {
            const uint8_t *bytes = model_written(&m, &len);
            const char *head = reader_head(&r, bytes, len);
            for (size_t i = 0; i < CHECK_COUNT(keys); i++) {
                float got[2];
                const char *at = strstr(head, keys[i]);
                if (!at) fail_msg("no %s in\n%s", keys[i], head);
                if (i < 6) continue;
                memcpy(got, r.p + strtoul(strstr(at, " at ") + 4, NULL, 10), sizeof got);
                assert_memory_equal(got, want + 2 * (i - 6), sizeof got);
            }
            rlhf__buf_finish(&r.out);
        }
        rlhf__buf_finish(&text);
        model_end(&m);
    }
}

// Gemma 3 and Gemma 2: norms around the blocks, whose gains get 1 added, windows and positions by
// kind of layer, or caps.
#define GEMMA_OF(type, scalar, window)                                                             \
    "\"model_type\": \"" type "\", \"vocab_size\": 260, \"hidden_size\": 4, "                      \
    "\"intermediate_size\": 3, \"num_hidden_layers\": 1, \"num_attention_heads\": 2, "             \
    "\"num_key_value_heads\": 1, \"head_dim\": 4, \"query_pre_attn_scalar\": " scalar ", "         \
    "\"max_position_embeddings\": 16, \"sliding_window\": " window
#define GEMMA(type) GEMMA_OF(type, "4", "8")
#define NESTED                                                                                     \
    ", \"rope_parameters\": {\"full_attention\": {\"rope_type\": \"linear\", \"factor\": 8.0, "    \
    "\"rope_theta\": 1e5}, \"sliding_attention\": {\"rope_type\": \"default\", "                   \
    "\"rope_theta\": 10000}}, \"layer_types\": [\"sliding_attention\"]"

static void begin_gemma(struct model *m, struct scratch *s, const char *config) {
    model_begin(m, s, config, GPT2_FORM);
    model_add_llama(m);
    m->tensor[4] = m->tensor[--m->m.n]; // no bias of keys
    model_add(m, IN "pre_feedforward_layernorm.weight", 4, 0);
    model_add(m, IN "post_feedforward_layernorm.weight", 4, 0);
    if (strstr(config, "gemma2")) return;
    model_add(m, IN "self_attn.q_norm.weight", 4, 0);
    model_add(m, IN "self_attn.k_norm.weight", 4, 0);
}

static void gemma(void **state) {
    static const char *const cases[][2] = {
        {"{" GEMMA("gemma3_text") NESTED "}", "gemma3.context_length 4 16\n"
                                              "gemma3.embedding_length 4 4\n"
                                              "gemma3.block_count 4 1\n"
                                              "gemma3.feed_forward_length 4 3\n"
                                              "gemma3.attention.head_count 4 2\n"
                                              "gemma3.attention.layer_norm_rms_epsilon 6 1e-06\n"
                                              "gemma3.attention.head_count_kv 4 1\n"
                                              "gemma3.attention.key_length 4 4\n"
                                              "gemma3.attention.value_length 4 4\n"
                                              "gemma3.attention.sliding_window 4 8\n"
                                              "gemma3.rope.freq_base 6 100000\n"
                                              "gemma3.rope.freq_base_swa 6 10000\n"
                                              "gemma3.rope.scaling.type 8 linear\n"
                                              "gemma3.rope.scaling.factor 6 8\n"
                                              "tokenizer"},
        {"{" GEMMA("gemma3_text") ", \"rope_theta\": 9}", "gemma3.rope.freq_base 6 9\n"},
        {"{" GEMMA("gemma2") ", \"attn_logit_softcapping\": 40}",
         "gemma2.attention.sliding_window 4 8\n"
         "gemma2.attn_logit_softcapping 6 40\n"
         "gemma2.final_logit_softcapping 6 30\n"
         "gemma2.rope.freq_base 6 10000\n"
         "tokenizer"}};
    static const char *const norms[][2] = {{"attn_norm", IN "input_layernorm.weight"},
                                           {"post_attention_norm", IN "post_attention_layernorm."
                                                                      "weight"},
                                           {"ffn_norm", IN "pre_feedforward_layernorm.weight"},
                                           {"post_ffw_norm", IN "post_feedforward_layernorm."
                                                                "weight"},
                                           {"attn_q_norm", IN "self_attn.q_norm.weight"},
                                           {"attn_k_norm", IN "self_attn.k_norm.weight"}};
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct model m;
        struct reader r;
        size_t len;
        begin_gemma(&m, *state, cases[i][0]);
        const uint8_t *bytes = model_written(&m, &len);
        const char *head = reader_head(&r, bytes, len);
        if (!strstr(head, cases[i][1])) fail_msg("no %s in\n%s", cases[i][1], head);
        for (size_t k = 0; k < (i == 2 ? 4 : 6); k++) {
            char name[64];
            float got[4], want[4];
            snprintf(name, sizeof name, "\nblk.0.%s.weight ", norms[k][0]);
            memcpy(want, named(&m, norms[k][1])->data, sizeof want);
            memcpy(got, r.p + strtoul(strstr(strstr(head, name), " at ") + 4, NULL, 10),
                   sizeof got);
            for (int c = 0; c < 4; c++)
                assert_true(got[c] == want[c] + 1);
        }
        rlhf__buf_finish(&r.out);
        model_end(&m);
    }
}

static void gemma_refused(void **state) {
#define G3(more) "{" GEMMA("gemma3_text") ", " more "}"
    static const char *const cases[][2] = {
        {G3("\"hidden_activation\": \"silu\""), "hidden_activation is \"silu\""},
        {G3("\"final_logit_softcapping\": 30.0"), "final_logit_softcapping is 30.0"},
        {"{" GEMMA_OF("gemma3_text", "256", "8") "}",
         "query_pre_attn_scalar is 256, and llama.cpp takes 4"},
        {"{" GEMMA_OF("gemma3_text", "4", "null") "}", "sliding_window is null"},
        {G3("\"sliding_window_pattern\": 2"), "sliding_window_pattern is 2"},
        {G3("\"layer_types\": [\"full_attention\"]"), "layer_types is [\"full_attention\"]"},
        {G3("\"rope_local_base_freq\": 5e3"), "rope_local_base_freq of the rotary positions is 5"},
        {G3("\"rope_parameters\": {\"sliding_attention\": {\"rope_type\": \"linear\"}}"),
         "rope_type of the rotary positions is \"linear\""},
        {G3("\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 2}"),
         "rope_type of the rotary positions is \"yarn\""},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct model m;
        begin_gemma(&m, *state, cases[i][0]);
        model_refused(&m, cases[i][1]);
        model_end(&m);
    }
    struct model m;
    begin_gemma(&m, *state, "{" GEMMA("gemma3_text") "}");
    model_add(&m, IN "self_attn.o_proj.bias", 4, 0);
    model_refused(&m,
                  "o_proj.bias is not supported in a GGUF file of llama.cpp's architecture gemma3");
    m.m.n -= 2;
    model_refused(&m, "the weights lack what is blk.0.attn_k_norm.weight in a GGUF file");
    model_end(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(architectures, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(granite, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(olmo2, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(phi3, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(gemma, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(gemma_refused, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests_name("gguf: families", tests, NULL, NULL);
}
