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
        cmocka_unit_test_setup_teardown(output_tables, scratch_setup, scratch_teardown),
        cmocka_unit_test(q8_0_blocks),
        cmocka_unit_test_setup_teardown(q8_0_file, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests_name("gguf", tests, NULL, NULL);
}
