// gguf_config.c: see gguf_config.h. gguf_rope.c handles rotary positions.
#include "gguf_write/gguf_config.h"

#include "base/json.h"
#include "gguf_write/gguf_mix.h"
#include "gguf_write/gguf_rope.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- fields ----

// Reads a whole number of 1 or more. The number is required unless there is a fallback.
static rlhf_status whole(const json_t *config, const char *dir, const char *name, int32_t fallback,
                         int32_t *out, struct rlhf__error *err) {
    const json_t *v = json_object_get(config, name);
    *out = fallback;
    if ((!v || json_is_null(v)) && fallback > 0) return RLHF_OK;
    if (!json_is_integer(v) || json_integer_value(v) < 1 || json_integer_value(v) > INT32_MAX)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s/config.json: %s is %s, expected a whole number of 1 or more", dir,
                          name, json_is_integer(v) ? "out of range" : rlhf__json_kind(v));
    *out = (int32_t)json_integer_value(v);
    return RLHF_OK;
}

static rlhf_status refuse(const char *dir, const char *name, const json_t *v,
                          struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__json_write(&text, v, 0);
    rlhf_status st = rlhf__fail(err, RLHF_E_INVALID,
                                "%s/config.json: %s is %.200s, which a GGUF file of this "
                                "architecture cannot represent",
                                dir, name, rlhf__buf_text(&text));
    rlhf__buf_finish(&text);
    return st;
}

// ---- unsupported fields ----

static int is_type(const json_t *config, const char *model_type) {
    const char *type = json_string_value(json_object_get(config, "model_type"));
    return type && strcmp(type, model_type) == 0;
}

static int is_hybrid(const json_t *config) { return is_type(config, "granitemoehybrid"); }
static int is_olmo3(const json_t *config) { return is_type(config, "olmo3"); }

static rlhf_status find_arch(const json_t *config, const char *dir, struct rlhf__gguf_config *out,
                             struct rlhf__error *err) {
    const char *type = json_string_value(json_object_get(config, "model_type"));
    const char *class =
        json_string_value(json_array_get(json_object_get(config, "architectures"), 0));
    out->family = type ? rlhf__gguf_family(type) : -1;
    if (out->family < 0)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s: a GGUF file holds a language model of model_type llama, mistral, "
                          "qwen2, qwen3, qwen3_5_text, lfm2, smollm3, granite, granitemoehybrid, "
                          "gemma2, gemma3_text, phi3, olmo2, olmo3 or gpt2; this is %.64s",
                          dir, type ? type : "none");
    out->arch = rlhf__gguf_arch(out->family);
    if (class && !strstr(class, "LMHeadModel") && !strstr(class, "ForCausalLM"))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s: a GGUF file holds a language model; this is %.100s", dir, class);
    return RLHF_OK;
}

// ggml's GELU is the tanh form. The MLPs of Gemma are gated by it, those of the others by SiLU.
static rlhf_status check_activation(const json_t *config, const char *dir, int32_t family,
                                    struct rlhf__error *err) {
    const int gelu = family == RLHF__GGUF_GPT2 || rlhf__gguf_is_gemma(family);
    const char *field = family == RLHF__GGUF_GPT2     ? "activation_function"
                        : rlhf__gguf_is_gemma(family) ? "hidden_activation"
                                                      : "hidden_act";
    const json_t *v = json_object_get(config, field);
    const char *act = json_string_value(v);
    const int fine = !v ||
                     (act && gelu &&
                      (!strcmp(act, "gelu_new") || !strcmp(act, "gelu_fast") ||
                       !strcmp(act, "gelu_pytorch_tanh"))) ||
                     (act && !gelu && (!strcmp(act, "silu") || !strcmp(act, "swish")));
    return fine ? RLHF_OK : refuse(dir, field, v, err);
}

