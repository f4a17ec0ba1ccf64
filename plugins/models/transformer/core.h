// transformer/core.h: how an architecture plugin (gpt2.c, llama.c, ...) describes itself to the
// shared transformer core, and the ops table that the core provides.
//
// Not part of the contract: it may change in any version.
//
// trunk.c and trunk_bwd.c compute the layers; work.h lists their results with shapes. For wide
// models the trunk stores only the results of matrix products, and computes norms and activations
// again in the backward pass. With `recompute` it stores only each layer's input. The same
// functions compute them again, so the bits are the same.
//
// The core contains the tensors and the arithmetic. It accesses device memory only through the
// compute table and never dereferences an rlhf_dev.
#ifndef RLHF_MODELS_TRANSFORMER_CORE_H
#define RLHF_MODELS_TRANSFORMER_CORE_H

#include <rlhf/compute.h>
#include <rlhf/model.h>
#include <rlhf/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

// The tensors that the core knows. The first group exists once, the second group once per layer.
// Which of these tensors exist depends on struct rlhf_tf_arch and on the arguments of open().
enum rlhf_tf_slot {
    RLHF_TF_WTE,   // token embedding [vocab, d]
    RLHF_TF_WPE,   // position embedding [ctx, d], unless positions are rotary
    RLHF_TF_EMB_G, // norm of the sum of embeddings (RLHF_TF_NORM_SUMS)
    RLHF_TF_EMB_B,
    RLHF_TF_FINAL_G, // final norm (all other forms)
    RLHF_TF_FINAL_B,
    RLHF_TF_LM,     // LM head [vocab, d]; absent if tied to RLHF_TF_WTE
    RLHF_TF_POOL_W, // hidden layer of the score head [d, d]
    RLHF_TF_POOL_B,
    RLHF_TF_SCORE_W, // [n_labels, d]
    RLHF_TF_SCORE_B,
    RLHF_TF_V1_W, // hidden layer of the value head [4d, d]
    RLHF_TF_V1_B,
    RLHF_TF_V2_W, // [1, d] or [1, 4d]
    RLHF_TF_V2_B,
    RLHF_TF_N_GLOBAL,

    RLHF_TF_N1_G = 0, // norm before attention, or of the sum after it (RLHF_TF_NORM_SUMS)
    RLHF_TF_N1_B,
    // The first product: d -> q + 2 kv, queries, keys, values (widths: struct rlhf_tf_widths); of a
    // layer with a state, see enum rlhf_tf_mix
    RLHF_TF_QKV_W,
    RLHF_TF_QKV_B,
    RLHF_TF_QN_G, // norm of queries, and of keys: [head_dim]; RLHF_TF_QK_NORM_WIDTH: [q], [kv]
    RLHF_TF_KN_G,
    RLHF_TF_CONV_W, // layers with a state: convolution [channels, 1, taps]
    RLHF_TF_CONV_B,
    RLHF_TF_A_LOG, // RLHF_TF_DELTA: [value_heads] each
    RLHF_TF_DT_BIAS,
    RLHF_TF_MIX_G,  // its gated norm [value_dim], without norm_offset
    RLHF_TF_PROJ_W, // attention output, q -> d; or that of the state
    RLHF_TF_PROJ_B,
    RLHF_TF_P1_G, // norm of attention's output (RLHF_TF_NORM_AFTER, RLHF_TF_NORM_AROUND)
    RLHF_TF_N2_G, // norm before the MLP, or of the sum after it
    RLHF_TF_N2_B,
    RLHF_TF_FC_W, // d -> inner; gated: d -> 2 inner, for the gate and the values that it scales
    RLHF_TF_FC_B,
    RLHF_TF_OUT_W, // inner -> d
    RLHF_TF_OUT_B,
    RLHF_TF_P2_G, // norm of the MLP's output
    RLHF_TF_N_LAYER
};

// A checkpoint parameter may be only a piece of a slot, that is, a range of the slot's rows. If
// linear layers are stored as [out, in], the slot RLHF_TF_QKV_* contains the queries, keys and
// values, stacked by rows; their row counts may differ. In a gated MLP, RLHF_TF_FC_* contains the
// gate and the up projection, stacked in the same way.
enum rlhf_tf_piece {
    RLHF_TF_ALL = 0,
    RLHF_TF_QUERIES,
    RLHF_TF_KEYS,
    RLHF_TF_VALUES,
    RLHF_TF_GATE,
    RLHF_TF_UP,
    // of RLHF_TF_DELTA's first product, in this order
    RLHF_TF_DELTA_QKV,
    RLHF_TF_DELTA_Z,
    RLHF_TF_DELTA_B,
    RLHF_TF_DELTA_A
};

