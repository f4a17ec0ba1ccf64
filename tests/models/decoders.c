// tests/models/decoders.c: see decoders.h.
#include "decoders.h"

// clang-format off
#define SHAPE                                                                                      \
    {"vocab_size", "61"}, {"hidden_size", "16"}, {"intermediate_size", "20"},                      \
    {"num_hidden_layers", "2"}, {"max_position_embeddings", "24"}
#define TINY SHAPE, {"num_attention_heads", "2"}, {"num_key_value_heads", "1"}
#define WIDE                                                                                       \
    SHAPE, {"num_attention_heads", "4"}, {"num_key_value_heads", "2"}, {"head_dim", "8"}
#define END {NULL, NULL}
#define ROPE(key, value) {"rope_parameters." key, value}
#define SCALED WIDE, ROPE("rope_theta", "100")

static const struct setting llama[] = {TINY, END};
static const struct setting llama_bias[] = {
    TINY, {"attention_bias", "1"}, {"mlp_bias", "1"}, {"tie_word_embeddings", "true"}, END};
static const struct setting mistral[] = {
    WIDE, {"hidden_act", "gelu_new"}, END};
const struct setting tiny_qwen2[] = {
    TINY, {"tie_word_embeddings", "true"}, {"rope_theta", "1000"}, END};
static const struct setting qwen3[] = {
    WIDE, {"rms_norm_eps", "1e-3"}, END};
const struct setting tiny_qwen3[] = {
    SCALED, ROPE("rope_type", "yarn"), ROPE("factor", "3"),
    ROPE("beta_fast", "2"), ROPE("beta_slow", "0.5"), ROPE("mscale", "1.5"),
    ROPE("mscale_all_dim", "0.5"), ROPE("truncate", "0"),
    ROPE("original_max_position_embeddings", "64"), END};
const struct setting tied_qwen3[] = {
    WIDE, {"tie_word_embeddings", "true"}, END};
const struct setting wider_qwen3[] = {
    {"vocab_size", "1037"}, {"hidden_size", "80"}, {"intermediate_size", "112"},
    {"num_hidden_layers", "3"}, {"num_attention_heads", "6"}, {"num_key_value_heads", "2"},
    {"max_position_embeddings", "96"}, {"head_dim", "16"},
    {"tie_word_embeddings", "true"}, END};
const struct setting llama_score[] = {TINY, {"pad_token_id", "29"}, END};
const struct setting smollm3_score[] = {
    WIDE, {"no_rope_layers", "1,0"}, {"pad_token_id", "29"}, END};
const struct setting olmo2_score[] = {
    WIDE, {"pad_token_id", "29"}, {"rms_norm_eps", "1e-5"}, END};
const struct setting qwen3_score[] = {
    WIDE, {"pad_token_id", "29"}, END};

static const struct setting linear[] = {
    SCALED, ROPE("rope_type", "linear"), ROPE("factor", "3"), END};
static const struct setting llama3[] = {
    SCALED, ROPE("rope_type", "llama3"), ROPE("factor", "4"), ROPE("low_freq_factor", "0.5"),
    ROPE("high_freq_factor", "2"), ROPE("original_max_position_embeddings", "16"), END};
// The older form of the config.
static const struct setting yarn[] = {
    WIDE, {"rope_theta", "100"}, {"rope_scaling.type", "yarn"},
    {"rope_scaling.factor", "3"}, {"rope_scaling.beta_fast", "2"},
    {"rope_scaling.beta_slow", "0.5"}, {"rope_scaling.original_max_position_embeddings", "64"},
    END};
static const struct setting yarn_factor[] = {
    SCALED, ROPE("rope_type", "yarn"), ROPE("factor", "3"),
    ROPE("attention_factor", "0.7"), ROPE("original_max_position_embeddings", "8"), END};

const struct setting tiny_smollm3[] = {
    WIDE, {"no_rope_layers", "1,0"}, {"attention_bias", "1"}, END};
