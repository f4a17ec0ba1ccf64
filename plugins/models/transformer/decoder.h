// transformer/decoder.h: the config.json options that Llama and its descendants have in common, as
// transformers writes them, and the architecture that follows from them.
//
// Not part of the contract: it may change in any version.
//
// A key with a dot means a member of an object in config.json ("rope_scaling.factor"). A key with
// brackets means every item of a list ("layer_types[]"). Tensor names and the options of a single
// family are in llama.c and qwen.c.
#ifndef RLHF_MODELS_TRANSFORMER_DECODER_H
#define RLHF_MODELS_TRANSFORMER_DECODER_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

// The object rope_parameters (transformers 5) or rope_scaling (older files). If a member is 0 or
// NULL, the object in the file lacks it.
struct rlhf_tf_rope_config {
    const char *rope_type, *type;
    double rope_theta, factor, low_freq_factor, high_freq_factor;
    double attention_factor, beta_fast, beta_slow, mscale, mscale_all_dim, partial_rotary_factor;
    int64_t original_max_position_embeddings;
    int32_t truncate, full_attention, sliding_attention;
};

struct rlhf_tf_decoder {
    int64_t vocab_size, hidden_size, intermediate_size, num_hidden_layers, num_attention_heads;
    int64_t num_key_value_heads; // 0: null, which means as many as heads; -1: missing
    int64_t head_dim;            // 0: missing
    int64_t max_position_embeddings, original_max_position_embeddings, pad_token_id;
    int64_t num_experts, num_local_experts;
    const char *hidden_act;
    double rms_norm_eps, initializer_range, rope_theta, partial_rotary_factor;
    double attn_logit_softcapping, final_logit_softcapping;
    int32_t tie_word_embeddings, quantization_config;
    struct rlhf_tf_rope_config rope_parameters, rope_scaling;
};

enum { RLHF_TF_N_DECODER_OPTS = 53 };
extern const rlhf_opt rlhf_tf_decoder_opts[RLHF_TF_N_DECODER_OPTS]; // for RLHF_OPT_TABLE

// Fills *out except biases and head_norm. Refuses unsupported or inconsistent settings. If
// config.json lacks head_dim, the width of a head is the argument `head_dim` or, if this argument
// is 0, hidden_size / num_attention_heads. Allocates out->rotary.frequency; rlhf_tf_create takes
// ownership of this memory. [main]
rlhf_status rlhf_tf_decoder_arch(const rlhf_host *host, const struct rlhf_tf_decoder *c,
                                 int64_t head_dim, struct rlhf_tf_arch *out);

// ---- rotary_config.c ----
// Sets the frequencies of the head_dim / 2 pairs, and the scale, with the formulas of transformers'
// modeling_rope_utils. Types: default, linear, llama3 (Dubey et al. 2024), yarn (Peng et al. 2023).
// Allocates out->frequency. [main]
rlhf_status rlhf_tf_rotary_read(const rlhf_host *host, const struct rlhf_tf_decoder *c,
                                int32_t head_dim, struct rlhf_tf_rotary *out);

#ifdef __cplusplus
}
#endif

#endif
