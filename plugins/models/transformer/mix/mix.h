// transformer/mix/mix.h: what a layer computes between its first product and its second: attention,
// possibly with gates, or a layer with a state (enum rlhf_tf_mix).
#ifndef RLHF_MODELS_TRANSFORMER_MIX_MIX_H
#define RLHF_MODELS_TRANSFORMER_MIX_MIX_H

#include "transformer/instance.h"

static inline enum rlhf_tf_mix rlhf__tf_mix_of(const struct rlhf_tf_arch *a, int32_t layer) {
    return a->mix_layers ? (enum rlhf_tf_mix)a->mix_layers[layer] : RLHF_TF_ATTENTION;
}

// The names of the tensors of a layer.
static inline const struct rlhf_tf_name *rlhf__tf_names(const struct rlhf_tf_arch *a,
                                                        int32_t layer) {
    return rlhf__tf_mix_of(a, layer) == RLHF_TF_ATTENTION ? a->layers : a->state_layers;
}

// Elements per token of RLHF_TF_DELTA: queries, keys and values; values alone.
static inline int32_t rlhf__tf_delta_channels(const struct rlhf_tf_state *s) {
    return 2 * s->key_heads * s->key_dim + s->value_heads * s->value_dim;
}
static inline int32_t rlhf__tf_delta_values(const struct rlhf_tf_state *s) {
    return s->value_heads * s->value_dim;
}

// 1 if the second product's input is not `att` itself, but `att` times a gate.
static inline int32_t rlhf__tf_gates(const struct rlhf_tf_arch *a, int32_t layer) {
    return a->attn_gate || rlhf__tf_mix_of(a, layer) != RLHF_TF_ATTENTION;
}

// ---- mix.c ----
struct rlhf__tf_mix_widths rlhf__tf_mix_widths(const struct rlhf_tf_arch *a, int32_t layer);
// Sets m->most and m->n_attention.
void rlhf__tf_mix_measure(struct rlhf__tf *m);
// The number of layers with attention before this one.
int32_t rlhf__tf_attention_index(const struct rlhf_tf_arch *a, int32_t layer);
// The name of an operation that the layers need and that the table does not have, or NULL.
const char *rlhf__tf_mix_lacking(const rlhf_compute *c, const struct rlhf_tf_arch *a,
                                 int32_t trainable);
// Asks the backend whether it supports the sizes of the layers.
rlhf_status rlhf__tf_mix_check(const struct rlhf_tf_arch *a, const rlhf_model_open *o);
// Computes a->mixed from a->first. `gen` is the session of a step, or NULL.
rlhf_status rlhf__tf_mix(const struct rlhf__tf *m, const struct rlhf__tf_work *w,
                         const rlhf_gen *gen, int32_t layer, const struct rlhf__tf_acts *a);
// Recomputes a->mixed from the kept activations, unless it is `att` itself.
rlhf_status rlhf__tf_mixed_again(const struct rlhf__tf *m, int32_t layer,
                                 const struct rlhf__tf_acts *a, uint32_t rows);
// The arguments of the operations for a layer.
rlhf_attn rlhf__tf_attn_geometry(const struct rlhf__tf *m, int32_t layer, int32_t cached);
rlhf_conv rlhf__tf_conv_args(const struct rlhf__tf *m, int32_t layer);
rlhf_delta rlhf__tf_delta_args(const struct rlhf__tf *m, int32_t layer);
rlhf_gated_norm rlhf__tf_gated_norm_args(const struct rlhf__tf *m, int32_t layer);
// att * f(gate), the gate being in a->first or a->qkv.
rlhf_columns rlhf__tf_gate_args(const struct rlhf__tf *m, int32_t layer);
// Where the gate is in that array: elements before it.
int32_t rlhf__tf_gate_at(const struct rlhf__tf *m, int32_t layer);
// Attention with gates: between the first product, in the order of the checkpoint, and the rows
// [queries, keys, values, gates]. back 1: from the latter to the former.
rlhf_status rlhf__tf_spread(const struct rlhf__tf *m, rlhf_dev rows_at, rlhf_dev product,
                            uint32_t rows, int32_t back);

// RLHF_TF_CONV: B * x, the input of the convolution, in bwd.mix.
rlhf_columns rlhf__tf_conv_input_args(const struct rlhf__tf *m, int32_t layer);
rlhf_status rlhf__tf_conv_input(const struct rlhf__tf *m, int32_t layer,
                                const struct rlhf__tf_acts *a, uint32_t rows);

// ---- mix_bwd.c ----
// d_mixed, act dtype, is the gradient of a->mixed and is overwritten. Sets *d_first to the gradient
// of the first product, in bwd.wide or bwd.dfc, and adds to the gradients of the layer's tensors.
rlhf_status rlhf__tf_mix_bwd(const struct rlhf__tf *m, const struct rlhf__tf_work *w, int32_t layer,
                             const struct rlhf__tf_acts *a, rlhf_dev d_mixed, rlhf_dev *d_first);

#endif
