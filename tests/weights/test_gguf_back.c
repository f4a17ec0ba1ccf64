// test_gguf_back.c: a model that is written as a GGUF file reads back as the same model: every
// member of its config.json and every number of its tensors, for each architecture.
#include "gguf_model.h"

#include "tensors/gguf_file.h"
#include "weights/hf_dir.h"
#include "weights/safetensors.h"

#include <math.h>

struct shape {
    const char *name; // "*" is replaced by "model.layers.0.", "#" by "model.layers.1."
    int64_t rows, columns;
};

#define EMBED                                                                                      \
    {"model.embed_tokens.weight", 260, 4}, { "model.norm.weight", 4, 0 }
#define NORMS                                                                                      \
    {"*input_layernorm.weight", 4, 0}, { "*post_attention_layernorm.weight", 4, 0 }
#define OUTPUT                                                                                     \
    { "*self_attn.o_proj.weight", 4, 32 }
#define DOWN                                                                                       \
    { "*mlp.down_proj.weight", 4, 3 }
#define GATE_UP                                                                                    \
    {"*mlp.gate_proj.weight", 3, 4}, { "*mlp.up_proj.weight", 3, 4 }
#define ATTENTION                                                                                  \
    {"*self_attn.q_proj.weight", 32, 4}, {"*self_attn.k_proj.weight", 16, 4},                      \
        {"*self_attn.v_proj.weight", 16, 4}, OUTPUT
#define BIASES                                                                                     \
    {"*self_attn.q_proj.bias", 32, 0}, {"*self_attn.k_proj.bias", 16, 0}, {                        \
        "*self_attn.v_proj.bias", 16, 0                                                            \
    }
#define QK_NORMS                                                                                   \
    {"*self_attn.q_norm.weight", 16, 0}, { "*self_attn.k_norm.weight", 16, 0 }
#define AROUND                                                                                     \
    {"*pre_feedforward_layernorm.weight", 4, 0}, { "*post_feedforward_layernorm.weight", 4, 0 }

static const struct shape llama[] = {
    EMBED, NORMS, ATTENTION, GATE_UP, DOWN, {"lm_head.weight", 260, 4}, {NULL, 0, 0}};
static const struct shape wide[] = {EMBED,
                                    NORMS,
                                    {"*self_attn.q_proj.weight", 128, 4},
                                    {"*self_attn.k_proj.weight", 64, 4},
                                    {"*self_attn.v_proj.weight", 64, 4},
                                    {"*self_attn.o_proj.weight", 4, 128},
                                    GATE_UP,
                                    DOWN,
                                    {NULL, 0, 0}};
static const struct shape llama_bias[] = {EMBED,
                                          NORMS,
                                          ATTENTION,
                                          GATE_UP,
                                          DOWN,
                                          BIASES,
                                          {"*self_attn.o_proj.bias", 4, 0},
                                          {"*mlp.gate_proj.bias", 3, 0},
                                          {"*mlp.up_proj.bias", 3, 0},
                                          {"*mlp.down_proj.bias", 4, 0},
                                          {NULL, 0, 0}};
static const struct shape qwen2[] = {EMBED, NORMS, ATTENTION, BIASES, GATE_UP, DOWN, {NULL, 0, 0}};
static const struct shape qwen3[] = {EMBED,   NORMS, ATTENTION,   QK_NORMS,
                                     GATE_UP, DOWN,  {NULL, 0, 0}};
static const struct shape smollm3[] = {EMBED, NORMS, ATTENTION, GATE_UP, DOWN, {NULL, 0, 0}};
static const struct shape hybrid[] = {EMBED,
                                      NORMS,
                                      ATTENTION,
                                      {"*shared_mlp.input_linear.weight", 6, 4},
                                      {"*shared_mlp.output_linear.weight", 4, 3},
                                      {NULL, 0, 0}};
static const struct shape phi3[] = {EMBED,
                                    NORMS,
                                    {"*self_attn.qkv_proj.weight", 12, 4},
                                    {"*self_attn.o_proj.weight", 4, 4},
                                    {"*mlp.gate_up_proj.weight", 6, 4},
                                    DOWN,
                                    {NULL, 0, 0}};
static const struct shape gemma2[] = {EMBED, NORMS, AROUND, ATTENTION, GATE_UP, DOWN, {NULL, 0, 0}};
static const struct shape gemma3[] = {EMBED,    NORMS,   AROUND, ATTENTION,
                                      QK_NORMS, GATE_UP, DOWN,   {NULL, 0, 0}};
