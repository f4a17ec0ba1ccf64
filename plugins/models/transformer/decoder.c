// transformer/decoder.c: see decoder.h.
#include "decoder.h"

#include <math.h>
#include <string.h>

typedef struct rlhf_tf_decoder config;

#define MISSING RLHF_TF_MISSING

static const char *const null_only[] = {"null", NULL};
static const char *const tied_names[] = {"false", "true", "by the model_type", NULL};
// transformers calls the first and the last kind alike.
static const char *const layer_types[] = {"full_attention", "sliding_attention", "attention",
                                          "conv",           "linear_attention",  NULL};

// The options of the two objects that describe rotary positions: rope_parameters, rope_scaling.
// clang-format off
// NOLINTBEGIN(bugprone-macro-parentheses): a member in offsetof must not be in parentheses
#define ROPE_OPTS(o)                                                                               \
    RLHF_OPT_STR(config, o.rope_type, NULL, "default, linear, llama3, yarn or longrope"),          \
    RLHF_OPT_STR(config, o.type, NULL, "what rope_type was called before"),                        \
    RLHF_OPT_F64(config, o.rope_theta, 0, 0, 1e15, "base of the wavelengths"),                     \
    RLHF_OPT_F64(config, o.factor, 0, 0, 1e6, "wavelengths are stretched by this"),                \
    RLHF_OPT_F64(config, o.low_freq_factor, 0, 0, 1e6, "llama3: longer waves are stretched"),      \
    RLHF_OPT_F64(config, o.high_freq_factor, 0, 0, 1e6, "llama3: shorter waves are not"),          \
    RLHF_OPT_F64(config, o.attention_factor, 0, 0, 1e6,                                            \
                 "yarn, longrope: scale of cosines and sines"),                                    \
    RLHF_OPT_F64(config, o.beta_fast, 0, 0, 1e6, "yarn: rotations above which nothing changes"),   \
    RLHF_OPT_F64(config, o.beta_slow, 0, 0, 1e6, "yarn: rotations below which all is stretched"),  \
    RLHF_OPT_F64(config, o.mscale, 0, 0, 1e6, "yarn: for attention_factor, if it is not given"),   \
    RLHF_OPT_F64(config, o.mscale_all_dim, 0, 0, 1e6, "yarn: likewise"),                           \
    RLHF_OPT_F64(config, o.partial_rotary_factor, MISSING, MISSING, 1, "phi3, qwen3_5_text: the part of a head that is rotated"), \
    RLHF_OPT_F64_LIST(config, o.short_factor, 1e-9, 1e9, "longrope: wavelengths are stretched"),   \
    RLHF_OPT_F64_LIST(config, o.long_factor, 1e-9, 1e9, "longrope: the same, with long_factors"),  \
    RLHF_OPT_I64(config, o.original_max_position_embeddings, 0, 0, 1 << 24,                        \
                 "context before it was stretched"),                                               \
    RLHF_OPT_BOOL(config, o.truncate, 1, "yarn: the bounds are whole pairs")
// The options of the object `at` in rope_parameters.
#define KIND_F64(at, o, f, most, text)                                                             \
    {.key = "rope_parameters." at "." #f, .help = "gemma3_text, olmo3: " text, .type = RLHF_T_F64, \
     .offset = offsetof(config, o.f), .f_max = (most)}
#define KIND_OPTS(at, o)                                                                           \
    {.key = "rope_parameters." at ".rope_type",                                                    \
     .help = "gemma3_text, olmo3: default, linear or, without a window, yarn",                     \
     .type = RLHF_T_STR, .offset = offsetof(config, o.rope_type)},                                 \
    KIND_F64(at, o, rope_theta, 1e15, "base of the wavelengths"),                                  \
    KIND_F64(at, o, factor, 1e6, "wavelengths are stretched by this")
