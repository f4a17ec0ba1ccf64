// gguf_mix.c: see gguf_mix.h.
#include "gguf_write/gguf_mix.h"

#include "base/json.h"

#include <string.h>

static rlhf_status bad(const char *dir, const char *name, const json_t *v,
                       struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    if (v) rlhf__json_write(&text, v, 0);
    const rlhf_status st = rlhf__fail(
        err, RLHF_E_INVALID,
        "%s/config.json: %s is %.200s, which a GGUF file of this architecture cannot represent",
        dir, name, v ? rlhf__buf_text(&text) : "missing");
    rlhf__buf_finish(&text);
    return st;
}

// A whole number from 1 to 2^20, or the default of transformers.
static rlhf_status size(const json_t *config, const char *dir, const char *name, int32_t missing,
                        int32_t *out, struct rlhf__error *err) {
    const json_t *v = json_object_get(config, name);
    const json_int_t n = v ? json_integer_value(v) : missing;
    if ((v && !json_is_integer(v)) || n < 1 || n > 1 << 20) return bad(dir, name, v, err);
    *out = (int32_t)n;
    return RLHF_OK;
}

// Reads layer_types, where `state` is the kind with a state. Returns 0 if the config lacks the
// list.
static rlhf_status read_kinds(const json_t *config, const char *dir, const char *state,
                              struct rlhf__gguf_config *out, int *has_list,
                              struct rlhf__error *err) {
    const json_t *list = json_object_get(config, "layer_types");
    *has_list = json_array_size(list) > 0;
    if (out->layers > RLHF__GGUF_LAYERS)
        return bad(dir, "num_hidden_layers", json_object_get(config, "num_hidden_layers"), err);
    for (int32_t i = 0; *has_list && i < out->layers; i++) {
        const char *kind = json_string_value(json_array_get(list, (size_t)i));
        if (kind && strcmp(kind, state) == 0)
            rlhf__gguf_set_state(&out->mix, i);
        else if (!kind || strcmp(kind, "full_attention") != 0)
            return bad(dir, "layer_types", list, err);
    }
    return RLHF_OK;
}

// ---- LFM2 ----

// The width of the MLP, as in Lfm2MLP of transformers.
static rlhf_status read_mlp(const json_t *config, const char *dir, struct rlhf__gguf_config *out,
                            struct rlhf__error *err) {
    const char *name =
        json_object_get(config, "block_ff_dim") ? "block_ff_dim" : "intermediate_size";
    const json_t *more = json_object_get(config, "block_ffn_dim_multiplier");
    int32_t of = 1;
    RLHF_TRY(size(config, dir, name, 12288, &out->mlp, err));
    RLHF_TRY(size(config, dir, "block_multiple_of", 256, &of, err));
    if (json_is_false(json_object_get(config, "block_auto_adjust_ff_dim"))) return RLHF_OK;
    const int32_t whole = 2 * out->mlp / 3;
    double n = whole;
    if (json_is_number(more)) n = json_number_value(more) * n;
    if (!(n >= 1) || n > 1 << 24) return bad(dir, "block_ffn_dim_multiplier", more, err);
    out->mlp = ((int32_t)n + of - 1) / of * of;
    return RLHF_OK;
}

static rlhf_status read_lfm(const json_t *config, const char *dir, struct rlhf__gguf_config *out,
                            struct rlhf__error *err) {
    const json_t *bias = json_object_get(config, "conv_bias");
    const json_t *list = json_object_get(config, "full_attn_idxs");
    int has_list = 0;
    RLHF_TRY(size(config, dir, "conv_L_cache", 3, &out->mix.taps, err));
    if (json_is_true(bias)) return bad(dir, "conv_bias", bias, err);
    RLHF_TRY(read_mlp(config, dir, out, err));
    RLHF_TRY(read_kinds(config, dir, "conv", out, &has_list, err));
    // Without either list, all layers have attention.
    for (int32_t i = 0; !has_list && json_is_array(list) && i < out->layers; i++) {
        int in = 0;
        for (size_t k = 0; k < json_array_size(list); k++)
            in |= json_integer_value(json_array_get(list, k)) == i;
        if (!in) rlhf__gguf_set_state(&out->mix, i);
    }
    return RLHF_OK;
}

// ---- Qwen3.5 ----

// llama.cpp knows only that every n-th layer has attention.
static rlhf_status read_every(const json_t *config, const char *dir, struct rlhf__gguf_config *out,
                              struct rlhf__error *err) {
    int has_list = 0;
    RLHF_TRY(size(config, dir, "full_attention_interval", 4, &out->every, err));
    RLHF_TRY(read_kinds(config, dir, "linear_attention", out, &has_list, err));
    int32_t first = 0;
    while (has_list && first < out->layers && rlhf__gguf_has_state(&out->mix, first))
        first++;
    if (has_list) out->every = first + 1;
    for (int32_t i = 0; i < out->layers; i++) {
        const int state = (i + 1) % out->every != 0;
        if (has_list && state != rlhf__gguf_has_state(&out->mix, i))
            return bad(dir, "layer_types", json_object_get(config, "layer_types"), err);
        if (state) rlhf__gguf_set_state(&out->mix, i);
    }
    return RLHF_OK;
}

static rlhf_status read_qwen(const json_t *config, const char *dir, struct rlhf__gguf_config *out,
                             struct rlhf__error *err) {
    struct rlhf__gguf_mix *m = &out->mix;
    RLHF_TRY(size(config, dir, "linear_conv_kernel_dim", 4, &m->taps, err));
    RLHF_TRY(size(config, dir, "linear_num_key_heads", 16, &m->key_heads, err));
    RLHF_TRY(size(config, dir, "linear_num_value_heads", 32, &m->value_heads, err));
    RLHF_TRY(size(config, dir, "linear_key_head_dim", 128, &m->key_dim, err));
    RLHF_TRY(size(config, dir, "linear_value_head_dim", 128, &m->value_dim, err));
    if (m->value_dim != m->key_dim) // llama.cpp has one width for both
        return bad(dir, "linear_value_head_dim", json_object_get(config, "linear_value_head_dim"),
                   err);
    if (m->value_heads % m->key_heads)
        return bad(dir, "linear_num_value_heads", json_object_get(config, "linear_num_value_heads"),
                   err);
    return read_every(config, dir, out, err);
}

// ---- both ----

rlhf_status rlhf__gguf_mix_read(const json_t *config, const char *dir,
                                struct rlhf__gguf_config *out, struct rlhf__error *err) {
    return out->family == RLHF__GGUF_LFM2 ? read_lfm(config, dir, out, err)
                                          : read_qwen(config, dir, out, err);
}

void rlhf__gguf_mix_put(struct rlhf__gguf *g, const struct rlhf__gguf_config *c) {
    if (c->family == RLHF__GGUF_QWEN35) {
        rlhf__gguf_u32(g, "qwen35.ssm.inner_size",
                       (uint32_t)c->mix.value_heads * (uint32_t)c->mix.value_dim);
        rlhf__gguf_u32(g, "qwen35.full_attention_interval", (uint32_t)c->every);
    }
    if (c->family != RLHF__GGUF_LFM2) return;
    rlhf__gguf_array(g, "lfm2.attention.head_count_kv", RLHF__GGUF_I32, (uint64_t)c->layers);
    for (int32_t i = 0; i < c->layers; i++)
        rlhf__gguf_item_i32(g, rlhf__gguf_has_state(&c->mix, i) ? 0 : c->kv_heads);
}