// The name of a parameter in the checkpoint. A list of names ends with a NULL name. The names in a
// layer's list are prefixed with layer_prefix of struct rlhf_tf_arch. The value head needs no
// names, because its names are the same in all families ("v_head.fc.weight").
struct rlhf_tf_name {
    int32_t slot, piece; // enum rlhf_tf_slot, enum rlhf_tf_piece
    const char *name;
};

enum rlhf_tf_norm_kind { RLHF_TF_NORM_LAYER = 0, RLHF_TF_NORM_RMS = 1 }; // RMS norms have no bias

// Where a layer has norms. A block is attention or the MLP. All forms but the last also have a
// final norm.
enum rlhf_tf_norm_at {
    RLHF_TF_NORM_BEFORE = 0, // of each block's input
    RLHF_TF_NORM_AFTER = 1,  // of each block's output, before the residual sum (OLMo 2, 2024)
    RLHF_TF_NORM_AROUND = 2, // of both (Gemma 2, 2024)
    RLHF_TF_NORM_SUMS = 3    // of the sum of embeddings, and of each residual sum (BERT, 2018)
};

// RMS norms of queries and of keys before they are rotated.
enum rlhf_tf_qk_norm {
    RLHF_TF_QK_NORM_NONE = 0,
    RLHF_TF_QK_NORM_HEAD = 1, // of each head (Qwen3, 2025)
    RLHF_TF_QK_NORM_WIDTH = 2 // of all queries of a token, and of all its keys (OLMo 2, 2024)
};

// The linear layers of the trunk that have biases.
enum rlhf_tf_bias {
    RLHF_TF_BIAS_QKV = 1,
    RLHF_TF_BIAS_PROJ = 2,
    RLHF_TF_BIAS_MLP = 4,
    RLHF_TF_BIAS_ALL = 7
};

// What a layer computes between its first product and its second (struct rlhf_tf_arch.mix_layers).
enum rlhf_tf_mix {
    RLHF_TF_ATTENTION = 0,
    // Gated short convolution (LFM2, 2025): the first product gives d -> 3 d, [B, C, x]; C * conv(B
    // * x) is the input of the second one.
    RLHF_TF_CONV = 1,
    // The gated delta rule (Yang et al. 2024; Qwen3.5, 2026). The first product gives queries, keys
    // and values (RLHF_TF_DELTA_QKV: 2 key_heads * key_dim + value_heads * value_dim), then a gate
    // z (value_heads * value_dim), beta and alpha (value_heads each). A convolution and the MLP's
    // activation change the queries, keys and values. The result of rlhf_delta passes
    // rlhf_gated_norm with the gate z.
    RLHF_TF_DELTA = 2
};

// The sizes of the layers with a state.
struct rlhf_tf_state {
    int32_t taps; // of the convolution
    int32_t bias; // RLHF_TF_CONV: 1: both products and the convolution have biases
    int32_t key_heads, value_heads, key_dim, value_dim; // RLHF_TF_DELTA
};

// How a layer rotates its queries and keys: not at all, so that the layer sees no positions (Yang
// et al. 2025); by `frequency`; or by `other`.
enum rlhf_tf_turn { RLHF_TF_TURN_NONE = 0, RLHF_TF_TURN = 1, RLHF_TF_TURN_OTHER = 2 };

// Rotary positions (Su et al. 2021). The pair (c, c + dim / 2) of a head is rotated by the angle
// position * frequency[c]. The cosine and sine are also multiplied by a scale.
struct rlhf_tf_rotary {
    double *frequency; // [dim / 2]; NULL: positions have embeddings instead (RLHF_TF_WPE)
    double scale;
    int32_t dim; // the first elements of a head, which are rotated; even; 0: all of the head
    // [dim / 2]: the frequencies of layers that have others, without a scale; or NULL
    double *other;
    // [n_layer], enum rlhf_tf_turn; NULL: all layers rotate by `frequency`. A layer that does not
    // rotate cannot have a qk_norm.
    uint8_t *layers;
};