// yarn, of layers without a window
#define KIND_YARN_OPTS(at, o)                                                                      \
    KIND_F64(at, o, attention_factor, 1e6, "yarn: scale of cosines and sines"),                    \
    KIND_F64(at, o, beta_fast, 1e6, "yarn: rotations above which nothing changes"),                \
    KIND_F64(at, o, beta_slow, 1e6, "yarn: rotations below which all is stretched"),               \
    KIND_F64(at, o, mscale, 1e6, "yarn: for attention_factor, if it is not given"),                \
    KIND_F64(at, o, mscale_all_dim, 1e6, "yarn: likewise"),                                        \
    {.key = "rope_parameters." at ".original_max_position_embeddings",                             \
     .help = "gemma3_text, olmo3: context before it was stretched", .type = RLHF_T_I64,            \
     .offset = offsetof(config, o.original_max_position_embeddings), .i_max = 1 << 24},            \
    {.key = "rope_parameters." at ".truncate", .help = "yarn: the bounds are whole pairs",         \
     .type = RLHF_T_BOOL, .offset = offsetof(config, o.truncate), .i_def = 1, .i_max = 1}
#define NO_KIND(at, o)                                                                             \
    {.key = "rope_scaling." at, .help = "no positions by kind of layer", .type = RLHF_T_ENUM,      \
     .offset = offsetof(config, o), .choices = null_only}
// NOLINTEND(bugprone-macro-parentheses)
// clang-format on
#define SIZE(f, hi, text)                                                                          \
    {                                                                                              \
        .key = #f, .help = (text), .type = RLHF_T_I64, .flags = RLHF_OPT_REQUIRED,                 \
        .offset = offsetof(config, f), .i_min = 1, .i_max = (hi)                                   \
    }