static const struct shape olmo[] = {EMBED,
                                    {"*self_attn.q_proj.weight", 4, 4},
                                    {"*self_attn.k_proj.weight", 2, 4},
                                    {"*self_attn.v_proj.weight", 2, 4},
                                    {"*self_attn.o_proj.weight", 4, 4},
                                    {"*self_attn.q_norm.weight", 4, 0},
                                    {"*self_attn.k_norm.weight", 2, 0},
                                    {"*post_attention_layernorm.weight", 4, 0},
                                    {"*post_feedforward_layernorm.weight", 4, 0},
                                    GATE_UP,
                                    DOWN,
                                    {"lm_head.weight", 260, 4},
                                    {NULL, 0, 0}};
static const struct shape gpt2[] = {{"transformer.wte.weight", 259, 4},
                                    {"transformer.wpe.weight", 3, 4},
                                    {"transformer.h.0.ln_1.weight", 4, 0},
                                    {"transformer.h.0.ln_1.bias", 4, 0},
                                    {"transformer.h.0.attn.c_attn.weight", 4, 12},
                                    {"transformer.h.0.attn.c_attn.bias", 12, 0},
                                    {"transformer.h.0.attn.c_proj.weight", 4, 4},
                                    {"transformer.h.0.attn.c_proj.bias", 4, 0},
                                    {"transformer.h.0.ln_2.weight", 4, 0},
                                    {"transformer.h.0.ln_2.bias", 4, 0},
                                    {"transformer.h.0.mlp.c_fc.weight", 4, 5},
                                    {"transformer.h.0.mlp.c_fc.bias", 5, 0},
                                    {"transformer.h.0.mlp.c_proj.weight", 5, 4},
                                    {"transformer.h.0.mlp.c_proj.bias", 4, 0},
                                    {"transformer.ln_f.weight", 4, 0},
                                    {"transformer.ln_f.bias", 4, 0},
                                    {NULL, 0, 0}};

#define MLP(at)                                                                                    \
    {at "mlp.gate_proj.weight", 3, 4}, {at "mlp.up_proj.weight", 3, 4}, {                          \
        at "mlp.down_proj.weight", 4, 3                                                            \
    }
// Two heads of keys and six of values, of width 2. Queries have gates.
static const struct shape qwen35[] = {EMBED,
                                      NORMS,
                                      {"*linear_attn.in_proj_qkv.weight", 20, 4},
                                      {"*linear_attn.in_proj_z.weight", 12, 4},
                                      {"*linear_attn.in_proj_b.weight", 6, 4},
                                      {"*linear_attn.in_proj_a.weight", 6, 4},
                                      {"*linear_attn.conv1d.weight", 20, -3},
                                      {"*linear_attn.A_log", 6, 0},
                                      {"*linear_attn.dt_bias", 6, 0},
                                      {"*linear_attn.norm.weight", 2, 0},
                                      {"*linear_attn.out_proj.weight", 4, 12},
                                      MLP("*"),
                                      {"#input_layernorm.weight", 4, 0},
                                      {"#post_attention_layernorm.weight", 4, 0},
                                      {"#self_attn.q_proj.weight", 64, 4},
                                      {"#self_attn.k_proj.weight", 16, 4},
                                      {"#self_attn.v_proj.weight", 16, 4},
                                      {"#self_attn.o_proj.weight", 4, 32},
                                      {"#self_attn.q_norm.weight", 16, 0},
                                      {"#self_attn.k_norm.weight", 16, 0},
                                      MLP("#"),
                                      {NULL, 0, 0}};
static const struct shape lfm2[] = {
    {"model.embed_tokens.weight", 260, 4},    {"model.embedding_norm.weight", 4, 0},
    {"*operator_norm.weight", 4, 0},          {"*ffn_norm.weight", 4, 0},
    {"*conv.in_proj.weight", 12, 4},          {"*conv.conv.weight", 4, -3},
    {"*conv.out_proj.weight", 4, 4},          {"*feed_forward.w1.weight", 3, 4},
    {"*feed_forward.w3.weight", 3, 4},        {"*feed_forward.w2.weight", 4, 3},
    {"#operator_norm.weight", 4, 0},          {"#ffn_norm.weight", 4, 0},
    {"#self_attn.q_proj.weight", 32, 4},      {"#self_attn.k_proj.weight", 16, 4},
    {"#self_attn.v_proj.weight", 16, 4},      {"#self_attn.out_proj.weight", 4, 32},
    {"#self_attn.q_layernorm.weight", 16, 0}, {"#self_attn.k_layernorm.weight", 16, 0},
    {"#feed_forward.w1.weight", 3, 4},        {"#feed_forward.w3.weight", 3, 4},
    {"#feed_forward.w2.weight", 4, 3},        {NULL, 0, 0}};

