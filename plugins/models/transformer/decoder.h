// transformer/decoder.h: Llama and its descendants. A plugin lists its families in a table
// (llama.c); this file has the options of config.json, as transformers writes them, and the
// architecture that follows from a family and its options.
//
// Not part of the contract: it may change in any version.
//
// A key with a dot means a member of an object in config.json ("rope_scaling.factor").
#ifndef RLHF_MODELS_TRANSFORMER_DECODER_H
#define RLHF_MODELS_TRANSFORMER_DECODER_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

// A number that stands for a missing key where 0 stands for null. Other negative numbers are
// refused.
#define RLHF_TF_MISSING INT32_MIN

// The object rope_parameters (transformers 5) or rope_scaling (older files). If a member is 0 or
// NULL, the object in the file lacks it.
struct rlhf_tf_rope_config {
    const char *rope_type, *type;
    double rope_theta, factor, low_freq_factor, high_freq_factor;
    double attention_factor, beta_fast, beta_slow, mscale, mscale_all_dim;
    double partial_rotary_factor; // RLHF_TF_MISSING: missing
    rlhf_f64_list short_factor, long_factor;
    int64_t original_max_position_embeddings;
    int32_t truncate;
};

// Settings of config.json that only some families have; the others ignore them, as transformers
// does.
enum rlhf_tf_reads {
    RLHF_TF_READS_ATTENTION_BIAS = 1,
    RLHF_TF_READS_MLP_BIAS = 2,
    RLHF_TF_READS_PRETRAINING_TP = 4,
    RLHF_TF_READS_WINDOW = 8, // sliding_window, for all layers
    // use_sliding_window, sliding_window and, for which layers it is, layer_types or
    // max_window_layers
    RLHF_TF_READS_USE_WINDOW = 16,
    RLHF_TF_NEEDS_KV_HEADS = 32, // num_key_value_heads must not be missing
    RLHF_TF_READS_NO_ROPE = 64,  // no_rope_layers and no_rope_layer_interval
    // sliding_window, in the layers that layer_types names or, without it, in all but every n-th
    // (full_every)
    RLHF_TF_READS_KINDS = 128,
    // embedding_multiplier, residual_multiplier, attention_multiplier, logits_scaling
    RLHF_TF_READS_SCALARS = 256,
    // The settings of GraniteMoeHybrid (Granite 4), of which only models with attention in all
    // layers and without experts are implemented: shared_intermediate_size is the width of the MLP,
    // and layers rotate if position_embedding_type is rope.
    RLHF_TF_READS_HYBRID = 512,
    // with RLHF_TF_READS_KINDS: positions by kind of layer (Gemma 3, OLMo 3)
    RLHF_TF_READS_KIND_ROPE = 1024,
    RLHF_TF_READS_SCORE_CAP = 2048, // attn_logit_softcapping
    // Gemma 2: both caps must be numbers. Null means no cap in transformers, and a missing key
    // means 50 and 30, but the host reads null as missing.
    RLHF_TF_NEEDS_CAPS = 4096,
    // Phi-3 (Abdin et al. 2024): partial_rotary_factor. Positions may be default or longrope, which
    // older files call su or yarn. original_max_position_embeddings is that of the config alone,
    // and 4096 if it is missing.
    RLHF_TF_READS_PHI = 8192,
    // Gemma 2 and 3 (2024, 2025): hidden_activation, query_pre_attn_scalar,
    // final_logit_softcapping, rope_local_base_freq
    RLHF_TF_READS_GEMMA = 16384,
    // LFM2 (2025): layers that are not of the kind "full_attention" are gated short convolutions
    // (RLHF_TF_CONV). layer_types or full_attn_idxs, conv_L_cache, conv_bias, norm_eps,
    // tie_embedding; the settings block_* adjust intermediate_size. The activation is silu.
    RLHF_TF_READS_SHORT_CONV = 32768,
    // Qwen3.5 (2026): layers of the kind "linear_attention" have the delta rule (RLHF_TF_DELTA),
    // and the others gates of attention. layer_types or full_attention_interval, the settings
    // linear_*, partial_rotary_factor, which is 0.25 if it is missing. Positions of images
    // (mrope_section) are ignored: those of text are the same in all sections.
    RLHF_TF_READS_DELTA = 65536
};