const rlhf_opt rlhf_tf_decoder_opts[RLHF_TF_N_DECODER_OPTS] = {
    SIZE(vocab_size, 1 << 24, "number of token ids"),
    SIZE(hidden_size, 1 << 15, "width of the residual stream"),
    RLHF_OPT_I64(config, intermediate_size, 0, 0, 1 << 18,
                 "width of the MLP; needed, except with block_ff_dim"),
    SIZE(num_hidden_layers, 1024, "number of layers"),
    SIZE(num_attention_heads, 1024, "heads of queries per layer"),
    SIZE(max_position_embeddings, 1 << 24, "context length in tokens"),
    RLHF_OPT_I64_OR_NULL(config, num_key_value_heads, MISSING, MISSING, 1024,
                         "heads of keys and values per layer"),
    RLHF_OPT_I64(config, head_dim, 0, 0, 1024, "width of a head"),
    RLHF_OPT_I64(config, pad_token_id, -1, INT32_MIN, INT32_MAX,
                 "the score head reads the last token that is not this one"),
    RLHF_OPT_STR(config, hidden_act, "silu", "silu, gelu, gelu_new, gelu_pytorch_tanh or relu"),
    RLHF_OPT_F64_ABOVE(config, rms_norm_eps, 1e-6, 0, 1, "added to the mean square in norms"),
    RLHF_OPT_F64(config, initializer_range, 0.02, 0, 10, "standard deviation of fresh matrices"),
    RLHF_OPT_ENUM(config, tie_word_embeddings, RLHF_TF_TIED_BY_FAMILY, tied_names,
                  "the LM head is the token embedding"),
    RLHF_OPT_F64(config, rope_theta, 0, 0, 1e15, "rope_parameters.rope_theta of older files"),
    RLHF_OPT_F64(
        config, partial_rotary_factor, MISSING, MISSING, 1,
        "phi3, qwen3_5_text: the part of a head that is rotated; must be 1 for the others"),
    RLHF_OPT_BOOL(
        config, long_factors, 0,
        "longrope: take long_factor, which allows rows of max_position_embeddings tokens; "
        "without it short_factor and original_max_position_embeddings"),
    RLHF_OPT_I64(config, original_max_position_embeddings, 0, 0, 1 << 24,
                 "context before it was stretched; takes precedence over that of rope_parameters"),
    RLHF_OPT_F64(config, attn_logit_softcapping, 0, 0, 1e9,
                 "gemma2, vaultgemma: scores are capped by this; must be null for the others"),
    RLHF_OPT_F64(config, final_logit_softcapping, 0, 0, 1e9,
                 "gemma2, vaultgemma, gemma3_text: logits are capped by this; must be null for the "
                 "others"),
    RLHF_OPT_STR(config, hidden_activation, "gelu_pytorch_tanh",
                 "gemma2, vaultgemma, gemma3_text: like hidden_act"),
    RLHF_OPT_F64(config, query_pre_attn_scalar, 256, 1e-9, 1e9,
                 "gemma2, vaultgemma, gemma3_text: scores are divided by its square root"),
    RLHF_OPT_F64(config, rope_local_base_freq, 0, 0, 1e15,
                 "gemma3_text: rope_theta of layers with a window, in older files"),
    RLHF_OPT_I64(config, sliding_window_pattern, 6, 1, 1 << 20,
                 "gemma3_text: without layer_types, every such layer has no window"),
    RLHF_OPT_BOOL(config, use_bidirectional_attention, 0, "gemma2, gemma3_text: must be false"),
    RLHF_OPT_I64(config, num_experts, 0, 0, 1 << 20, "must be null: the MLP is one"),
    RLHF_OPT_I64(config, num_local_experts, MISSING, MISSING, 1 << 20,
                 "must be null, or 0 for granitemoehybrid: the MLP is one"),
    RLHF_OPT_ENUM(config, quantization_config, 0, null_only, "weights are f32, f16 or bf16"),
    RLHF_OPT_BOOL(config, attention_bias, 0,
                  "the matrix products of attention have biases; not mistral, qwen2"),
    RLHF_OPT_BOOL(config, mlp_bias, 0,
                  "llama, smollm3, granite: the matrix products of the MLP have biases"),
    RLHF_OPT_I64(config, pretraining_tp, 1, 0, 1 << 20, "llama: must be 1"),
    RLHF_OPT_I64_OR_NULL(config, sliding_window, MISSING, MISSING, 1 << 30,
                         "tokens that a token sees in a layer with a window; null: all; if "
                         "missing, 4096, and all for phi3"),
    RLHF_OPT_BOOL(config, use_sliding_window, 0, "qwen2, qwen3, smollm3: layers have a window"),
    RLHF_OPT_I64(config, max_window_layers, 28, 0, 1 << 20,
                 "qwen2, qwen3: layers before the first with a window"),
    RLHF_OPT_I64_LIST(config, no_rope_layers, 0, 1,
                      "smollm3: for each layer, 1 if its queries and keys are rotated"),
    RLHF_OPT_I64(config, no_rope_layer_interval, 4, 1, 1 << 20,
                 "smollm3: without no_rope_layers, every such layer is not rotated"),
    RLHF_OPT_LIST(
        config, layer_types, NULL, layer_types,
        "qwen2, qwen3, gemma2, vaultgemma, gemma3_text, olmo3: which layers have a window; lfm2, "
        "qwen3_5_text: which have a state; goes before max_window_layers, sliding_window_pattern, "
        "full_attn_idxs and full_attention_interval"),
    RLHF_OPT_F64_ABOVE(config, embedding_multiplier, 1, 0, 1e9,
                       "granite: factor of the embeddings"),
    RLHF_OPT_F64_ABOVE(config, residual_multiplier, 1, 0, 1e9,
                       "granite: factor of the results of attention and MLP"),
    RLHF_OPT_F64_ABOVE(config, attention_multiplier, 1, 0, 1e9, "granite: factor of scores"),
    RLHF_OPT_F64_ABOVE(config, logits_scaling, 1, 0, 1e9, "granite: divisor of the logits"),
    RLHF_OPT_I64(config, shared_intermediate_size, 1024, 1, 1 << 18,
                 "granitemoehybrid: width of the MLP"),
    RLHF_OPT_STR(config, position_embedding_type, NULL,
                 "granitemoehybrid: rope, or null for no positions"),
    RLHF_OPT_F64_ABOVE(config, norm_eps, 1e-5, 0, 1, "lfm2: like rms_norm_eps"),
    RLHF_OPT_I64(config, conv_L_cache, 3, 0, 1 << 20, "lfm2: tokens that a convolution reads"),
    RLHF_OPT_BOOL(config, conv_bias, 0, "lfm2: layers with a convolution have biases"),
    RLHF_OPT_I64_LIST(config, full_attn_idxs, 0, 1 << 20,
                      "lfm2: without layer_types, the layers with attention; if missing, all"),
    RLHF_OPT_I64(config, block_ff_dim, 0, 0, 1 << 18,
                 "lfm2: goes before intermediate_size, which it is called in older files"),
    RLHF_OPT_BOOL(config, block_auto_adjust_ff_dim, 1,
                  "lfm2: the MLP's width is two thirds of intermediate_size, times "
                  "block_ffn_dim_multiplier, rounded up to block_multiple_of"),
    RLHF_OPT_F64(config, block_ffn_dim_multiplier, 1, 0, 1e6, "lfm2: see block_auto_adjust_ff_dim"),
    RLHF_OPT_I64(config, block_multiple_of, 256, 1, 1 << 18, "lfm2: see block_auto_adjust_ff_dim"),
    RLHF_OPT_ENUM(config, tie_embedding, RLHF_TF_TIED_BY_FAMILY, tied_names,
                  "lfm2: goes before tie_word_embeddings"),
    RLHF_OPT_I64(config, linear_conv_kernel_dim, 4, 0, 1 << 20,
                 "qwen3_5_text: tokens that a convolution reads"),
    RLHF_OPT_I64(config, linear_key_head_dim, 128, 1, 1 << 15,
                 "qwen3_5_text: width of a key head of the delta rule"),
    RLHF_OPT_I64(config, linear_value_head_dim, 128, 1, 1 << 15,
                 "qwen3_5_text: width of its value heads"),
    RLHF_OPT_I64(config, linear_num_key_heads, 16, 1, 1024, "qwen3_5_text: its key heads"),
    RLHF_OPT_I64(config, linear_num_value_heads, 32, 1, 1024, "qwen3_5_text: its value heads"),
    RLHF_OPT_I64(config, full_attention_interval, 4, 1, 1 << 20,
                 "qwen3_5_text: without layer_types, every such layer has attention"),
    ROPE_OPTS(rope_parameters),
    ROPE_OPTS(rope_scaling),
    KIND_OPTS("full_attention", rope_full),
    KIND_YARN_OPTS("full_attention", rope_full),
    KIND_OPTS("sliding_attention", rope_sliding),
    NO_KIND("full_attention", rope_scaling_full_attention),
    NO_KIND("sliding_attention", rope_scaling_sliding_attention),
};
_Static_assert(sizeof rlhf_tf_decoder_opts / sizeof *rlhf_tf_decoder_opts == RLHF_TF_N_DECODER_OPTS,
               "the header says how many there are");