static const struct setting no_rope[] = {
    SCALED, ROPE("rope_type", "linear"), ROPE("factor", "3"), {"no_rope_layers", "0,1"},
    {"tie_word_embeddings", "false"}, END};
static const struct setting no_rope_interval[] = {
    WIDE, {"no_rope_layer_interval", "2"}, END};

const struct setting tiny_window[] = {
    WIDE, {"sliding_window", "4"}, END};
static const struct setting qwen2_window[] = {
    TINY, {"use_sliding_window", "1"}, {"sliding_window", "3"}, {"max_window_layers", "1"}, END};
static const struct setting qwen3_window[] = {
    WIDE, {"use_sliding_window", "1"}, {"sliding_window", "4"},
    {"layer_types", "sliding_attention,full_attention"}, END};
const struct setting wider_window[] = {
    {"vocab_size", "1037"}, {"hidden_size", "80"}, {"intermediate_size", "112"},
    {"num_hidden_layers", "3"}, {"num_attention_heads", "6"}, {"num_key_value_heads", "2"},
    {"max_position_embeddings", "96"}, {"head_dim", "16"}, {"use_sliding_window", "1"},
    {"sliding_window", "23"}, {"max_window_layers", "1"}, END};
#define SCALARS                                                                                    \
    {"embedding_multiplier", "3"}, {"residual_multiplier", "0.22"},                                \
    {"attention_multiplier", "0.1"}, {"logits_scaling", "1.3"}
#define HYBRID                                                                                     \
    SCALARS, {"layer_types", "attention,attention"}, {"num_local_experts", "0"},                   \
    {"shared_intermediate_size", "20"}
const struct setting tiny_granite[] = {WIDE, SCALARS, {"rms_norm_eps", "1e-2"}, END};
const struct setting tiny_hybrid[] = {
    WIDE, HYBRID, {"position_embedding_type", "rope"}, {"tie_word_embeddings", "true"}, END};
static const struct setting hybrid_no_rope[] = {WIDE, HYBRID, END};

const struct setting tiny_olmo2[] = {
    WIDE, {"attention_bias", "1"}, {"rms_norm_eps", "1e-3"}, END};
#define FULL(key, value) ROPE("full_attention." key, value)
static const struct setting olmo2_tied[] = {
    TINY, {"tie_word_embeddings", "true"}, {"rms_norm_eps", "1e-5"}, {"rope_theta", "1000"}, END};
const struct setting tiny_olmo3[] = {
    WIDE, {"attention_bias", "1"}, {"rms_norm_eps", "1e-5"}, {"sliding_window", "3"},
    {"layer_types", "sliding_attention,full_attention"}, FULL("rope_type", "yarn"),
    FULL("factor", "3"), FULL("rope_theta", "100"), FULL("beta_fast", "2"),
    FULL("beta_slow", "0.5"), FULL("attention_factor", "1.3"),
    FULL("original_max_position_embeddings", "8"),
    ROPE("sliding_attention.rope_type", "default"), ROPE("sliding_attention.rope_theta", "50"),
    END};

// What the plugins llama.so and outside_family.so compute alike.
static const struct setting outside_granite[] = {
    WIDE, {"rms_norm_eps", "1e-2"}, {"token_factor", "3"}, {"block_factor", "0.22"},
    {"score_factor", "0.28284271247461900976"}, // 0.1 sqrt(8)
    {"logit_divisor", "1.3"}, END};
static const struct setting outside_olmo2[] = {
    WIDE, {"after", "1"}, {"attention_bias", "1"}, {"rms_norm_eps", "1e-3"}, END};
static const struct setting outside_no_rope[] = {
    WIDE, {"skips", "1"}, {"attention_bias", "1"}, {"rope_theta", "2e6"},
    {"tie_word_embeddings", "true"}, END};