static rlhf_status check_rest(const json_t *config, const char *dir, int32_t family,
                              struct rlhf__error *err) {
    // Fields that must be false if present.
    static const char *const off[] = {"scale_attn_by_inverse_layer_idx", "use_sliding_window",
                                      "add_cross_attention"};
    for (size_t i = 0; i < sizeof off / sizeof *off; i++) {
        const json_t *v = json_object_get(config, off[i]);
        if (v && !json_is_false(v)) return refuse(dir, off[i], v, err);
    }
    const json_t *scaled = json_object_get(config, "scale_attn_weights");
    if (family == RLHF__GGUF_GPT2 && json_is_false(scaled))
        return refuse(dir, "scale_attn_weights", scaled, err);
    const json_t *window = json_object_get(config, "sliding_window");
    if (json_is_integer(window) && is_type(config, "mistral"))
        return refuse(dir, "sliding_window", window, err);
    const json_t *part = json_object_get(config, "partial_rotary_factor");
    const int has_part = family == RLHF__GGUF_PHI3 || family == RLHF__GGUF_QWEN35;
    if (!has_part && json_is_number(part) && json_number_value(part) != 1)
        return refuse(dir, "partial_rotary_factor", part, err);
    return RLHF_OK;
}

// llama.cpp rotates all layers of smollm3 but every fourth.
static rlhf_status check_layers(const json_t *config, const char *dir, struct rlhf__error *err) {
    const json_t *list = json_object_get(config, "no_rope_layers");
    const json_t *every = json_object_get(config, "no_rope_layer_interval");
    const json_t *layers = json_object_get(config, "num_hidden_layers");
    if (!json_array_size(list))
        return !every || json_integer_value(every) == 4
                   ? RLHF_OK
                   : refuse(dir, "no_rope_layer_interval", every, err);
    for (json_int_t i = 0; i < json_integer_value(layers); i++)
        if (json_integer_value(json_array_get(list, (size_t)i)) != rlhf__gguf_rotates((int32_t)i))
            return refuse(dir, "no_rope_layers", list, err);
    return RLHF_OK;
}

// llama.cpp gives a window to fixed layers.
static rlhf_status check_windows(const json_t *config, const char *dir,
                                 const struct rlhf__gguf_config *c, struct rlhf__error *err) {
    const int32_t period = rlhf__gguf_window_period(c->family);
    const json_t *list = json_object_get(config, "layer_types");
    const json_t *every = json_object_get(config, "sliding_window_pattern");
    const json_t *window = json_object_get(config, "sliding_window");
    if (window && !json_is_integer(window)) return refuse(dir, "sliding_window", window, err);
    if (!json_array_size(list))
        return json_is_integer(every) && json_integer_value(every) != period
                   ? refuse(dir, "sliding_window_pattern", every, err)
                   : RLHF_OK;
    for (int32_t i = 0; i < c->layers; i++) {
        const char *type = json_string_value(json_array_get(list, (size_t)i));
        if (!type ||
            (strcmp(type, "sliding_attention") == 0) != rlhf__gguf_has_window(c->family, i))
            return refuse(dir, "layer_types", list, err);
    }
    return RLHF_OK;
}

static rlhf_status check_scale(const json_t *config, const char *dir, int32_t d,
                               const struct rlhf__gguf_config *c, struct rlhf__error *err) {
    const json_t *v = json_object_get(config, "query_pre_attn_scalar");
    const double want = rlhf__gguf_score_divisor(c->family, c->layers, d, c->heads, c->head_dim);
    const double found = json_is_number(v) ? json_number_value(v) : 256;
    if (found == want) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s/config.json: query_pre_attn_scalar is %.10g, and llama.cpp takes %.10g "
                      "for this model",
                      dir, found, want);
}

