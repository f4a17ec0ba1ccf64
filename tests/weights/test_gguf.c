// test_gguf.c: GGUF files byte by byte, with a separate reader. Also tests which models are
// refused.
#include "gguf_model.h"

#include "weights/rounding.h"

#include <math.h>

// ---- files ----

static void llama(void **state) {
    struct model m;
    struct reader r;
    size_t len;
    model_begin(&m, *state,
                "{" LLAMA ", \"rope_parameters\": {\"rope_type\": \"llama3\", \"rope_theta\": 9.0, "
                "\"factor\": 8.0, \"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, "
                "\"original_max_position_embeddings\": 32}}",
                GPT2_FORM);
    model_add_llama(&m);
    m.m.dtype = RLHF__TENSOR_BF16;
    const uint8_t *bytes = model_written(&m, &len);
    struct rlhf__buf tokens = RLHF__BUF_INIT, types = RLHF__BUF_INIT, says = RLHF__BUF_INIT;
    put_bytes(&tokens, ",%s%s");
    put_bytes(&types, ",1%.0s%.0s");
    rlhf__buf_printf(&says,
                     "general.architecture 8 llama\n"
                     "general.type 8 model\n"
                     "general.name 8 tiny\n"
                     "general.file_type 4 32\n"
                     "general.quantization_version 4 2\n"
                     "llama.vocab_size 4 260\n"
                     "llama.context_length 4 16\n"
                     "llama.embedding_length 4 4\n"
                     "llama.block_count 4 1\n"
                     "llama.feed_forward_length 4 3\n"
                     "llama.attention.head_count 4 2\n"
                     "llama.attention.layer_norm_rms_epsilon 6 0.5\n"
                     "llama.attention.head_count_kv 4 1\n"
                     "llama.attention.key_length 4 4\n"
                     "llama.attention.value_length 4 4\n"
                     "llama.rope.dimension_count 4 4\n"
                     "llama.rope.freq_base 6 9\n"
                     "tokenizer.ggml.model 8 gpt2\n"
                     "tokenizer.ggml.pre 8 gpt-2\n"
                     "tokenizer.ggml.bos_token_id 4 1\n"
                     "tokenizer.ggml.add_bos_token 7 false\n"
                     "tokenizer.ggml.add_eos_token 7 false\n"
                     "tokenizer.ggml.tokens 9 a,<s>,b,ab,<tool>%s,[PAD259]\n"
                     "tokenizer.ggml.token_type 9 1,3,1,1,4%s,5\n"
                     "tokenizer.ggml.merges 9 a b\n"
                     "token_embd.weight 4 260 type 30 at 0\n"
                     "blk.0.attn_norm.weight 4 type 0 at 2080\n"
                     "blk.0.attn_q.weight 4 8 type 30 at 2112\n"
                     "blk.0.attn_k.weight 4 4 type 30 at 2176\n"
                     "blk.0.attn_k.bias 4 type 0 at 2208\n"
                     "blk.0.attn_v.weight 4 4 type 30 at 2240\n"
                     "blk.0.attn_output.weight 8 4 type 30 at 2272\n"
                     "blk.0.ffn_norm.weight 4 type 0 at 2336\n"
                     "blk.0.ffn_gate.weight 4 3 type 30 at 2368\n"
                     "blk.0.ffn_up.weight 4 3 type 30 at 2400\n"
                     "blk.0.ffn_down.weight 3 4 type 30 at 2432\n"
                     "output_norm.weight 4 type 0 at 2464\n"
                     "rope_freqs.weight 2 type 0 at 2496\n",
                     rlhf__buf_text(&tokens), rlhf__buf_text(&types));
    assert_string_equal(reader_head(&r, bytes, len), rlhf__buf_text(&says));
    rlhf__buf_finish(&tokens);
    rlhf__buf_finish(&types);
    rlhf__buf_finish(&says);
    const uint8_t *data = r.p;
    assert_int_equal(r.end - data, 2528); // the last tensor is padded, too
    // The rows of a head of 4 come in the order 0, 2, 1, 3.
    const int order[4] = {0, 2, 1, 3};
    for (int head_of = 0; head_of < 2; head_of++)
        for (int row = 0; row < 4; row++)
            for (int c = 0; c < 4; c++) {
                const float want = m.data[2][(head_of * 4 + order[row]) * 4 + c];
                uint16_t got;
                memcpy(&got, data + 2112 + ((head_of * 4 + row) * 4 + c) * 2, sizeof got);
                assert_int_equal(got, rlhf__f32_to_bf16(want));
            }
    for (int row = 0; row < 4; row++) { // the rows of the bias, too
        float got;
        memcpy(&got, data + 2208 + row * 4, sizeof got);
        assert_true(got == m.data[4][order[row]]);
    }
    // A frequency of 1 makes one turn in 6.3 positions. That is below 32 / 4, so the divisor is 1.
    // A frequency of 1/3 makes one turn in 18.8 positions. That is between 32 / 4 and 32, so the
    // divisor is interpolated.
    float divisor[2];
    memcpy(divisor, data + 2496, sizeof divisor);
    assert_true(divisor[0] == 1);
    assert_float_equal(divisor[1], 3.044306, 1e-5);
    rlhf__buf_finish(&r.out);
    model_end(&m);
}

