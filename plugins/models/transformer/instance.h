// transformer/instance.h: the instance of the ops table, and values that are computed only from its
// fields.
#ifndef RLHF_MODELS_TRANSFORMER_INSTANCE_H
#define RLHF_MODELS_TRANSFORMER_INSTANCE_H

#include "work.h"

// The slot of which a parameter is a piece. For the parameters of adapters, slot is -1.
struct rlhf__tf_home {
    int32_t layer, slot; // layer -1: a global slot
    uint64_t skip, n;    // bytes of the slot before the piece; elements of the piece
    int32_t put, filled; // rows that fill_blocks has put
};

struct rlhf__tf_layer_weights {
    rlhf_weight *of[TF_N_SITE];
};

// The last run of the tap (rlhf/draft/tap.h).
struct rlhf__tf_tap {
    struct rlhf__tf_work work;
    struct rlhf__tf_buf in, low, out; // buffers of project(), head() and logits()
    int32_t first, mid;               // the layer at which the run began; 1: after its attention
    int32_t ran, kept; // kept 1: the activations of all layers from `first` onward are kept
};

struct rlhf__tf {
    const void *magic; // shows that an instance belongs to this plugin (kl_self)
    const rlhf_host *host;
    const rlhf_compute *c;
    struct rlhf_tf_arch arch;
    rlhf_model_open open;
    int32_t dtype, reserved4;  // act dtype
    uint32_t n_tensors, n_all; // n_all also counts the absent ones
    struct rlhf__tf_tensor
        *tensors; // [n_all] RLHF_TF_N_GLOBAL, then RLHF_TF_N_LAYER for each layer; absent: n = 0
    rlhf_param *params;           // [n_tensors]
    struct rlhf__tf_home *homes;  // [n_tensors]
    struct rlhf__tf_parts *parts; // [n_all]; NULL: no matrix stays quantised
    char *names;
    uint32_t filling, reserved6; // 1 + the parameter that is being filled, or 0
    struct rlhf__tf_buf values, grads;
    struct rlhf__tf_buf turn; // rotary: f32 [tables, turn_rows, rotary dim]; grows with the
                              // positions; a second table is that of rotary.other
    uint32_t turn_rows, reserved2;
    struct rlhf__tf *base;          // the instance whose trunk and LM head this one uses, or NULL
    struct rlhf__tf_layer_low *low; // [n_layer]; NULL: no adapter
    int32_t rank, reserved3;        // rank of the adapter
    double scale;
    double stream_eps;                // epsilon of the norms that read the stream
    struct rlhf__tf_layer_weights *w; // [n_layer]; if there is a base, these are the base's
    rlhf_weight *lm, *pool, *score, *v1, *v2;
    rlhf_weight *table;       // the token embedding, if it stays quantised; may be equal to `lm`
    int32_t lm_fresh, opened; // lm_fresh: the packed LM head has the current values
    int32_t settled;          // the frozen weights have been packed
    struct rlhf__tf_mix_widths most; // the largest of all layers
    int32_t n_attention;             // layers with attention
    struct rlhf__tf_work train, infer;
    struct rlhf__tf_tap tap;
    struct rlhf__tf_scratch bwd;
    void *host_tmp; // scratch memory on the host, which only grows
    uint64_t host_tmp_bytes;
    uint64_t sessions; // number of sessions opened so far
};

static inline uint64_t rlhf__tf_esz(const struct rlhf__tf *m) { return rlhf_dtype_size(m->dtype); }

static inline struct rlhf__tf_tensor *rlhf__tf_global(struct rlhf__tf *m, int32_t slot) {
    return &m->tensors[slot];
}

static inline struct rlhf__tf_tensor *rlhf__tf_layer(struct rlhf__tf *m, int32_t layer,
                                                     int32_t slot) {
    return &m->tensors[RLHF_TF_N_GLOBAL + layer * RLHF_TF_N_LAYER + slot];
}

static inline struct rlhf__tf_tensor *rlhf__tf_tensor(struct rlhf__tf *m, int32_t layer,
                                                      int32_t slot) {
    return layer < 0 ? rlhf__tf_global(m, slot) : rlhf__tf_layer(m, layer, slot);
}

static inline struct rlhf_tf_widths rlhf_tf_widths(const struct rlhf_tf_arch *a) {
    const int32_t q = a->n_head * a->head_dim, kv = a->n_kv_head * a->head_dim;
    return (struct rlhf_tf_widths){.d = a->d,
                                   .q = q,
                                   .kv = kv,
                                   .qkv = (a->attn_gate ? 2 : 1) * q + 2 * kv,
                                   .inner = a->d_inner,
                                   .fc = a->gated ? 2 * a->d_inner : a->d_inner};
}