static rlhf_status check_gemma(const json_t *config, const char *dir, int32_t d,
                               const struct rlhf__gguf_config *c, struct rlhf__error *err) {
    static const char *const caps[] = {"attn_logit_softcapping", "final_logit_softcapping"};
    for (size_t i = 0; i < 2 && c->family == RLHF__GGUF_GEMMA3; i++) {
        const json_t *cap = json_object_get(config, caps[i]);
        if (cap && !json_is_null(cap)) return refuse(dir, caps[i], cap, err);
    }
    for (size_t i = 0; i < 2 && c->family == RLHF__GGUF_GEMMA2; i++) {
        const json_t *cap = json_object_get(config, caps[i]);
        if (json_is_null(cap)) return refuse(dir, caps[i], cap, err);
    }
    const json_t *both = json_object_get(config, "use_bidirectional_attention");
    if (json_is_true(both)) return refuse(dir, "use_bidirectional_attention", both, err);
    RLHF_TRY(check_scale(config, dir, d, c, err));
    return check_windows(config, dir, c, err);
}

rlhf_status rlhf__gguf_config_read(const json_t *config, const char *dir,
                                   struct rlhf__gguf_config *out, struct rlhf__error *err) {
    *out = (struct rlhf__gguf_config){0};
    RLHF_TRY(find_arch(config, dir, out, err));
    RLHF_TRY(check_activation(config, dir, out->family, err));
    RLHF_TRY(check_rest(config, dir, out->family, err));
    if (out->family == RLHF__GGUF_SMOLLM3) RLHF_TRY(check_layers(config, dir, err));
    // llama.cpp requires OLMo's output table.
    const json_t *tied = json_object_get(config, "tie_word_embeddings");
    if (out->family == RLHF__GGUF_OLMO2 && json_is_true(tied))
        return refuse(dir, "tie_word_embeddings", tied, err);
    const int gpt2 = out->family == RLHF__GGUF_GPT2;
    int32_t d;
    RLHF_TRY(whole(config, dir, "vocab_size", 0, &out->vocab, err));
    RLHF_TRY(whole(config, dir, gpt2 ? "n_embd" : "hidden_size", 0, &d, err));
    RLHF_TRY(whole(config, dir, gpt2 ? "n_layer" : "num_hidden_layers", 0, &out->layers, err));
    RLHF_TRY(whole(config, dir, gpt2 ? "n_head" : "num_attention_heads", 0, &out->heads, err));
    out->kv_heads = out->heads;
    if (!gpt2) RLHF_TRY(whole(config, dir, "num_key_value_heads", out->heads, &out->kv_heads, err));
    const int is_256 = rlhf__gguf_is_gemma(out->family) || out->family == RLHF__GGUF_QWEN35;
    out->head_dim = is_256 ? 256 : d / out->heads;
    if (!gpt2) RLHF_TRY(whole(config, dir, "head_dim", out->head_dim, &out->head_dim, err));
    if (out->head_dim < 2 || out->head_dim % 2)
        return rlhf__fail(err, RLHF_E_INVALID, "%s/config.json: heads of width %d", dir,
                          (int)out->head_dim);
    const int same_width = out->family == RLHF__GGUF_PHI3 || out->family == RLHF__GGUF_OLMO2;
    if (same_width && (int64_t)out->heads * out->head_dim != d)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s/config.json: %d heads of width %d, but hidden_size is %d, which a "
                          "GGUF file of this architecture cannot represent",
                          dir, (int)out->heads, (int)out->head_dim, (int)d);
    if (rlhf__gguf_is_gemma(out->family)) RLHF_TRY(check_gemma(config, dir, d, out, err));
    if (is_olmo3(config)) RLHF_TRY(check_windows(config, dir, out, err));
    if (out->family == RLHF__GGUF_QWEN35 || out->family == RLHF__GGUF_LFM2)
        RLHF_TRY(rlhf__gguf_mix_read(config, dir, out, err));
    return gpt2 ? RLHF_OK
                : rlhf__gguf_rope_check(config, dir, out->arch, out->head_dim, &out->rope, err);
}

// ---- keys ----

// The value of a field that config.json may lack, or 0.
static double default_of(const struct rlhf__gguf_config *c, const json_t *config,
                         const struct rlhf__gguf_key *k) {
    const json_t *width = json_object_get(config, "n_embd");
    if (strcmp(k->field, "num_key_value_heads") == 0) return c->kv_heads;
    if (strcmp(k->field, "head_dim") == 0) return c->head_dim;
    if (strcmp(k->field, "n_inner") == 0) return 4 * json_number_value(width);
    return k->missing;
}