// All names of tensors. Which of the tensors exist depends on biases, norms and the other
// settings.
static const struct rlhf_tf_name globals[] = {
    {RLHF_TF_WTE, RLHF_TF_ALL, "model.embed_tokens.weight"},
    {RLHF_TF_FINAL_G, RLHF_TF_ALL, "model.norm.weight"},
    {RLHF_TF_LM, RLHF_TF_ALL, "lm_head.weight"},
    {RLHF_TF_SCORE_W, RLHF_TF_ALL, "score.weight"},
    {0, RLHF_TF_ALL, NULL}};

static const struct rlhf_tf_name layers[] = {
    RLHF_TF_ATTENTION_NAMES,
    {RLHF_TF_N2_G, RLHF_TF_ALL, "post_attention_layernorm.weight"},
    {RLHF_TF_FC_W, RLHF_TF_GATE, "mlp.gate_proj.weight"},
    {RLHF_TF_FC_B, RLHF_TF_GATE, "mlp.gate_proj.bias"},
    {RLHF_TF_FC_W, RLHF_TF_UP, "mlp.up_proj.weight"},
    {RLHF_TF_FC_B, RLHF_TF_UP, "mlp.up_proj.bias"},
    {RLHF_TF_OUT_W, RLHF_TF_ALL, "mlp.down_proj.weight"},
    {RLHF_TF_OUT_B, RLHF_TF_ALL, "mlp.down_proj.bias"},
    {0, RLHF_TF_ALL, NULL}};