static void gpt2(void **state) {
    struct model m;
    struct reader r;
    size_t len;
    model_begin(
        &m, *state,
        "{\"model_type\": \"gpt2\", \"architectures\": [\"GPT2LMHeadModel\"], \"vocab_size\": 259, "
        "\"n_embd\": 2, \"n_layer\": 1, \"n_head\": 1, \"n_positions\": 3, \"n_inner\": null, "
        "\"layer_norm_epsilon\": 0.25, \"eos_token_id\": [1, 4]}",
        GPT2_FORM);
    static const struct {
        const char *name;
        int64_t rows, columns;
    } t[] = {{"transformer.wte.weight", 259, 2}, {"transformer.wpe.weight", 3, 2},
             {"h.0.ln_1.weight", 2, 0},          {"h.0.ln_1.bias", 2, 0},
             {"h.0.attn.c_attn.weight", 2, 6},   {"h.0.attn.c_attn.bias", 6, 0},
             {"h.0.attn.c_proj.weight", 2, 2},   {"h.0.attn.c_proj.bias", 2, 0},
             {"h.0.ln_2.weight", 2, 0},          {"h.0.ln_2.bias", 2, 0},
             {"h.0.mlp.c_fc.weight", 2, 8},      {"h.0.mlp.c_fc.bias", 8, 0},
             {"h.0.mlp.c_proj.weight", 8, 2},    {"h.0.mlp.c_proj.bias", 2, 0},
             {"transformer.ln_f.weight", 2, 0},  {"transformer.ln_f.bias", 2, 0},
             {"lm_head.weight", 259, 2}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        model_add(&m, t[i].name, t[i].rows, t[i].columns);
    const uint8_t *bytes = model_written(&m, &len);
    const char *got = reader_head(&r, bytes, len);
    assert_non_null(strstr(got, "gpt2.feed_forward_length 4 8\n"));
    assert_non_null(strstr(got, "gpt2.attention.layer_norm_epsilon 6 0.25\n"));
    assert_non_null(strstr(got, "tokenizer.ggml.eos_token_id 4 1\n"));
    assert_non_null(strstr(got, "\nblk.0.attn_qkv.weight 2 6 type 0 at 2176\n"));
    assert_non_null(strstr(got, "\nblk.0.ffn_down.weight 8 2 type 0 at "));
    assert_non_null(strstr(got, "\noutput.weight 2 259 type 0 at "));
    for (int row = 0; row < 6; row++) // [in, out] is transposed
        for (int c = 0; c < 2; c++) {
            float x;
            memcpy(&x, r.p + 2176 + (row * 2 + c) * 4, sizeof x);
            assert_true(x == m.data[4][c * 6 + row]);
        }
    rlhf__buf_finish(&r.out);
    model_end(&m);
}

// ---- refusals ----

static void configs(void **state) {
    static const struct {
        const char *config, *says;
    } cases[] = {
        {"{\"model_type\": \"distilbert\"}", "this is distilbert"},
        {"{}", "this is none"},
        {"{\"model_type\": \"llama\", \"architectures\": [\"LlamaForSequenceClassification\"]}",
         "holds a language model; this is LlamaForSequenceClassification"},
        {"{" LLAMA ", \"hidden_act\": \"gelu\"}", "hidden_act is \"gelu\", which a GGUF file"},
        {"{\"model_type\": \"gpt2\", \"activation_function\": \"gelu\"}",
         "activation_function is \"gelu\""},
        {"{\"model_type\": \"mistral\", \"sliding_window\": 4096}", "sliding_window is 4096"},
        {"{\"model_type\": \"qwen2\", \"use_sliding_window\": true}", "use_sliding_window is true"},
        {"{\"model_type\": \"llama\"}", "vocab_size is missing, expected a whole number"},
        {"{\"model_type\": \"gpt2\", \"vocab_size\": 0}", "vocab_size is out of range"},
        {"{" LLAMA ", \"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 2.0}}",
         "rope_type of the rotary positions is \"dynamic\""},
        {"{" LLAMA ", \"rope_scaling\": {\"rope_type\": \"linear\"}}", "factor of the rotary"},
        {"{" LLAMA ", \"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4, "
         "\"original_max_position_embeddings\": 8, \"attention_factor\": 2.0}}",
         "attention_factor of the rotary positions is 2.0"},
        {"{" LLAMA ", \"partial_rotary_factor\": 0.5}", "partial_rotary_factor is 0.5"},
        {"{" LLAMA ", \"rope_theta\": -1}", "rope_theta of the rotary positions is -1"},
        {"{" LLAMA ", \"rope_theta\": \"9\"}", "rope_theta of the rotary positions is \"9\""},
        {"{" LLAMA ", \"original_max_position_embeddings\": true}",
         "original_max_position_embeddings of the rotary positions is true"},
        {"{" LLAMA ", \"rope_parameters\": {\"rope_type\": 1}}",
         "rope_type of the rotary positions is 1"},
        {"{" LLAMA ", \"rope_parameters\": {\"beta_fast\": \"1\"}}", "beta_fast of the rotary"},
        {"{\"model_type\": \"smollm3\", \"num_hidden_layers\": 3, \"no_rope_layers\": [1, 0, 1]}",
         "no_rope_layers is [1, 0, 1], which a GGUF file of this architecture cannot represent"},
        {"{\"model_type\": \"smollm3\", \"no_rope_layer_interval\": 2}",
         "no_rope_layer_interval is 2"},
        // The first offending object is named.
        {"{" LLAMA ", \"rope_scaling\": {\"type\": \"longrope\"}, "
         "\"rope_parameters\": {\"rope_type\": \"default\"}}",
         "rope_type of the rotary positions is \"longrope\""},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct model m;
        model_begin(&m, *state, cases[i].config, GPT2_FORM);
        model_add_llama(&m);
        model_refused(&m, cases[i].says);
        model_end(&m);
    }
}

static void tensors(void **state) {
    struct model m;
    struct rlhf__error err = {0};
    model_begin(&m, *state, "{" LLAMA "}", GPT2_FORM);
    model_add_llama(&m);
    m.m.n--;
    model_refused(&m, "the weights lack what is output_norm.weight in a GGUF file");
    m.m.n++;
    model_add(&m, "model.layers.0.mlp.experts.weight", 2, 2);
    model_refused(&m, "tensor model.layers.0.mlp.experts.weight is not supported in a GGUF file");
    m.tensor[m.m.n - 1].name = "model.layers.1.mlp.up_proj.weight";
    model_refused(&m, "is of layer 1; the model has 1");
    m.tensor[m.m.n - 1].name = "model.layers.00.mlp.up_proj.weight";
    model_refused(&m, "tensor model.layers.00.mlp.up_proj.weight is not supported");
    // Two tensors would get the same name. The message may name either of them first.
    m.tensor[m.m.n - 1].name = "norm.weight";
    model_refused(&m, "norm.weight would both be output_norm.weight in a GGUF file");
    m.tensor[m.m.n - 1].name = "lm_head.weight";
    m.tensor[m.m.n - 1].dtype = RLHF__TENSOR_I32;
    model_refused(&m, "tensor lm_head.weight is not a vector or matrix of F32, F16 or BF16");
    m.m.n--;
    m.tensor[3].shape[0] = 2;
    m.tensor[3].count = 8;
    model_refused(&m, "has 2 rows, the config says 1 heads of width 4");
    m.tensor[3].shape[0] = 4;
    m.tensor[3].count = 16;
    m.data[3][7] = 70000;
    m.m.dtype = RLHF__TENSOR_F16;
    const char *path = scratch_path(*state, "x.gguf");
    check_error(rlhf__gguf_write(&m.m, NULL, path, &err), RLHF_E_INVALID, &err,
                "element 7 of tensor model.layers.0.self_attn.k_proj.weight is 70000, which is "
                "more than f16 holds");
    assert_false(rlhf__is_file(path));
    model_end(&m);
}

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

// If a model is untied, its file must have an output table. Otherwise llama.cpp would use the
// embedding.
static void output_tables(void **state) {
    for (int tied = 0; tied < 2; tied++)
        for (int there = 0; there < 2; there++) {
            struct model m;
            model_begin(&m, *state, tied ? "{" LLAMA "}" : "{" LLAMA_TIED("260", "false") "}",
                        GPT2_FORM);
            model_add_llama(&m);
            if (there) model_add(&m, "lm_head.weight", 260, 4);
            if (tied || there)
                model_written(&m, &(size_t){0});
            else
                model_refused(&m, "the weights lack what is output.weight in a GGUF file");
            model_end(&m);
        }
}

// ---- q8_0 ----

// The bytes are those of PyPI's gguf, quants.quantize(x, Q8_0).
static void q8_0_blocks(void **state) {
    (void)state;
    static const uint8_t want[2][34] = {
        {79,  43, 152, 159, 165, 172, 178, 185, 191, 198, 204, 211, 217, 224, 230, 237, 243,
         250, 0,  6,   13,  19,  26,  32,  39,  45,  52,  58,  65,  71,  78,  84,  91,  129},
        {0, 60, 127, 1, 255, 2, 3, 253}}; // a scale of 1: halves are rounded away from 0
    float x[64] = {[32] = 127, 0.5F, -0.5F, 1.5F, 2.5F, -2.5F};
    uint8_t got[2][34];
    const struct rlhf__rounding from = {"FILE", "T", 64};
    struct rlhf__error err = {0, ""};
    for (int i = 0; i < 32; i++)
        x[i] = i < 31 ? (float)((i - 16) * 0.37) : -7.25F;
    check_ok(rlhf__round_f32(x, 64, RLHF__TENSOR_Q8_0, got, &from, &err), &err);
    assert_memory_equal(got, want, sizeof want);
    for (int i = 0; i < 64; i++)
        x[i] = i == 40 ? 1e-40F : 0; // its scale is 0 in f16
    check_ok(rlhf__round_f32(x, 64, RLHF__TENSOR_Q8_0, got, &from, &err), &err);
    for (int i = 0; i < 68; i++)
        assert_int_equal(got[i / 34][i % 34], 0);
    static const float bad[] = {INFINITY, NAN, -1e7F * 127};
    for (int i = 0; i < 3; i++) {
        x[41] = bad[i];
        check_error(rlhf__round_f32(x, 64, RLHF__TENSOR_Q8_0, got, &from, &err), RLHF_E_INVALID,
                    &err, "FILE: element 105 of tensor T is ");
    }
}

// Rows of queries are rearranged before they become blocks, and rows without whole blocks are F16.
static void q8_0_file(void **state) {
    struct model m;
    struct reader r;
    size_t len;
    model_begin(&m, *state,
                "{\"model_type\": \"llama\", \"architectures\": [\"LlamaForCausalLM\"], "
                "\"vocab_size\": 9, \"hidden_size\": 32, \"intermediate_size\": 3, "
                "\"num_hidden_layers\": 1, \"num_attention_heads\": 1, \"num_key_value_heads\": 1, "
                "\"head_dim\": 4, \"max_position_embeddings\": 16, \"rms_norm_eps\": 0.5}",
                "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": []}, "
                "\"pre_tokenizer\": " BYTE_LEVEL "}");
    model_add(&m, "model.embed_tokens.weight", 9, 32);
    model_add(&m, "model.layers.0.self_attn.q_proj.weight", 4, 32);
    model_add(&m, "model.layers.0.self_attn.k_proj.weight", 4, 32);
    model_add(&m, "model.layers.0.self_attn.v_proj.weight", 4, 32);
    model_add(&m, "model.layers.0.self_attn.o_proj.weight", 32, 4);
    model_add(&m, "model.layers.0.mlp.gate_proj.weight", 3, 32);
    model_add(&m, "model.layers.0.mlp.up_proj.weight", 3, 32);
    model_add(&m, "model.layers.0.mlp.down_proj.weight", 32, 3);
    model_add(&m, "model.layers.0.input_layernorm.weight", 32, 0);
    model_add(&m, "model.layers.0.post_attention_layernorm.weight", 32, 0);
    model_add(&m, "model.norm.weight", 32, 0);
    model_add(&m, "lm_head.weight", 9, 32);
    m.m.dtype = RLHF__TENSOR_Q8_0;
    const uint8_t *bytes = model_written(&m, &len);
    const char *got = reader_head(&r, bytes, len);
    assert_non_null(strstr(got, "general.file_type 4 7\n"));
    assert_non_null(strstr(got, "token_embd.weight 32 9 type 8 at 0\n"
                                "blk.0.attn_q.weight 32 4 type 8 at 320\n"));
    assert_non_null(strstr(got, "blk.0.attn_output.weight 4 32 type 1 at "));
    assert_non_null(strstr(got, "blk.0.attn_norm.weight 32 type 0 at "));
    const int order[4] = {0, 2, 1, 3};
    for (int row = 0; row < 4; row++) {
        uint8_t want[34];
        const struct rlhf__rounding from = {"", "", 0};
        check_ok(
            rlhf__round_f32(m.data[1] + order[row] * 32, 32, RLHF__TENSOR_Q8_0, want, &from, NULL),
            NULL);
        assert_memory_equal(r.p + 320 + row * 34, want, 34);
    }
    rlhf__buf_finish(&r.out);
    model_end(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(llama, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(gpt2, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(configs, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(tensors, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(architectures, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(granite, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(olmo2, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(phi3, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(gemma, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(gemma_refused, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(output_tables, scratch_setup, scratch_teardown),
        cmocka_unit_test(q8_0_blocks),
        cmocka_unit_test_setup_teardown(q8_0_file, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests_name("gguf", tests, NULL, NULL);
}