#define LONG(key, value) {"rope_scaling." key, value}
const struct setting tiny_phi3[] = {
    TINY, {"partial_rotary_factor", "0.75"}, {"sliding_window", "5"}, {"rms_norm_eps", "1e-5"}, END};
static const struct setting phi3_short[] = {
    TINY, {"rms_norm_eps", "1e-5"}, {"original_max_position_embeddings", "16"},
    LONG("type", "longrope"), LONG("short_factor", "1.0,1.3,2.0,3.0"),
    LONG("long_factor", "9,9,9,9"), END};
const struct setting long_phi3[] = {
    TINY, {"rms_norm_eps", "1e-5"}, {"original_max_position_embeddings", "8"},
    {"tie_word_embeddings", "true"}, ROPE("rope_type", "su"), ROPE("partial_rotary_factor", "0.5"),
    ROPE("short_factor", "1,1"), ROPE("long_factor", "2,5"), {"long_factors", "1"}, END};
const struct setting phi3_score[] = {
    TINY, {"rms_norm_eps", "1e-5"}, {"partial_rotary_factor", "0.5"}, {"pad_token_id", "29"}, END};

#define GEMMA                                                                                      \
    {"vocab_size", "61"}, {"hidden_size", "24"}, {"intermediate_size", "20"},                      \
    {"num_hidden_layers", "2"}, {"max_position_embeddings", "24"}, {"num_attention_heads", "4"},   \
    {"num_key_value_heads", "2"}, {"head_dim", "8"}, {"sliding_window", "3"}
const struct setting tiny_gemma3[] = {
    GEMMA, {"layer_types", "sliding_attention,full_attention"}, {"query_pre_attn_scalar", "5"},
    ROPE("full_attention.rope_type", "linear"), ROPE("full_attention.factor", "3"),
    ROPE("full_attention.rope_theta", "1000"), ROPE("sliding_attention.rope_type", "default"),
    ROPE("sliding_attention.rope_theta", "100"), END};
static const struct setting gemma3_old[] = {
    GEMMA, {"sliding_window_pattern", "2"}, {"rope_theta", "1000"}, {"rope_local_base_freq", "50"},
    {"rope_scaling.rope_type", "linear"}, {"rope_scaling.factor", "2"},
    {"final_logit_softcapping", "2"}, {"tie_word_embeddings", "false"}, {"attention_bias", "1"},
    {"rms_norm_eps", "1e-3"}, END};

#define CAPPED GEMMA, {"attn_logit_softcapping", "1.5"}, {"query_pre_attn_scalar", "1"}
const struct setting tiny_gemma2[] = {CAPPED, {"final_logit_softcapping", "2"}, END};
static const struct setting vaultgemma[] = {
    CAPPED, {"layer_types", "full_attention,sliding_attention"}, END};
const struct setting gemma2_score[] = {
    CAPPED, {"final_logit_softcapping", "2"}, {"pad_token_id", "29"}, END};

const struct setting tiny_lfm2[] = {
    TINY, {"layer_types", "conv,full_attention"}, {"block_auto_adjust_ff_dim", "0"}, END};
const struct setting biased_lfm2[] = {
    TINY, {"full_attn_idxs", "0"}, {"conv_bias", "1"}, {"conv_L_cache", "4"}, {"block_ff_dim", "29"},
    {"block_multiple_of", "6"}, {"block_ffn_dim_multiplier", "1.1"}, {"tie_embedding", "false"},
    {"norm_eps", "1e-3"}, {"rope_theta", "100"}, END};
#define DELTA                                                                                      \
    WIDE, {"linear_num_key_heads", "2"}, {"linear_key_head_dim", "8"},                             \
    {"linear_value_head_dim", "6"}
const struct setting tiny_qwen3_5[] = {
    DELTA, {"linear_num_value_heads", "4"}, {"full_attention_interval", "2"}, END};