// With norms of the blocks' outputs; the norm before attention, if any, has Llama's name.
static const struct rlhf_tf_name after_layers[] = {
    RLHF_TF_ATTENTION_NAMES,
    {RLHF_TF_P1_G, RLHF_TF_ALL, "post_attention_layernorm.weight"},
    {RLHF_TF_N2_G, RLHF_TF_ALL, "pre_feedforward_layernorm.weight"},
    {RLHF_TF_FC_W, RLHF_TF_GATE, "mlp.gate_proj.weight"},
    {RLHF_TF_FC_W, RLHF_TF_UP, "mlp.up_proj.weight"},
    {RLHF_TF_OUT_W, RLHF_TF_ALL, "mlp.down_proj.weight"},
    {RLHF_TF_P2_G, RLHF_TF_ALL, "post_feedforward_layernorm.weight"},
    {0, RLHF_TF_ALL, NULL}};

// ---- unsupported settings ----

static rlhf_status refuse_number(const rlhf_host *host, const char *key, double found) {
    return rlhf_failf(host, RLHF_E_UNSUPPORTED, "config.json: %s %.10g is not implemented", key,
                      found);
}

static rlhf_status check_known(const rlhf_host *host, const config *c, uint32_t reads) {
    const struct {
        const char *key;
        double found, only;
    } fields[] = {
        {"attn_logit_softcapping", reads & RLHF_TF_READS_SCORE_CAP ? 0 : c->attn_logit_softcapping,
         0},
        {"final_logit_softcapping", reads & RLHF_TF_READS_GEMMA ? 0 : c->final_logit_softcapping,
         0},
        {"num_experts", (double)c->num_experts, 0},
        {"num_local_experts", c->num_local_experts == MISSING ? 0 : (double)c->num_local_experts,
         0},
    };
    const struct {
        const char *key;
        double found;
    } parts[] = {
        {"partial_rotary_factor", c->partial_rotary_factor},
        {"rope_parameters.partial_rotary_factor", c->rope_parameters.partial_rotary_factor},
        {"rope_scaling.partial_rotary_factor", c->rope_scaling.partial_rotary_factor},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].found != fields[i].only)
            return refuse_number(host, fields[i].key, fields[i].found);
    if (c->sliding_window < 0 && c->sliding_window != MISSING)
        return rlhf_failf(host, RLHF_E_INVALID,
                          "config.json: sliding_window is %lld; it must be null or an integer of "
                          "at least 1",
                          (long long)c->sliding_window);
    if (c->num_key_value_heads < 0 && c->num_key_value_heads != MISSING)
        return rlhf_failf(host, RLHF_E_INVALID,
                          "config.json: num_key_value_heads is %lld; it must be null or an integer "
                          "of at least 1",
                          (long long)c->num_key_value_heads);
    const int32_t partial = (reads & (RLHF_TF_READS_PHI | RLHF_TF_READS_DELTA)) != 0;
    for (size_t i = 0; !partial && i < sizeof parts / sizeof *parts; i++)
        if (parts[i].found != MISSING && parts[i].found != 1)
            return refuse_number(host, parts[i].key, parts[i].found);
    return RLHF_OK;
}

static rlhf_status check_hybrid(const rlhf_host *host, const config *c) {
    const char *type = c->position_embedding_type;
    if (!c->layer_types[0])
        return host->fail(host, RLHF_E_UNSUPPORTED,
                          "config.json: layer_types is missing, which means that all layers are of "
                          "Mamba; known: attention");
    if (c->num_local_experts == MISSING)
        return host->fail(
            host, RLHF_E_UNSUPPORTED,
            "config.json: num_local_experts is missing, which means 8 experts; known: "
            "0");
    if (type && strcmp(type, "rope") != 0)
        return rlhf_failf(host, RLHF_E_UNSUPPORTED,
                          "config.json: position_embedding_type \"%s\" is not implemented; known: "
                          "rope, null",
                          type);
    return RLHF_OK;
}

