// transformer/mix/states_config.c: reads from config.json which layers have a state; see decoder.h.
#include "transformer/decoder.h"

#include <string.h>

static int32_t is(const struct rlhf_tf_decoder *c, int64_t layer, const char *kind) {
    return strcmp(c->layer_types[layer], kind) == 0;
}

// Refuses a kind of layer that the family does not have. `kind` is that of its layers with a state,
// or NULL.
static rlhf_status check_kinds(const rlhf_host *host, const struct rlhf_tf_decoder *c,
                               const char *kind) {
    for (int64_t i = 0; c->layer_types[i]; i++) {
        const int32_t state = is(c, i, "conv") || is(c, i, "linear_attention");
        if (kind ? is(c, i, kind) || is(c, i, "full_attention") : !state) continue;
        return rlhf_failf(host, RLHF_E_UNSUPPORTED,
                          "config.json: layer_types has \"%s\" for layer %lld, which this "
                          "model_type does not have; known: full_attention%s%s",
                          c->layer_types[i], (long long)i, kind ? ", " : "", kind ? kind : "");
    }
    return RLHF_OK;
}

// 1 if the layer has a state.
static int32_t has_state(const struct rlhf_tf_decoder *c, uint32_t reads, int64_t layer) {
    if (c->layer_types[0]) return !is(c, layer, "full_attention");
    if (reads & RLHF_TF_READS_DELTA) return (layer + 1) % c->full_attention_interval != 0;
    if (!c->full_attn_idxs.len) return 0;
    for (uint64_t i = 0; i < c->full_attn_idxs.len; i++)
        if (c->full_attn_idxs.ptr[i] == layer) return 0;
    return 1;
}

static rlhf_status layers_read(const rlhf_host *host, const struct rlhf_tf_decoder *c,
                               uint32_t reads, enum rlhf_tf_mix mix, uint8_t **out) {
    int32_t some = 0;
    for (int64_t i = 0; i < c->num_hidden_layers; i++)
        some |= has_state(c, reads, i);
    if (!some) return RLHF_OK;
    *out = host->alloc(host, (uint64_t)c->num_hidden_layers);
    if (!*out) return host->fail(host, RLHF_E_NOMEM, "out of memory for a list of layers");
    for (int64_t i = 0; i < c->num_hidden_layers; i++)
        (*out)[i] = (uint8_t)(has_state(c, reads, i) ? mix : RLHF_TF_ATTENTION);
    return RLHF_OK;
}

// The width of LFM2's MLP. Numbers are rounded as in transformers.
static rlhf_status lfm_width(const rlhf_host *host, const struct rlhf_tf_decoder *c, int32_t *out) {
    const double given = (double)(c->block_ff_dim ? c->block_ff_dim : c->intermediate_size);
    const int64_t step = c->block_multiple_of;
    int64_t width = (int64_t)given;
    if (c->block_auto_adjust_ff_dim) {
        width = (int64_t)(c->block_ffn_dim_multiplier * (double)(int64_t)(2 * given / 3));
        width = (width + step - 1) / step * step;
    }
    *out = (int32_t)width;
    if (width >= 1 && width <= 1 << 18) return RLHF_OK;
    return rlhf_failf(host, RLHF_E_INVALID,
                      "config.json: the settings block_* make the MLP %lld wide; allowed: 1 to %d",
                      (long long)width, 1 << 18);
}

static rlhf_status check_taps(const rlhf_host *host, const char *key, int64_t taps) {
    if (taps >= 2 && taps <= 8) return RLHF_OK;
    return rlhf_failf(host, RLHF_E_UNSUPPORTED,
                      "config.json: %s %lld is not implemented; known: 2 "
                      "to 8",
                      key, (long long)taps);
}

static rlhf_status lfm_read(const rlhf_host *host, const struct rlhf_tf_decoder *c,
                            struct rlhf_tf_arch *a) {
    RLHF_TRY(check_taps(host, "conv_L_cache", c->conv_L_cache));
    RLHF_TRY(lfm_width(host, c, &a->d_inner));
    a->state.taps = (int32_t)c->conv_L_cache;
    a->state.bias = c->conv_bias;
    a->norm_eps = c->norm_eps;
    a->act = RLHF_ACT_SILU;
    if (c->tie_embedding != RLHF_TF_TIED_BY_FAMILY) a->tied = c->tie_embedding;
    return layers_read(host, c, RLHF_TF_READS_SHORT_CONV, RLHF_TF_CONV, &a->mix_layers);
}

static rlhf_status delta_read(const rlhf_host *host, const struct rlhf_tf_decoder *c,
                              struct rlhf_tf_arch *a) {
    RLHF_TRY(check_taps(host, "linear_conv_kernel_dim", c->linear_conv_kernel_dim));
    if (c->linear_num_value_heads % c->linear_num_key_heads)
        return rlhf_failf(host, RLHF_E_INVALID,
                          "config.json: linear_num_value_heads (%lld) must be a multiple of "
                          "linear_num_key_heads (%lld)",
                          (long long)c->linear_num_value_heads, (long long)c->linear_num_key_heads);
    a->state = (struct rlhf_tf_state){.taps = (int32_t)c->linear_conv_kernel_dim,
                                      .key_heads = (int32_t)c->linear_num_key_heads,
                                      .value_heads = (int32_t)c->linear_num_value_heads,
                                      .key_dim = (int32_t)c->linear_key_head_dim,
                                      .value_dim = (int32_t)c->linear_value_head_dim};
    a->attn_gate = 1;
    return layers_read(host, c, RLHF_TF_READS_DELTA, RLHF_TF_DELTA, &a->mix_layers);
}

rlhf_status rlhf_tf_states_read(const rlhf_host *host, const struct rlhf_tf_decoder *c,
                                const struct rlhf_tf_family *family, struct rlhf_tf_arch *out) {
    const int32_t lfm = (family->reads & RLHF_TF_READS_SHORT_CONV) != 0;
    const int32_t delta = (family->reads & RLHF_TF_READS_DELTA) != 0;
    RLHF_TRY(check_kinds(host, c, lfm ? "conv" : delta ? "linear_attention" : NULL));
    if (lfm) return lfm_read(host, c, out);
    return delta ? delta_read(host, c, out) : RLHF_OK;
}