// The names of the tensors of attention, and of the norm before it, in Llama and its descendants.
// clang-format off
#define RLHF_TF_ATTENTION_NAMES                                                                    \
    {RLHF_TF_N1_G, RLHF_TF_ALL, "input_layernorm.weight"},                                         \
    {RLHF_TF_QKV_W, RLHF_TF_QUERIES, "self_attn.q_proj.weight"},                                   \
    {RLHF_TF_QKV_B, RLHF_TF_QUERIES, "self_attn.q_proj.bias"},                                     \
    {RLHF_TF_QKV_W, RLHF_TF_KEYS, "self_attn.k_proj.weight"},                                      \
    {RLHF_TF_QKV_B, RLHF_TF_KEYS, "self_attn.k_proj.bias"},                                        \
    {RLHF_TF_QKV_W, RLHF_TF_VALUES, "self_attn.v_proj.weight"},                                    \
    {RLHF_TF_QKV_B, RLHF_TF_VALUES, "self_attn.v_proj.bias"},                                      \
    {RLHF_TF_QN_G, RLHF_TF_ALL, "self_attn.q_norm.weight"},                                        \
    {RLHF_TF_KN_G, RLHF_TF_ALL, "self_attn.k_norm.weight"},                                        \
    {RLHF_TF_PROJ_W, RLHF_TF_ALL, "self_attn.o_proj.weight"},                                      \
    {RLHF_TF_PROJ_B, RLHF_TF_ALL, "self_attn.o_proj.bias"}
// clang-format on

// A family of models: a model_type of config.json.
struct rlhf_tf_family {
    uint32_t reads;           // bits of enum rlhf_tf_reads
    int32_t bias;             // the biases that the family always has, bits of enum rlhf_tf_bias
    int32_t norm_at, qk_norm; // enum rlhf_tf_norm_at, enum rlhf_tf_qk_norm
    double norm_offset;       // added to the weights of norms
    int32_t root_embed; // 1: the embedding is multiplied by the square root of its width, in the
                        // act dtype
    // RLHF_TF_READS_KINDS, without layer_types: layers n, 2 n, 3 n, ... see all tokens. 0: n is
    // sliding_window_pattern.
    int32_t full_every;
    // The values of what config.json lacks.
    int32_t head_dim;  // 0: hidden_size / num_attention_heads
    int32_t tied;      // tie_word_embeddings
    double rope_theta; // 0: 10000
    // RLHF_TF_READS_KIND_ROPE: rope_theta of the layers with a window
    double sliding_theta;
    // The names of a layer's tensors; NULL: those of Llama or, with norms of the blocks' outputs,
    // those of Gemma and OLMo. Those in layers with a state, or
    // NULL. Those of the other tensors; NULL: those of Llama.
    const struct rlhf_tf_name *layers, *state_layers, *globals;
};

// tie_word_embeddings is false, true or missing.
enum rlhf_tf_tied { RLHF_TF_UNTIED = 0, RLHF_TF_TIED = 1, RLHF_TF_TIED_BY_FAMILY = 2 };