const struct setting biased_qwen3_5[] = {
    DELTA, {"linear_num_value_heads", "2"}, {"layer_types", "full_attention,linear_attention"},
    {"attention_bias", "1"}, {"tie_word_embeddings", "true"}, {"linear_conv_kernel_dim", "3"},
    {"rms_norm_eps", "1e-3"}, ROPE("rope_theta", "100"), ROPE("partial_rotary_factor", "0.5"), END};

#define WIDER                                                                                      \
    {"vocab_size", "1037"}, {"intermediate_size", "112"}, {"num_hidden_layers", "3"},              \
    {"num_attention_heads", "6"}, {"num_key_value_heads", "2"}, {"max_position_embeddings", "96"}
const struct setting wider_lfm2[] = {
    WIDER, {"hidden_size", "96"}, {"full_attn_idxs", "1"}, {"block_multiple_of", "16"}, END};
const struct setting wider_qwen3_5[] = {
    WIDER, {"hidden_size", "80"}, {"head_dim", "16"}, {"partial_rotary_factor", "0.5"},
    {"linear_num_key_heads", "2"}, {"linear_num_value_heads", "4"}, {"linear_key_head_dim", "32"},
    {"linear_value_head_dim", "48"}, {"full_attention_interval", "2"},
    {"tie_word_embeddings", "true"}, END};

const struct decoder decoders[N_DECODERS] = {
    {"llama", "llama", llama, 0, 0},
    {"llama_bias", "llama", llama_bias, 0, 0},
    {"mistral", "mistral", mistral, 0, 0},
    {"qwen2", "qwen2", tiny_qwen2, 0, 0},
    {"qwen3", "qwen3", qwen3, 0, 0},
    {"smollm3", "smollm3", tiny_smollm3, 0, 0},
    {"mistral_window", "mistral", tiny_window, 0, 0},
    {"qwen2_window", "qwen2", qwen2_window, 0, 0},
    {"qwen3_window", "qwen3", qwen3_window, 0, 0},
    {"gemma2", "gemma2", tiny_gemma2, 0, 0},
    {"vaultgemma", "vaultgemma", vaultgemma, 0, 0},
    {"gemma3", "gemma3_text", tiny_gemma3, 0, 0},
    {"gemma3_old", "gemma3_text", gemma3_old, 0, 0},
    {"granite", "granite", tiny_granite, 0, 0},
    {"granitemoehybrid", "granitemoehybrid", tiny_hybrid, 0, 0},
    {"granite_no_rope", "granitemoehybrid", hybrid_no_rope, 1, 0},
    {"phi3", "phi3", tiny_phi3, 0, 0},
    {"phi3_short", "phi3", phi3_short, 0, 0},
    {"phi3_long", "phi3", long_phi3, 0, 0},
    {"olmo2", "olmo2", tiny_olmo2, 0, 0},
    {"olmo2_tied", "olmo2", olmo2_tied, 0, 0},
    {"olmo3", "olmo3", tiny_olmo3, 0, 0},
    {"lfm2", "lfm2", tiny_lfm2, 0, 0},
    {"lfm2_bias", "lfm2", biased_lfm2, 0, 0},
    {"qwen3_5", "qwen3_5_text", tiny_qwen3_5, 0, 0},
    {"qwen3_5_bias", "qwen3_5_text", biased_qwen3_5, 0, 0},
    {"granite", "outside_family", outside_granite, 0, 0},
    {"smollm3", "outside_family", outside_no_rope, 0, 0},
    {"olmo2", "outside_family", outside_olmo2, 0, 0},
    {"no_rope", "smollm3", no_rope, 1, 0},
    {"no_rope_interval", "smollm3", no_rope_interval, 1, 0},
    {"rope_linear", "llama", linear, 1, 0},
    {"rope_llama3", "llama", llama3, 1, 0},
    {"rope_yarn", "llama", yarn, 1, 0},
    {"rope_yarn_mscale", "qwen3", tiny_qwen3, 1, 0},
    {"rope_yarn_factor", "qwen3", yarn_factor, 1, 0},
};