#define QWEN35                                                                                     \
    "{\"model_type\": \"qwen3_5_text\", \"architectures\": [\"Qwen3_5ForCausalLM\"], "             \
    "\"vocab_size\": 260, \"tie_word_embeddings\": true, \"hidden_size\": 4, "                     \
    "\"intermediate_size\": 3, \"num_hidden_layers\": 2, \"num_attention_heads\": 2, "             \
    "\"num_key_value_heads\": 1, \"head_dim\": 16, \"max_position_embeddings\": 16, "              \
    "\"rms_norm_eps\": 1e-5, \"bos_token_id\": 1, \"hidden_act\": \"silu\", "                      \
    "\"linear_conv_kernel_dim\": 3, \"linear_key_head_dim\": 2, \"linear_value_head_dim\": 2, "    \
    "\"linear_num_key_heads\": 2, \"linear_num_value_heads\": 6, \"layer_types\": "                \
    "[\"linear_attention\", \"full_attention\"], \"rope_parameters\": {\"rope_type\": "            \
    "\"default\", \"rope_theta\": 500000.0, \"partial_rotary_factor\": 0.25, "                     \
    "\"mrope_section\": [1, 1, 0], \"mrope_interleaved\": true}}"

#define OF(type, class, tied)                                                                      \
    "\"model_type\": \"" type                                                                      \
    "\", \"architectures\": [\"" class "\"], \"vocab_size\": 260, \"tie_word_embeddings\": " tied  \
                                       ", \"hidden_size\": 4, "                                    \
                                       "\"intermediate_size\": 3, \"num_hidden_layers\": 1, "      \
                                       "\"num_key_value_heads\": 1, "                              \
                                       "\"max_position_embeddings\": 16, \"rms_norm_eps\": 1e-5, " \
                                       "\"bos_token_id\": 1"
#define HEADS      ", \"num_attention_heads\": 2, \"head_dim\": 16"
#define SILU       ", \"hidden_act\": \"silu\""
#define ROPE(more) ", \"rope_parameters\": {\"rope_theta\": 500000.0, \"rope_type\": " more "}"
#define PLAIN      ROPE("\"default\"")
#define BANDS(low)                                                                                 \
    ROPE("\"llama3\", \"factor\": 8.0, \"low_freq_factor\": " low ", \"high_freq_factor\": 4.0, "  \
         "\"original_max_position_embeddings\": 8192")
#define BANDS_32                                                                                   \
    ROPE("\"llama3\", \"factor\": 8.0, \"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, "      \
         "\"original_max_position_embeddings\": 32")
#define YARN                                                                                       \
    ROPE("\"yarn\", \"factor\": 4.0, \"original_max_position_embeddings\": 8, \"beta_fast\": "     \
         "30.0")
#define GRANITE                                                                                    \
    ", \"attention_multiplier\": 0.0078125, \"embedding_multiplier\": 12.0, "                      \
    "\"residual_multiplier\": 0.22, \"logits_scaling\": 8.0"
#define GEMMA                                                                                      \
    ", \"hidden_activation\": \"gelu_pytorch_tanh\", \"query_pre_attn_scalar\": 16, "              \
    "\"sliding_window\": 8, \"layer_types\": [\"sliding_attention\"]"
#define LISTS "\"long_factor\": [1.5], \"short_factor\": [1.25]"