// 1 if item i of layer_types says that the layer has a window.
static int32_t is_sliding(const config *c, int64_t i) {
    return strcmp(c->layer_types[i], layer_types[1]) == 0;
}

int32_t rlhf_tf_is_sliding(const config *c, const struct rlhf_tf_family *f, int64_t layer) {
    const int64_t every = f->full_every ? f->full_every : c->sliding_window_pattern;
    return c->layer_types[0] ? is_sliding(c, layer) : (layer + 1) % every != 0;
}

// Refuses layer_types that contradict the other settings. `window` is 0 if the config gives none.
static rlhf_status check_layer_types(const rlhf_host *host, const config *c, uint32_t reads,
                                     int64_t window) {
    int64_t n = 0;
    for (; c->layer_types[n]; n++) {
        if (!is_sliding(c, n) || window || reads & RLHF_TF_READS_WINDOW) continue;
        return rlhf_failf(
            host, RLHF_E_UNSUPPORTED,
            "config.json: layer_types has \"sliding_attention\" for layer %lld, but %s; "
            "allowed is \"full_attention\"",
            (long long)n,
            !(reads & (RLHF_TF_READS_USE_WINDOW | RLHF_TF_READS_KINDS))
                ? "this model_type has no windows"
            : reads & RLHF_TF_READS_KINDS || c->use_sliding_window ? "sliding_window is null or 0"
                                                                   : "use_sliding_window is false");
    }
    if (n && n < c->num_hidden_layers)
        return rlhf_failf(host, RLHF_E_INVALID,
                          "config.json: layer_types has items for %lld of the %lld layers; it must "
                          "have one for each",
                          (long long)n, (long long)c->num_hidden_layers);
    return RLHF_OK;
}

// Refuses layers that have a window because layer_types is missing, if the config gives no window.
// transformers opens such a model, and its first forward pass fails.
static rlhf_status check_layer_kinds(const rlhf_host *host, const config *c,
                                     const struct rlhf_tf_family *f) {
    for (int64_t i = 0; !c->layer_types[0] && i < c->num_hidden_layers; i++)
        if (rlhf_tf_is_sliding(c, f, i))
            return rlhf_failf(host, RLHF_E_INVALID,
                              "config.json: sliding_window is null or 0, but layer %lld has a "
                              "window, because layer_types is missing; write an integer of at "
                              "least 1, or layer_types with \"full_attention\" for each layer",
                              (long long)i);
    return RLHF_OK;
}

// Sets the window and the layers that have it, as the configs and masks of transformers do. A
// window that reaches over the whole context has no effect.
static rlhf_status windows_read(const rlhf_host *host, const config *c,
                                const struct rlhf_tf_family *f, struct rlhf_tf_arch *a) {
    const uint32_t reads = f->reads;
    const int32_t all = (reads & RLHF_TF_READS_WINDOW) != 0;
    const int32_t kinds = (reads & RLHF_TF_READS_KINDS) != 0;
    const int32_t some = kinds || (reads & RLHF_TF_READS_USE_WINDOW && c->use_sliding_window);
    const int64_t given = c->sliding_window >= 0      ? c->sliding_window
                          : reads & RLHF_TF_READS_PHI ? 0
                                                      : 4096;
    const int64_t window = all || some ? given : 0;
    if (reads & RLHF_TF_READS_NO_ROPE && c->use_sliding_window && given &&
        given < c->max_position_embeddings)
        return rlhf_failf(host, RLHF_E_UNSUPPORTED,
                          "config.json: use_sliding_window true, with a sliding_window of %lld in "
                          "the layers that do not rotate, is not implemented",
                          (long long)given);
    RLHF_TRY(check_layer_types(host, c, reads, window));
    if (kinds && !window) RLHF_TRY(check_layer_kinds(host, c, f));
    if (window >= c->max_position_embeddings || !window) return RLHF_OK;
    if (all) {
        a->window = (int32_t)window;
        return RLHF_OK;
    }
    a->window_layers = host->alloc(host, (uint64_t)a->n_layer);
    if (!a->window_layers)
        return host->fail(host, RLHF_E_NOMEM, "out of memory for a list of layers");
    for (int32_t i = 0; i < a->n_layer; i++) {
        a->window_layers[i] = (kinds               ? rlhf_tf_is_sliding(c, f, i)
                               : c->layer_types[0] ? is_sliding(c, i)
                                                   : i >= c->max_window_layers) != 0;
        if (a->window_layers[i]) a->window = (int32_t)window;
    }
    return RLHF_OK;
}