static rlhf_status put_number(struct rlhf__gguf *g, const json_t *config, const char *dir,
                              const struct rlhf__gguf_config *c, const struct rlhf__gguf_key *k,
                              struct rlhf__error *err) {
    const char *field = k->field;
    if (is_hybrid(config) && strcmp(field, "intermediate_size") == 0)
        field = "shared_intermediate_size";
    const double missing = default_of(c, config, k);
    const json_t *v = json_object_get(config, field);
    char key[96];
    int32_t n;
    snprintf(key, sizeof key, "%s.%s", c->arch, k->key);
    if (c->mlp && strcmp(field, "intermediate_size") == 0) {
        rlhf__gguf_u32(g, key, (uint32_t)c->mlp);
        return RLHF_OK;
    }
    if (!k->is_float) {
        RLHF_TRY(whole(config, dir, field, missing <= INT32_MAX ? (int32_t)missing : 0, &n, err));
        rlhf__gguf_u32(g, key, (uint32_t)n);
        return RLHF_OK;
    }
    const double found = !v || json_is_null(v) ? missing : json_number_value(v);
    if (!v && !(found > 0))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s/config.json: %s is missing, expected a number above 0", dir, field);
    if (!(found > 0)) return refuse(dir, field, v, err);
    rlhf__gguf_f32(g, key, found);
    return RLHF_OK;
}

// The window of Phi-3; 0: none. llama.cpp reads this key but computes without a window.
static rlhf_status put_window(struct rlhf__gguf *g, const json_t *config, const char *dir,
                              struct rlhf__error *err) {
    const json_t *v = json_object_get(config, "sliding_window");
    const json_int_t n = json_integer_value(v); // 0 if null or missing
    if ((v && !json_is_null(v) && !json_is_integer(v)) || n < 0 || n > INT32_MAX)
        return refuse(dir, "sliding_window", v, err);
    rlhf__gguf_u32(g, "phi3.attention.sliding_window", (uint32_t)n);
    return RLHF_OK;
}

// The window of OLMo 3, and which layers have it.
static rlhf_status put_windows(struct rlhf__gguf *g, const json_t *config, const char *dir,
                               const struct rlhf__gguf_config *c, struct rlhf__error *err) {
    int32_t n;
    RLHF_TRY(whole(config, dir, "sliding_window", 4096, &n, err));
    rlhf__gguf_u32(g, "olmo2.attention.sliding_window", (uint32_t)n);
    rlhf__gguf_array(g, "olmo2.attention.sliding_window_pattern", RLHF__GGUF_BOOL,
                     (uint64_t)c->layers);
    for (int32_t i = 0; i < c->layers; i++)
        rlhf__gguf_item_bool(g, rlhf__gguf_has_window(c->family, i));
    return RLHF_OK;
}

rlhf_status rlhf__gguf_config_put(struct rlhf__gguf *g, const json_t *config, const char *dir,
                                  const struct rlhf__gguf_config *c, struct rlhf__error *err) {
    const struct rlhf__gguf_key *k;
    for (size_t i = 0; (k = rlhf__gguf_key(i)) != NULL; i++)
        if (k->families >> c->family & 1) RLHF_TRY(put_number(g, config, dir, c, k, err));
    if (c->family != RLHF__GGUF_GPT2) rlhf__gguf_rope_put(g, config, c->arch, &c->rope);
    if (c->family == RLHF__GGUF_PHI3) return put_window(g, config, dir, err);
    rlhf__gguf_mix_put(g, c);
    if (is_olmo3(config)) return put_windows(g, config, dir, c, err);
    // a Granite 4 whose layers see no positions
    if (is_hybrid(config) && !json_is_string(json_object_get(config, "position_embedding_type")))
        rlhf__gguf_bool(g, "granite.rope.scaling.finetuned", 0);
    return RLHF_OK;
}