static const struct {
    const char *config;
    const struct shape *tensors;
} cases[] = {
    {"{" OF("llama", "LlamaForCausalLM", "false") HEADS SILU PLAIN "}", llama},
    {"{" OF("llama", "LlamaForCausalLM", "false") HEADS SILU BANDS("1.0") "}", llama},
    {"{" OF("llama", "LlamaForCausalLM", "true") SILU BANDS_32
     ", \"num_attention_heads\": 2, \"head_dim\": 64}",
     wide},
    {"{" OF("llama", "LlamaForCausalLM", "true")
         SILU BANDS("0.5") ", \"num_attention_heads\": 2, \"head_dim\": 64}",
     wide},
    {"{" OF("llama", "LlamaForCausalLM", "true") HEADS SILU YARN
     ", \"attention_bias\": true, \"mlp_bias\": true}",
     llama_bias},
    {"{" OF("qwen2", "Qwen2ForCausalLM", "true") HEADS SILU ROPE("\"linear\", \"factor\": 2.0") "}",
     qwen2},
    {"{" OF("qwen3", "Qwen3ForCausalLM", "true") HEADS SILU PLAIN "}", qwen3},
    {"{" OF("smollm3", "SmolLM3ForCausalLM", "true") HEADS SILU PLAIN
     ", \"no_rope_layer_interval\": 4}",
     smollm3},
    {"{" OF("granite", "GraniteForCausalLM", "true") HEADS SILU PLAIN GRANITE "}", smollm3},
    {"{" OF("granitemoehybrid", "GraniteMoeHybridForCausalLM", "true") HEADS SILU PLAIN GRANITE
     ", \"shared_intermediate_size\": 3, \"position_embedding_type\": null, "
     "\"num_local_experts\": 0, \"layer_types\": [\"attention\"]}",
     hybrid},
    {"{" OF("phi3", "Phi3ForCausalLM", "true") SILU PLAIN
     ", \"num_attention_heads\": 1, \"head_dim\": 4, \"sliding_window\": null, "
     "\"original_max_position_embeddings\": 16}",
     phi3},
    {"{" OF("phi3", "Phi3ForCausalLM", "true")
         SILU ROPE("\"longrope\", " LISTS
                   ", \"partial_rotary_factor\": 0.5") ", \"num_attention_heads\": 1, "
                                                       "\"head_dim\": 4, \"sliding_window\": 8, "
                                                       "\"original_max_position_embeddings\": 8}",
     phi3},
    {"{" OF("gemma2", "Gemma2ForCausalLM", "true") HEADS GEMMA PLAIN
     ", \"attn_logit_softcapping\": 50.0, \"final_logit_softcapping\": 30.0}",
     gemma2},
    {"{" OF("gemma3_text", "Gemma3ForCausalLM", "true") HEADS GEMMA
     ", \"rope_parameters\": {\"full_attention\": {\"rope_type\": \"linear\", \"rope_theta\": "
     "1000000.0, \"factor\": 8.0}, \"sliding_attention\": {\"rope_type\": \"default\", "
     "\"rope_theta\": 10000.0}}}",
     gemma3},
    {"{" OF("olmo2", "Olmo2ForCausalLM", "false") SILU YARN
     ", \"num_attention_heads\": 2, \"head_dim\": 2}",
     olmo},
    {"{" OF("olmo3", "Olmo3ForCausalLM", "false") SILU
     ", \"num_attention_heads\": 2, \"head_dim\": 2, \"sliding_window\": 8, "
     "\"layer_types\": [\"sliding_attention\"], \"rope_parameters\": "
     "{\"full_attention\": {\"rope_type\": \"yarn\", \"rope_theta\": 500000.0, \"factor\": "
     "4.0, \"original_max_position_embeddings\": 8}, \"sliding_attention\": "
     "{\"rope_type\": \"default\", \"rope_theta\": 500000.0}}}",
     olmo},
    {QWEN35, qwen35},
    {"{\"model_type\": \"lfm2\", \"architectures\": [\"Lfm2ForCausalLM\"], \"vocab_size\": 260, "
     "\"tie_word_embeddings\": true, \"hidden_size\": 4, \"intermediate_size\": 3, "
     "\"num_hidden_layers\": 2, \"num_attention_heads\": 2, \"num_key_value_heads\": 1, "
     "\"head_dim\": 16, \"max_position_embeddings\": 16, \"norm_eps\": 1e-5, \"bos_token_id\": 1, "
     "\"conv_L_cache\": 3, \"conv_bias\": false, \"block_auto_adjust_ff_dim\": false, "
     "\"layer_types\": [\"conv\", \"full_attention\"]" PLAIN "}",
     lfm2},
    {"{\"model_type\": \"gpt2\", \"architectures\": [\"GPT2LMHeadModel\"], \"vocab_size\": 259, "
     "\"n_embd\": 4, \"n_layer\": 1, \"n_head\": 1, \"n_positions\": 3, \"n_inner\": 5, "
     "\"layer_norm_epsilon\": 1e-5, \"eos_token_id\": 4, \"activation_function\": \"gelu_new\", "
     "\"tie_word_embeddings\": true}",
     gpt2},
};