struct rlhf_tf_decoder {
    int64_t vocab_size, hidden_size, intermediate_size, num_hidden_layers, num_attention_heads;
    int64_t num_key_value_heads; // 0: null, which means as many as heads; or RLHF_TF_MISSING
    int64_t head_dim;            // 0: missing
    int64_t max_position_embeddings, original_max_position_embeddings, pad_token_id;
    int64_t num_experts, num_local_experts;
    int64_t pretraining_tp, sliding_window, max_window_layers, no_rope_layer_interval;
    int64_t sliding_window_pattern;
    rlhf_i64_list no_rope_layers, full_attn_idxs;
    int64_t conv_L_cache, block_ff_dim, block_multiple_of;
    int64_t linear_conv_kernel_dim, linear_key_head_dim, linear_value_head_dim;
    int64_t linear_num_key_heads, linear_num_value_heads, full_attention_interval;
    const char *const *layer_types; // empty: missing
    int64_t shared_intermediate_size;
    const char *hidden_act, *hidden_activation, *position_embedding_type;
    double embedding_multiplier, residual_multiplier, attention_multiplier, logits_scaling;
    double rms_norm_eps, norm_eps, initializer_range, rope_theta, block_ffn_dim_multiplier;
    double partial_rotary_factor; // RLHF_TF_MISSING: missing
    double attn_logit_softcapping, final_logit_softcapping;
    double query_pre_attn_scalar, rope_local_base_freq;
    int32_t tie_word_embeddings, tie_embedding; // enum rlhf_tf_tied
    int32_t quantization_config;
    int32_t conv_bias, block_auto_adjust_ff_dim;
    int32_t attention_bias, mlp_bias, use_sliding_window, use_bidirectional_attention;
    int32_t long_factors; // 1: positions of type longrope have the long factors
    int32_t rope_scaling_full_attention, rope_scaling_sliding_attention;
    struct rlhf_tf_rope_config rope_parameters, rope_scaling;
    // rope_parameters.full_attention and rope_parameters.sliding_attention
    struct rlhf_tf_rope_config rope_full, rope_sliding;
};

enum { RLHF_TF_N_DECODER_OPTS = 104 };
extern const rlhf_opt rlhf_tf_decoder_opts[RLHF_TF_N_DECODER_OPTS]; // for RLHF_OPT_TABLE

// Fills *out. Refuses unsupported or inconsistent settings. Allocates the arrays of out->rotary,
// out->window_layers and out->mix_layers; rlhf_tf_create takes ownership of them. [main]
rlhf_status rlhf_tf_decoder_arch(const rlhf_host *host, const struct rlhf_tf_decoder *c,
                                 const struct rlhf_tf_family *family, struct rlhf_tf_arch *out);

// 1 if the layer is of the kind "sliding_attention". For RLHF_TF_READS_KINDS. [any]
int32_t rlhf_tf_is_sliding(const struct rlhf_tf_decoder *c, const struct rlhf_tf_family *family,
                           int64_t layer);

// ---- states_config.c ----
// Sets which layers have a state, and their sizes, and what else RLHF_TF_READS_SHORT_CONV and
// RLHF_TF_READS_DELTA say. Refuses kinds of layers that the family does not have. Allocates
// out->mix_layers; if it fails, this is NULL. [main]
rlhf_status rlhf_tf_states_read(const rlhf_host *host, const struct rlhf_tf_decoder *c,
                                const struct rlhf_tf_family *family, struct rlhf_tf_arch *out);

// ---- rotary_config.c ----
// Sets the frequencies of a head's pairs, and the scale, with the formulas of transformers'
// modeling_rope_utils. Types: default, linear, llama3 (Dubey et al. 2024), yarn (Peng et al. 2023),
// longrope (Ding et al. 2024). Also sets which layers rotate, from no_rope_layers (SmolLM3, 2025)
// or position_embedding_type. If the family has positions by kind of layer, also sets out->other,
// for the layers with a window, and which layers these are. Allocates the arrays of *out. Refuses
// unsupported settings; then they are NULL.
//
// *context is the longest row: max_position_embeddings or, with the short factors of longrope,
// original_max_position_embeddings if that is less. transformers takes the long factors for all
// rows of a batch if one of them is longer than that, so the same row has other results in another
// batch, and a text other keys once it has grown. Here a model has one kind of factors.
// [main]
rlhf_status rlhf_tf_rotary_read(const rlhf_host *host, const struct rlhf_tf_decoder *c,
                                const struct rlhf_tf_family *family, int32_t head_dim,
                                struct rlhf_tf_rotary *out, int32_t *context);

#ifdef __cplusplus
}
#endif

#endif