// An architecture with its sizes. The plugin's create() fills it, and the core copies it.
struct rlhf_tf_arch {
    int32_t n_vocab, n_ctx, d, n_layer, d_inner;
    int32_t n_head, n_kv_head; // query heads; key/value heads, a divisor of n_head
    int32_t head_dim;          // width of a head, usually d / n_head
    int32_t norm;              // enum rlhf_tf_norm_kind
    int32_t norm_at;           // enum rlhf_tf_norm_at
    int32_t qk_norm;           // enum rlhf_tf_qk_norm
    int32_t causal;            // 1: LM heads, value head and generation are available
    int32_t act;               // enum rlhf_act
    int32_t gated;             // 1: the MLP is act(gate) * up (Shazeer 2020)
    int32_t bias;              // bits of enum rlhf_tf_bias
    int32_t out_in;            // 1: linear layers of the trunk are stored [out, in]
    int32_t tied;              // 1: the LM head is the token embedding
    int32_t score_hidden;      // 1: a d -> d layer with ReLU before the score matrix
    int32_t score_bias;
    int32_t pooling; // enum rlhf_pool: the default of the architecture
    // 1: RLHF_POOL_LAST reads the last token that is not pad_id, as in transformers, or the first
    // token if all tokens are pad_id
    int32_t pads;
    int32_t pad_id;
    int32_t scale_by_layer; // 1: attention scores are also divided by layer + 1
    int32_t residual_init;  // 1: output matrices are initialized with init_std / sqrt(2 n_layer)
    double attn_scale, norm_eps, init_std;
    double norm_offset;          // added to the weights of RMS norms, see rms_norm
    double embed_scale;          // factor of the token embedding; 0 = 1
    int32_t embed_rounded;       // 1: the factor is rounded to the act dtype
    double logit_scale, softcap; // of the LM head, see rlhf_lm_head
    // Factor of what attention and MLP add to the residual stream, above 0; 0 = 1. Only with
    // RLHF_TF_NORM_BEFORE and rotary positions. The stream is kept divided by this factor, so the
    // sums need no product: the norms' results do not change if norm_eps is divided by the factor's
    // square.
    double residual_scale;
    double attn_softcap; // of attention scores (softcap of rlhf_attn); 0: none
    // The sliding window (rlhf_attn): a token sees the last `window` tokens up to itself. 0: none.
    int32_t window;
    // [n_layer]: 1 if the layer has the window. NULL: all layers have it.
    uint8_t *window_layers;
    // [n_layer], enum rlhf_tf_mix; NULL: attention in all layers. Not together with a window. All
    // layers other than attention are of one kind.
    uint8_t *mix_layers;
    struct rlhf_tf_state state;
    // 1: the first product has, for each head, the queries and then as many gates (RLHF_TF_QUERIES
    // has both); attention's result is multiplied by the sigmoid of the gates (Qiu et al. 2025).
    int32_t attn_gate;
    // Its arrays, window_layers and mix_layers are host memory, which rlhf_tf_create takes.
    struct rlhf_tf_rotary rotary;
    const char *layer_prefix; // format with one %d, e.g. "transformer.h.%d."
    const char *base_prefix;  // e.g. "transformer."
    const struct rlhf_tf_name *globals, *layers;
    const struct rlhf_tf_name *state_layers; // the names in layers with a state; NULL: none
};

// Create and free an instance. Called by a plugin's create() and destroy(). rlhf_tf_create takes
// ownership of the arrays of arch->rotary, of window_layers and of mix_layers, even on failure.
// [main]
rlhf_status rlhf_tf_create(const rlhf_host *host, const struct rlhf_tf_arch *arch, void **self);
void rlhf_tf_destroy(void *self); // NULL allowed

// ---- slots.c ----
// Sets *out to the enum rlhf_act of the activation that transformers calls `name`. Refuses a name
// that is not implemented; `key` is its key in config.json. [main]
rlhf_status rlhf_tf_activation(const rlhf_host *host, const char *key, const char *name,
                               int32_t *out);
double rlhf_tf_attn_scale(const struct rlhf_tf_arch *arch); // 1 / sqrt(head_dim)
// Returns RLHF_E_INVALID if d is not a multiple of n_head. The message is, for example,
// "config.json: n_embd (30) must be a multiple of n_head (4)". d_key and head_key are the names of
// the two sizes in config.json. [main]
rlhf_status rlhf_tf_check(const rlhf_host *host, const struct rlhf_tf_arch *arch, const char *d_key,
                          const char *head_key);

extern const rlhf_model_ops rlhf_tf_ops;

// The members of an rlhf_plugin that follow from the core. `options` is an array.
#define RLHF_TF_PLUGIN(config_type, options, create_function)                                      \
    .size = sizeof(rlhf_plugin), .kind = RLHF_KIND_MODEL, RLHF_OPTIONS(config_type, options),      \
    .create = (create_function), .destroy = rlhf_tf_destroy, .ops = &rlhf_tf_ops,                  \
    .extension = rlhf_tf_extension

// Implements rlhf_plugin.extension for RLHF_EXT_TAP (rlhf/draft/tap.h). Only causal models without
// RLHF_TF_NORM_SUMS, states and gates of attention have this extension. [any]
const void *rlhf_tf_extension(void *self, const char *id);

#ifdef __cplusplus
}
#endif

#endif