static rlhf_status check_caps(const rlhf_host *host, const config *c) {
    const char *missing = !(c->attn_logit_softcapping > 0)    ? "attn_logit_softcapping"
                          : !(c->final_logit_softcapping > 0) ? "final_logit_softcapping"
                                                              : NULL;
    if (!missing) return RLHF_OK;
    return rlhf_failf(
        host, RLHF_E_UNSUPPORTED,
        "config.json: %s is missing, null or 0; it must be a number above 0 (if it is "
        "missing, transformers uses %s: write this number into the file)",
        missing, missing[0] == 'a' ? "50.0" : "30.0");
}

static rlhf_status check_family(const rlhf_host *host, const config *c,
                                const struct rlhf_tf_family *f) {
    if (f->reads & RLHF_TF_NEEDS_CAPS) RLHF_TRY(check_caps(host, c));
    if (f->reads & RLHF_TF_READS_PRETRAINING_TP && c->pretraining_tp > 1)
        return rlhf_failf(host, RLHF_E_UNSUPPORTED,
                          "config.json: pretraining_tp %lld is not implemented; known: 1",
                          (long long)c->pretraining_tp);
    if (f->reads & RLHF_TF_READS_GEMMA && c->use_bidirectional_attention)
        return host->fail(host, RLHF_E_UNSUPPORTED,
                          "config.json: use_bidirectional_attention true is not implemented");
    if (f->reads & RLHF_TF_NEEDS_KV_HEADS && c->num_key_value_heads < 0)
        return host->fail(host, RLHF_E_INVALID,
                          "config.json: num_key_value_heads is missing; this model_type needs it");
    return f->reads & RLHF_TF_READS_HYBRID ? check_hybrid(host, c) : RLHF_OK;
}

// Refuses a size that is JSON's null. The host has already refused sizes that are missing or below
// 1.
static rlhf_status check_sizes(const rlhf_host *host, const config *c) {
    const struct {
        const char *key;
        int64_t found;
    } sizes[] = {{"vocab_size", c->vocab_size},
                 {"hidden_size", c->hidden_size},
                 {"num_hidden_layers", c->num_hidden_layers},
                 {"num_attention_heads", c->num_attention_heads},
                 {"max_position_embeddings", c->max_position_embeddings}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].found < 1)
            return rlhf_failf(host, RLHF_E_INVALID,
                              "config.json: %s must be an integer of at least 1, found null",
                              sizes[i].key);
    if (c->intermediate_size < 1 && c->block_ff_dim < 1)
        return host->fail(host, RLHF_E_INVALID,
                          "config.json: intermediate_size is missing; it must be an integer of at "
                          "least 1");
    return RLHF_OK;
}

static rlhf_status check_heads(const rlhf_host *host, const struct rlhf_tf_arch *a) {
    if (a->head_dim % 2)
        return rlhf_failf(host, RLHF_E_INVALID,
                          "config.json: head_dim (%d) must be even: rotary positions turn pairs",
                          a->head_dim);
    if (a->n_head % a->n_kv_head)
        return rlhf_failf(
            host, RLHF_E_INVALID,
            "config.json: num_attention_heads (%d) must be a multiple of num_key_value_heads (%d)",
            a->n_head, a->n_kv_head);
    return RLHF_OK;
}

// ---- the architecture ----

static int32_t bias_of(const config *c, const struct rlhf_tf_family *f) {
    int32_t bias = f->bias;
    if (f->reads & RLHF_TF_READS_ATTENTION_BIAS && c->attention_bias)
        bias |= RLHF_TF_BIAS_QKV | RLHF_TF_BIAS_PROJ;
    if (f->reads & RLHF_TF_READS_MLP_BIAS && c->mlp_bias) bias |= RLHF_TF_BIAS_MLP;
    return bias;
}