static const char *full_name(const char *name, char out[128]) {
    const int layer = *name == '*' ? 0 : *name == '#' ? 1 : -1;
    snprintf(out, 128, "%s%s",
             layer == 0   ? "model.layers.0."
             : layer == 1 ? "model.layers.1."
                          : "",
             name + (layer >= 0));
    return out;
}

static void check_config(const struct model *m, const char *path) {
    struct rlhf__error err = {0};
    json_t *got = NULL, *v, *config = (json_t *)(uintptr_t)m->m.config;
    const char *key;
    check_ok(rlhf__hf_config_read(path, &got, &err), &err);
    json_object_foreach(config, key, v) {
        if (json_equal(v, json_object_get(got, key))) continue;
        struct rlhf__buf a = RLHF__BUF_INIT, b = RLHF__BUF_INIT;
        rlhf__json_write(&a, v, 0);
        rlhf__json_write(&b, got, 0);
        fail_msg("%s is %s in %s", key, rlhf__buf_text(&a), rlhf__buf_text(&b));
    }
    json_decref(got);
}

static void check_tensors(const struct model *m, const char *path, size_t n) {
    struct rlhf__error err = {0};
    struct rlhf__weights *w = NULL;
    float got[MAX_ELEMENTS];
    check_ok(rlhf__weights_open(path, &w, &err), &err);
    assert_int_equal(rlhf__weights_count(w), n);
    for (size_t i = 0; i < n; i++) {
        const struct rlhf__tensor *t = &m->tensor[i], *is = rlhf__weights_find(w, t->name);
        if (!is) fail_msg("%s is not there", t->name);
        assert_int_equal(is->ndim, t->ndim);
        assert_memory_equal(is->shape, t->shape, (size_t)t->ndim * sizeof *t->shape);
        for (int64_t step = t->count; step > 0; step /= 5) // whole, and in pieces
            for (int64_t at = 0; at < t->count; at += step)
                check_ok(rlhf__tensor_read_f32(is, at, t->count - at < step ? t->count - at : step,
                                               got + at, &err),
                         &err);
        const int decays = strstr(t->name, "A_log") != NULL; // the file has -exp(x)
        for (int64_t k = 0; decays && k < t->count; k++)
            if (fabsf(got[k] - m->data[i][k]) <= 2e-6F) got[k] = m->data[i][k];
        if (memcmp(got, m->data[i], (size_t)t->count * sizeof *got) != 0)
            fail_msg("%s has other numbers", t->name);
    }
    rlhf__weights_close(w);
}

static void read_back(void **state) {
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        static struct model m;
        char names[MAX_TENSORS][128];
        size_t n = 0, len;
        model_begin(&m, *state, cases[i].config, GPT2_FORM);
        for (const struct shape *t = cases[i].tensors; t->name; t++, n++)
            model_add(&m, full_name(t->name, names[n]), t->rows, t->columns);
        model_written(&m, &len);
        check_config(&m, scratch_path(*state, "tiny.gguf"));
        check_tensors(&m, scratch_path(*state, "tiny.gguf"), n);
        model_end(&m);
    }
}

// What llama.cpp's architectures cannot represent, in the words of the first field that says so.
static void refused(void **state) {
#define SIZES(type)                                                                                \
    "{\"model_type\": \"" type "\", \"vocab_size\": 260, \"hidden_size\": 4, "                     \
    "\"intermediate_size\": 3, \"num_hidden_layers\": 3, \"num_attention_heads\": 2, "             \
    "\"num_key_value_heads\": 1, \"head_dim\": 16, \"max_position_embeddings\": 16"
    static const char *const models[][2] = {
        {SIZES("qwen3_5_text") ", \"linear_value_head_dim\": 64}", "linear_value_head_dim is 64"},
        {SIZES("qwen3_5_text") ", \"linear_num_value_heads\": 24}", "linear_num_value_heads is 24"},
        {SIZES("qwen3_5_text") ", \"layer_types\": [\"full_attention\", \"linear_attention\", "
                               "\"full_attention\"]}",
         "layer_types is [\"full_attention\","},
        {SIZES("qwen3_5_text") ", \"layer_types\": [\"conv\", \"conv\", \"conv\"]}",
         "layer_types is [\"conv\","},
        {SIZES("qwen3_5_text") ", \"partial_rotary_factor\": 0.05}", "partial_rotary_factor"},
        {SIZES("qwen3_5_text") ", \"rope_parameters\": {\"rope_type\": \"dynamic\"}}", "dynamic"},
        {SIZES("lfm2") ", \"conv_bias\": true}", "conv_bias is true"},
        {SIZES("lfm2") ", \"conv_L_cache\": 0}", "conv_L_cache is 0"},
        {SIZES("lfm2") ", \"layer_types\": [\"conv\", \"conv\", \"linear_attention\"]}",
         "layer_types is"},
        {SIZES("lfm2") ", \"full_attn_idxs\": [0]}",
         "tensor model.layers.0.conv.in_proj.weight does not belong to a layer of the kind"},
    };
    for (size_t i = 0; i < CHECK_COUNT(models); i++) {
        static struct model m;
        model_begin(&m, *state, models[i][0], GPT2_FORM);
        model_add(&m, "model.embed_tokens.weight", 260, 4);
        model_add(&m, "model.layers.0.conv.in_proj.weight", 12, 4);
        model_refused(&m, models[i][1]);
        model_end(&m);
    }
}