// Returns the number of ids that have a logit. These are the first ids: the LM head ignores the
// later rows of the embedding.
static inline int32_t rlhf__tf_outputs(const struct rlhf__tf *m) {
    const int32_t n = m->open.n_tokens;
    return n > 0 && n < m->arch.n_vocab ? n : m->arch.n_vocab;
}

// Returns the number of ids that have an embedding.
static inline int32_t rlhf__tf_embedded(const struct rlhf__tf *m) {
    return m->table && m->arch.tied ? rlhf__tf_outputs(m) : m->arch.n_vocab;
}

static inline struct rlhf__tf_qkv rlhf__tf_qkv(const struct rlhf__tf *m, rlhf_dev qkv) {
    const struct rlhf_tf_widths n = rlhf_tf_widths(&m->arch);
    const uint64_t q = (uint64_t)n.q * rlhf__tf_esz(m), kv = (uint64_t)n.kv * rlhf__tf_esz(m);
    return (struct rlhf__tf_qkv){qkv, rlhf_dev_at(qkv, q), rlhf_dev_at(qkv, q + kv)};
}

// 1 if blocks have a norm of their input; of their output. Neither is so with RLHF_TF_NORM_SUMS.
static inline int32_t rlhf__tf_norms_before(const struct rlhf_tf_arch *a) {
    return a->norm_at == RLHF_TF_NORM_BEFORE || a->norm_at == RLHF_TF_NORM_AROUND;
}

static inline int32_t rlhf__tf_norms_after(const struct rlhf_tf_arch *a) {
    return a->norm_at == RLHF_TF_NORM_AFTER || a->norm_at == RLHF_TF_NORM_AROUND;
}

static inline int32_t rlhf__tf_norms_sums(const struct rlhf_tf_arch *a) {
    return a->norm_at == RLHF_TF_NORM_SUMS;
}

// How many elements of a head are rotated.
static inline int32_t rlhf__tf_rotary_dim(const struct rlhf_tf_arch *a) {
    return a->rotary.dim ? a->rotary.dim : a->head_dim;
}

// How the layer rotates its queries and keys.
static inline enum rlhf_tf_turn rlhf__tf_rotates(const struct rlhf__tf *m, int32_t layer) {
    const struct rlhf_tf_rotary *r = &m->arch.rotary;
    if (!r->frequency) return RLHF_TF_TURN_NONE;
    return r->layers ? (enum rlhf_tf_turn)r->layers[layer] : RLHF_TF_TURN;
}

// The layer's sliding window; 0: none.
static inline int32_t rlhf__tf_window(const struct rlhf_tf_arch *a, int32_t layer) {
    return !a->window_layers || a->window_layers[layer] ? a->window : 0;
}

// The factor of the token embedding.
double rlhf__tf_embed_scale(const struct rlhf__tf *m);

// The number of floats that a norm keeps per row for the backward pass.
static inline uint64_t rlhf__tf_stats(const struct rlhf__tf *m) {
    return m->arch.norm == RLHF_TF_NORM_RMS ? 1 : 2;
}

// The number of floats that the norms of queries and keys keep per row.
static inline uint64_t rlhf__tf_qk_stats(const struct rlhf__tf *m) {
    const struct rlhf_tf_arch *a = &m->arch;
    return a->qk_norm == RLHF_TF_QK_NORM_WIDTH ? 2 : (uint64_t)a->n_head + (uint64_t)a->n_kv_head;
}

// Returns 1 if the model has an LM head. Encoders never have one. Classifiers have one only if the
// architecture ties the LM head to the embedding: a classifier's checkpoint has no separate matrix
// for it.
static inline int32_t rlhf__tf_has_lm(const struct rlhf__tf *m) {
    return m->arch.causal && (m->arch.tied || m->open.n_labels == 0);
}

// 1 if the trunk's own parameters do not change: the trunk has an adapter or belongs to the base.
static inline int32_t rlhf__tf_trunk_frozen(const struct rlhf__tf *m) { return m->base || m->low; }

// 1 if the backward pass continues into the trunk.
static inline int32_t rlhf__tf_trunk_learns(const struct rlhf__tf *m) {
    return m->open.trainable && (m->low || !m->base);
}

static inline int32_t rlhf__tf_has_value(const struct rlhf__tf *m) {
    return m->open.value_kind != RLHF_VALUE_NONE;
}

#endif