rlhf_status rlhf_tf_decoder_arch(const rlhf_host *host, const config *c,
                                 const struct rlhf_tf_family *f, struct rlhf_tf_arch *out) {
    struct rlhf_tf_arch *a = out;
    *a = (struct rlhf_tf_arch){
        .n_vocab = (int32_t)c->vocab_size,
        .n_ctx = (int32_t)c->max_position_embeddings,
        .d = (int32_t)c->hidden_size,
        .n_layer = (int32_t)c->num_hidden_layers,
        .d_inner = (int32_t)c->intermediate_size,
        .n_head = (int32_t)c->num_attention_heads,
        .n_kv_head = (int32_t)c->num_key_value_heads,
        .head_dim = (int32_t)(c->head_dim ? c->head_dim : f->head_dim),
        .norm = RLHF_TF_NORM_RMS,
        .norm_at = f->norm_at,
        .qk_norm = f->qk_norm,
        .norm_offset = f->norm_offset,
        .causal = 1,
        .gated = 1,
        .embed_scale = f->root_embed ? sqrt((double)c->hidden_size) : 1.0,
        .embed_rounded = f->root_embed,
        .bias = bias_of(c, f),
        .out_in = 1,
        .tied = c->tie_word_embeddings == RLHF_TF_TIED_BY_FAMILY ? f->tied : c->tie_word_embeddings,
        .pooling = RLHF_POOL_LAST,
        .pads = c->pad_token_id >= 0,
        .pad_id = (int32_t)c->pad_token_id,
        .norm_eps = c->rms_norm_eps,
        .init_std = c->initializer_range,
        .layer_prefix = "model.layers.%d.",
        .base_prefix = "model.",
        .globals = f->globals ? f->globals : globals,
        .state_layers = f->state_layers,
        .layers = f->layers                           ? f->layers
                  : f->norm_at == RLHF_TF_NORM_BEFORE ? layers
                                                      : after_layers};
    RLHF_TRY(check_sizes(host, c));
    RLHF_TRY(check_known(host, c, f->reads));
    RLHF_TRY(check_family(host, c, f));
    if (f->reads & RLHF_TF_READS_GEMMA)
        RLHF_TRY(rlhf_tf_activation(host, "hidden_activation", c->hidden_activation, &a->act));
    else
        RLHF_TRY(rlhf_tf_activation(host, "hidden_act", c->hidden_act, &a->act));
    if (a->n_kv_head < 1) a->n_kv_head = a->n_head;
    if (!a->head_dim) {
        RLHF_TRY(rlhf_tf_check(host, a, "hidden_size", "num_attention_heads"));
        a->head_dim = a->d / a->n_head;
    }
    RLHF_TRY(check_heads(host, a));
    a->attn_scale = f->reads & RLHF_TF_READS_GEMMA ? 1.0 / sqrt(c->query_pre_attn_scalar)
                                                   : rlhf_tf_attn_scale(a);
    if (f->reads & RLHF_TF_READS_GEMMA) a->softcap = c->final_logit_softcapping;
    if (f->reads & RLHF_TF_READS_SCORE_CAP) a->attn_softcap = c->attn_logit_softcapping;
    if (f->reads & RLHF_TF_READS_HYBRID) a->d_inner = (int32_t)c->shared_intermediate_size;
    if (f->reads & RLHF_TF_READS_SCALARS) {
        a->attn_scale = c->attention_multiplier;
        a->embed_scale = c->embedding_multiplier;
        a->residual_scale = c->residual_multiplier;
        a->logit_scale = 1 / c->logits_scaling;
    }
    RLHF_TRY(rlhf_tf_rotary_read(host, c, f, a->head_dim, &a->rotary, &a->n_ctx));
    rlhf_status st = windows_read(host, c, f, a);
    if (st >= 0) st = rlhf_tf_states_read(host, c, f, a);
    if (st < 0) {
        host->free(host, a->window_layers);
        host->free(host, a->rotary.frequency);
        host->free(host, a->rotary.layers);
        host->free(host, a->rotary.other);
    }
    return st;
}