// The file's element (r, c) of a tensor.
static float element(const struct rlhf__gguf_file *f, const char *name, int64_t r, int64_t c) {
    const struct rlhf__tensor *t = rlhf__gguf_tensor_find(f, name);
    struct rlhf__error err = {0};
    float x = 0;
    if (!t) fail_msg("%s is not there", name);
    check_ok(rlhf__tensor_read_f32(t, r * (t->ndim > 1 ? t->shape[1] : 1) + c, 1, &x, &err), &err);
    return x;
}

// Heads of values: here 0, 1 and 2 share the first head of keys; in the file they are 0, 2 and 4.
static void order_of_heads(void **state) {
    static const int64_t here[6] = {0, 3, 1, 4, 2, 5}; // of the heads in the order of the file
    static struct model m;
    char names[MAX_TENSORS][128];
    struct rlhf__gguf_file *f = NULL;
    struct rlhf__error err = {0};
    size_t n = 0, len;
    model_begin(&m, *state, QWEN35, GPT2_FORM);
    for (const struct shape *t = qwen35; t->name; t++, n++)
        model_add(&m, full_name(t->name, names[n]), t->rows, t->columns);
    model_written(&m, &len);
    check_ok(rlhf__gguf_open(scratch_path(*state, "tiny.gguf"), &f, &err), &err);
    const float *const *d = (const float *const[]){m.data[4], m.data[5],  m.data[6], m.data[8],
                                                   m.data[9], m.data[10], m.data[12]};
    for (int64_t h = 0; h < 6; h++) {
        for (int64_t k = 0; k < 2; k++) {
            const int64_t to = 2 * h + k, from = 2 * here[h] + k;
            assert_true(element(f, "blk.0.attn_qkv.weight", 8 + to, 1) == d[0][(8 + from) * 4 + 1]);
            assert_true(element(f, "blk.0.attn_gate.weight", to, 3) == d[1][from * 4 + 3]);
            assert_true(element(f, "blk.0.ssm_conv1d.weight", 8 + to, 2) ==
                        d[3][(8 + from) * 3 + 2]);
            assert_true(element(f, "blk.0.ssm_out.weight", 2, to) == d[6][2 * 12 + from]);
        }
        assert_true(element(f, "blk.0.ssm_beta.weight", h, 2) == d[2][here[h] * 4 + 2]);
        assert_float_equal(element(f, "blk.0.ssm_a", h, 0), -exp((double)d[4][here[h]]), 1e-2);
        assert_true(element(f, "blk.0.ssm_dt.bias", h, 0) == d[5][here[h]]);
    }
    for (int64_t r = 0; r < 8; r++) // queries and keys
        assert_true(element(f, "blk.0.attn_qkv.weight", r, 0) == d[0][r * 4]);
    assert_true(element(f, "output_norm.weight", 1, 0) == m.data[1][1] + 1);
    assert_true(element(f, "blk.0.ssm_norm.weight", 1, 0) == m.data[11][1]);
    assert_int_equal(rlhf__gguf_tensor_find(f, "blk.0.ssm_conv1d.weight")->ndim, 2);
    rlhf__gguf_close(f);
    model_end(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(read_back, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(order_of_heads, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(refused, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests_name("gguf_back", tests, NULL, NULL);
}
