// gguf_config.c: see gguf_config.h. gguf_rope.c handles rotary positions.
#include "gguf/gguf_config.h"

#include "base/json.h"
#include "gguf/gguf_rope.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

// ---- fields ----

// A whole number of 1 or more; it is required unless there is a fallback.
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
                                "architecture cannot say",
                                dir, name, rlhf__buf_text(&text));
    rlhf__buf_free(&text);
    return st;
}

// ---- unsupported fields ----

static const struct {
    const char *model_type, *arch;
    int32_t family, reserved;
} archs[] = {
    {"llama", "llama", RLHF__GGUF_LLAMA, 0}, {"mistral", "llama", RLHF__GGUF_LLAMA, 0},
    {"qwen2", "qwen2", RLHF__GGUF_QWEN2, 0}, {"qwen3", "qwen3", RLHF__GGUF_QWEN3, 0},
    {"gpt2", "gpt2", RLHF__GGUF_GPT2, 0},
};

static rlhf_status find_arch(const json_t *config, const char *dir, struct rlhf__gguf_config *out,
                             struct rlhf__error *err) {
    const char *type = json_string_value(json_object_get(config, "model_type"));
    const char *class =
        json_string_value(json_array_get(json_object_get(config, "architectures"), 0));
    for (size_t i = 0; type && i < sizeof archs / sizeof *archs; i++)
        if (strcmp(type, archs[i].model_type) == 0) {
            out->arch = archs[i].arch;
            out->family = archs[i].family;
        }
    if (!out->arch)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s: a GGUF file holds a language model of model_type llama, mistral, "
                          "qwen2, qwen3 or gpt2; this is %.64s",
                          dir, type ? type : "none");
    if (class && !strstr(class, "LMHeadModel") && !strstr(class, "ForCausalLM"))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s: a GGUF file holds a language model; this is %.100s", dir, class);
    return RLHF_OK;
}

// ggml's GELU is the tanh form; the other families' MLPs are gated by SiLU.
static rlhf_status check_activation(const json_t *config, const char *dir, int32_t family,
                                    struct rlhf__error *err) {
    const int gpt2 = family == RLHF__GGUF_GPT2;
    const char *field = gpt2 ? "activation_function" : "hidden_act";
    const json_t *v = json_object_get(config, field);
    const char *act = json_string_value(v);
    const int fine = !v ||
                     (act && gpt2 &&
                      (!strcmp(act, "gelu_new") || !strcmp(act, "gelu_fast") ||
                       !strcmp(act, "gelu_pytorch_tanh"))) ||
                     (act && !gpt2 && (!strcmp(act, "silu") || !strcmp(act, "swish")));
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
    const char *type = json_string_value(json_object_get(config, "model_type"));
    if (json_is_integer(window) && type && strcmp(type, "mistral") == 0)
        return refuse(dir, "sliding_window", window, err);
    const json_t *part = json_object_get(config, "partial_rotary_factor");
    if (json_is_number(part) && json_number_value(part) != 1)
        return refuse(dir, "partial_rotary_factor", part, err);
    return RLHF_OK;
}

rlhf_status rlhf__gguf_config_read(const json_t *config, const char *dir,
                                   struct rlhf__gguf_config *out, struct rlhf__error *err) {
    *out = (struct rlhf__gguf_config){0};
    RLHF_TRY(find_arch(config, dir, out, err));
    RLHF_TRY(check_activation(config, dir, out->family, err));
    RLHF_TRY(check_rest(config, dir, out->family, err));
    const int gpt2 = out->family == RLHF__GGUF_GPT2;
    int32_t d;
    RLHF_TRY(whole(config, dir, "vocab_size", 0, &out->vocab, err));
    RLHF_TRY(whole(config, dir, gpt2 ? "n_embd" : "hidden_size", 0, &d, err));
    RLHF_TRY(whole(config, dir, gpt2 ? "n_layer" : "num_hidden_layers", 0, &out->layers, err));
    RLHF_TRY(whole(config, dir, gpt2 ? "n_head" : "num_attention_heads", 0, &out->heads, err));
    out->kv_heads = out->heads;
    if (!gpt2) RLHF_TRY(whole(config, dir, "num_key_value_heads", out->heads, &out->kv_heads, err));
    out->head_dim = out->heads > 0 ? d / out->heads : 0;
    if (!gpt2) RLHF_TRY(whole(config, dir, "head_dim", out->head_dim, &out->head_dim, err));
    if (out->head_dim < 2 || out->head_dim % 2)
        return rlhf__fail(err, RLHF_E_INVALID, "%s/config.json: heads of width %d", dir,
                          (int)out->head_dim);
    return gpt2 ? RLHF_OK : rlhf__gguf_rope_check(config, dir, out->arch, &out->llama3_rope, err);
}

// ---- keys ----

// "<arch>.<name>".
static const char *in_arch(const struct rlhf__gguf_config *c, const char *name, char out[96]) {
    snprintf(out, 96, "%s.%s", c->arch, name);
    return out;
}

static void put_number(struct rlhf__gguf *g, const struct rlhf__gguf_config *c, const char *name,
                       int32_t v) {
    char key[96];
    rlhf__gguf_u32(g, in_arch(c, name, key), (uint32_t)v);
}

static rlhf_status put_epsilon(struct rlhf__gguf *g, const json_t *config, const char *dir,
                               const struct rlhf__gguf_config *c, struct rlhf__error *err) {
    const int gpt2 = c->family == RLHF__GGUF_GPT2;
    const char *field = gpt2 ? "layer_norm_epsilon" : "rms_norm_eps";
    const json_t *v = json_object_get(config, field);
    char key[96];
    if (!json_is_number(v) || !(json_number_value(v) > 0))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s/config.json: %s is %s, expected a number above 0", dir, field,
                          json_is_number(v) ? "out of range" : rlhf__json_kind(v));
    in_arch(c, gpt2 ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", key);
    rlhf__gguf_f32(g, key, json_number_value(v));
    return RLHF_OK;
}

rlhf_status rlhf__gguf_config_put(struct rlhf__gguf *g, const json_t *config, const char *dir,
                                  const struct rlhf__gguf_config *c, struct rlhf__error *err) {
    const int gpt2 = c->family == RLHF__GGUF_GPT2;
    int32_t d, context, inner;
    RLHF_TRY(whole(config, dir, gpt2 ? "n_embd" : "hidden_size", 0, &d, err));
    RLHF_TRY(
        whole(config, dir, gpt2 ? "n_positions" : "max_position_embeddings", 0, &context, err));
    RLHF_TRY(whole(config, dir, gpt2 ? "n_inner" : "intermediate_size",
                   gpt2 && d < INT32_MAX / 4 ? 4 * d : 0, &inner, err));
    put_number(g, c, "vocab_size", c->vocab);
    put_number(g, c, "context_length", context);
    put_number(g, c, "embedding_length", d);
    put_number(g, c, "block_count", c->layers);
    put_number(g, c, "feed_forward_length", inner);
    put_number(g, c, "attention.head_count", c->heads);
    RLHF_TRY(put_epsilon(g, config, dir, c, err));
    if (gpt2) return RLHF_OK;
    put_number(g, c, "attention.head_count_kv", c->kv_heads);
    put_number(g, c, "attention.key_length", c->head_dim);
    put_number(g, c, "attention.value_length", c->head_dim);
    put_number(g, c, "rope.dimension_count", c->head_dim);
    rlhf__gguf_rope_put(g, config, c->arch);
    return RLHF_OK;
}
