// gguf_config.c: see gguf_config.h. gguf_rope.c handles rotary positions.
#include "export/gguf_config.h"

#include "base/json.h"
#include "export/gguf_rope.h"

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
                                "architecture cannot say",
                                dir, name, rlhf__buf_text(&text));
    rlhf__buf_finish(&text);
    return st;
}

// ---- unsupported fields ----

static const struct {
    const char *model_type, *arch;
    int32_t family;
} archs[] = {
    {"llama", "llama", RLHF__GGUF_LLAMA},
    {"mistral", "llama", RLHF__GGUF_LLAMA},
    {"qwen2", "qwen2", RLHF__GGUF_QWEN2},
    {"qwen3", "qwen3", RLHF__GGUF_QWEN3},
    {"smollm3", "smollm3", RLHF__GGUF_SMOLLM3},
    {"granite", "granite", RLHF__GGUF_GRANITE},
    {"granitemoehybrid", "granite", RLHF__GGUF_GRANITE},
    {"phi3", "phi3", RLHF__GGUF_PHI3},
    {"gpt2", "gpt2", RLHF__GGUF_GPT2},
};

static int is_hybrid(const json_t *config) {
    const char *type = json_string_value(json_object_get(config, "model_type"));
    return type && strcmp(type, "granitemoehybrid") == 0;
}

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
                          "qwen2, qwen3, smollm3, granite, granitemoehybrid, phi3 or gpt2; this is "
                          "%.64s",
                          dir, type ? type : "none");
    if (class && !strstr(class, "LMHeadModel") && !strstr(class, "ForCausalLM"))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s: a GGUF file holds a language model; this is %.100s", dir, class);
    return RLHF_OK;
}

// ggml's GELU is the tanh form. The other families have MLPs that are gated by SiLU.
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
    if (family != RLHF__GGUF_PHI3 && json_is_number(part) && json_number_value(part) != 1)
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
        if (json_integer_value(json_array_get(list, (size_t)i)) != ((i + 1) % 4 != 0))
            return refuse(dir, "no_rope_layers", list, err);
    return RLHF_OK;
}

rlhf_status rlhf__gguf_config_read(const json_t *config, const char *dir,
                                   struct rlhf__gguf_config *out, struct rlhf__error *err) {
    *out = (struct rlhf__gguf_config){0};
    RLHF_TRY(find_arch(config, dir, out, err));
    RLHF_TRY(check_activation(config, dir, out->family, err));
    RLHF_TRY(check_rest(config, dir, out->family, err));
    if (out->family == RLHF__GGUF_SMOLLM3) RLHF_TRY(check_layers(config, dir, err));
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
    if (out->family == RLHF__GGUF_PHI3 && (int64_t)out->heads * out->head_dim != d)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s/config.json: %d heads of width %d, but hidden_size is %d, which a "
                          "GGUF file of this architecture cannot say",
                          dir, (int)out->heads, (int)out->head_dim, (int)d);
    return gpt2 ? RLHF_OK
                : rlhf__gguf_rope_check(config, dir, out->arch, out->head_dim, &out->rope, err);
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

static const char *inner_of(const json_t *config, int gpt2) {
    return gpt2 ? "n_inner" : is_hybrid(config) ? "shared_intermediate_size" : "intermediate_size";
}

// The window of Phi-3; 0: none. llama.cpp reads this key but computes without a window.
static rlhf_status put_window(struct rlhf__gguf *g, const json_t *config, const char *dir,
                              const struct rlhf__gguf_config *c, struct rlhf__error *err) {
    const json_t *v = json_object_get(config, "sliding_window");
    const json_int_t n = json_integer_value(v); // 0 if null or missing
    if ((v && !json_is_null(v) && !json_is_integer(v)) || n < 0 || n > INT32_MAX)
        return refuse(dir, "sliding_window", v, err);
    put_number(g, c, "attention.sliding_window", (int32_t)n);
    return RLHF_OK;
}

// Granite's four factors and, for a Granite 4 that does not rotate, llama.cpp's switch for this.
static rlhf_status put_factors(struct rlhf__gguf *g, const json_t *config, const char *dir,
                               const struct rlhf__gguf_config *c, struct rlhf__error *err) {
    static const char *const keys[][2] = {{"attention_multiplier", "attention.scale"},
                                          {"embedding_multiplier", "embedding_scale"},
                                          {"residual_multiplier", "residual_scale"},
                                          {"logits_scaling", "logit_scale"}};
    char key[96];
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *v = json_object_get(config, keys[i][0]);
        const int missing = !v || json_is_null(v);
        if (!missing && !(json_number_value(v) > 0)) return refuse(dir, keys[i][0], v, err);
        rlhf__gguf_f32(g, in_arch(c, keys[i][1], key), missing ? 1 : json_number_value(v));
    }
    if (is_hybrid(config) && !json_is_string(json_object_get(config, "position_embedding_type")))
        rlhf__gguf_bool(g, in_arch(c, "rope.scaling.finetuned", key), 0);
    return RLHF_OK;
}

rlhf_status rlhf__gguf_config_put(struct rlhf__gguf *g, const json_t *config, const char *dir,
                                  const struct rlhf__gguf_config *c, struct rlhf__error *err) {
    const int gpt2 = c->family == RLHF__GGUF_GPT2;
    int32_t d, context, inner;
    RLHF_TRY(whole(config, dir, gpt2 ? "n_embd" : "hidden_size", 0, &d, err));
    RLHF_TRY(
        whole(config, dir, gpt2 ? "n_positions" : "max_position_embeddings", 0, &context, err));
    RLHF_TRY(whole(config, dir, inner_of(config, gpt2), gpt2 && d < INT32_MAX / 4 ? 4 * d : 0,
                   &inner, err));
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
    rlhf__gguf_rope_put(g, config, c->arch, &c->rope);
    if (c->family == RLHF__GGUF_PHI3) return put_window(g, config, dir, c, err);
    return c->family == RLHF__GGUF_GRANITE ? put_factors(g, config, dir, c, err) : RLHF_OK;
}

// ---- names of tensors ----

// The architectures of llama.cpp, as bits. The tables below list, for each stem of a name, the
// architectures that have a weight of this name, and those that have a bias.
enum {
    LLAMA = 1 << RLHF__GGUF_LLAMA,
    QWEN2 = 1 << RLHF__GGUF_QWEN2,
    QWEN3 = 1 << RLHF__GGUF_QWEN3,
    SMOLLM3 = 1 << RLHF__GGUF_SMOLLM3,
    GRANITE = 1 << RLHF__GGUF_GRANITE,
    PHI3 = 1 << RLHF__GGUF_PHI3,
    GPT2 = 1 << RLHF__GGUF_GPT2,
    SPLIT = LLAMA | QWEN2 | QWEN3 | SMOLLM3 | GRANITE, // a matrix each for q, k, v, gate and up
    ROTARY = SPLIT | PHI3,
    ADJACENT = LLAMA | SMOLLM3 | GRANITE, // llama.cpp stores rotary pairs next to each other
    NONE = 0
};

// A stem and its name in llama.cpp; ".weight" and ".bias" are appended to both.
struct name {
    const char *hf, *gguf;
    int32_t rows;
    int32_t weight, bias; // architectures with this weight; architectures with this bias
};

static const struct name rotary_block[] = {
    {"input_layernorm", "attn_norm", RLHF__GGUF_AS_IS, ROTARY, NONE},
    {"self_attn.q_proj", "attn_q", RLHF__GGUF_PAIR_Q, SPLIT, LLAMA | QWEN2 | GRANITE},
    {"self_attn.k_proj", "attn_k", RLHF__GGUF_PAIR_K, SPLIT, LLAMA | QWEN2 | GRANITE},
    {"self_attn.v_proj", "attn_v", RLHF__GGUF_AS_IS, SPLIT, LLAMA | QWEN2 | GRANITE},
    {"self_attn.o_proj", "attn_output", RLHF__GGUF_AS_IS, ROTARY, LLAMA | GRANITE},
    {"self_attn.q_norm", "attn_q_norm", RLHF__GGUF_AS_IS, QWEN3, NONE},
    {"self_attn.k_norm", "attn_k_norm", RLHF__GGUF_AS_IS, QWEN3, NONE},
    {"post_attention_layernorm", "ffn_norm", RLHF__GGUF_AS_IS, ROTARY, NONE},
    {"mlp.gate_proj", "ffn_gate", RLHF__GGUF_AS_IS, SPLIT, LLAMA | GRANITE},
    {"mlp.up_proj", "ffn_up", RLHF__GGUF_AS_IS, SPLIT, LLAMA | GRANITE},
    {"mlp.down_proj", "ffn_down", RLHF__GGUF_AS_IS, ROTARY, LLAMA | GRANITE},
    {"self_attn.qkv_proj", "attn_qkv", RLHF__GGUF_AS_IS, PHI3, NONE},
    {"mlp.gate_up_proj", "ffn_up", RLHF__GGUF_AS_IS, PHI3, NONE},
    {"shared_mlp.input_linear", "ffn_gate", RLHF__GGUF_GATE_UP, GRANITE, NONE},
    {"shared_mlp.output_linear", "ffn_down", RLHF__GGUF_AS_IS, GRANITE, NONE},
    {0},
};
static const struct name rotary_outside[] = {
    {"embed_tokens", "token_embd", RLHF__GGUF_AS_IS, ROTARY, NONE},
    {"norm", "output_norm", RLHF__GGUF_AS_IS, ROTARY, NONE},
    {"lm_head", "output", RLHF__GGUF_AS_IS, ROTARY, NONE},
    {0},
};
static const struct name gpt2_block[] = {
    {"ln_1", "attn_norm", RLHF__GGUF_AS_IS, GPT2, GPT2},
    {"attn.c_attn", "attn_qkv", RLHF__GGUF_TRANSPOSED, GPT2, GPT2},
    {"attn.c_proj", "attn_output", RLHF__GGUF_TRANSPOSED, GPT2, GPT2},
    {"ln_2", "ffn_norm", RLHF__GGUF_AS_IS, GPT2, GPT2},
    {"mlp.c_fc", "ffn_up", RLHF__GGUF_TRANSPOSED, GPT2, GPT2},
    {"mlp.c_proj", "ffn_down", RLHF__GGUF_TRANSPOSED, GPT2, GPT2},
    {0},
};
static const struct name gpt2_outside[] = {
    {"wte", "token_embd", RLHF__GGUF_AS_IS, GPT2, NONE},
    {"wpe", "position_embd", RLHF__GGUF_AS_IS, GPT2, NONE},
    {"ln_f", "output_norm", RLHF__GGUF_AS_IS, GPT2, GPT2},
    {"lm_head", "output", RLHF__GGUF_AS_IS, GPT2, NONE},
    {0},
};

static const struct {
    const char *prefix, *block; // "model." may be missing; "layers.3."
    const struct name *in_block, *outside;
    const char *arch;
} families[RLHF__GGUF_N_FAMILIES] = {
    [RLHF__GGUF_LLAMA] = {"model.", "layers.", rotary_block, rotary_outside, "llama"},
    [RLHF__GGUF_QWEN2] = {"model.", "layers.", rotary_block, rotary_outside, "qwen2"},
    [RLHF__GGUF_QWEN3] = {"model.", "layers.", rotary_block, rotary_outside, "qwen3"},
    [RLHF__GGUF_SMOLLM3] = {"model.", "layers.", rotary_block, rotary_outside, "smollm3"},
    [RLHF__GGUF_GRANITE] = {"model.", "layers.", rotary_block, rotary_outside, "granite"},
    [RLHF__GGUF_PHI3] = {"model.", "layers.", rotary_block, rotary_outside, "phi3"},
    [RLHF__GGUF_GPT2] = {"transformer.", "h.", gpt2_block, gpt2_outside, "gpt2"},
};

// If *text begins with a number and a dot ("3."), returns the number and moves *text past the dot.
// Otherwise returns -1.
static int32_t layer_of(const char **text) {
    char *end;
    if (**text < '0' || **text > '9') return -1;
    const long n = strtol(*text, &end, 10);
    if (*end != '.' || n > 100000 || (**text == '0' && end != *text + 1)) return -1;
    *text = end + 1;
    return (int32_t)n;
}

static const struct name *find(const struct name *list, const char *stem, size_t len) {
    for (; list->hf; list++)
        if (strlen(list->hf) == len && memcmp(list->hf, stem, len) == 0) return list;
    return NULL;
}

rlhf_status rlhf__gguf_name(int32_t family, const struct rlhf__tensor *t,
                            char out[RLHF__GGUF_NAME_CAP], int32_t *layer, int32_t *rows,
                            struct rlhf__error *err) {
    const char *stem = t->name, *prefix = families[family].prefix;
    const char *block = families[family].block;
    if (strncmp(stem, prefix, strlen(prefix)) == 0) stem += strlen(prefix);
    *layer = -1;
    if (strncmp(stem, block, strlen(block)) == 0) {
        stem += strlen(block);
        *layer = layer_of(&stem);
    }
    const char *dot = strrchr(stem, '.');
    const int is_weight = dot && strcmp(dot, ".weight") == 0;
    const struct name *n = NULL;
    if (is_weight || (dot && strcmp(dot, ".bias") == 0))
        n = find(*layer >= 0 ? families[family].in_block : families[family].outside, stem,
                 (size_t)(dot - stem));
    if (!n || !((is_weight ? n->weight : n->bias) >> family & 1))
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "%s: tensor %s is not supported in a GGUF file of llama.cpp's architecture "
            "%s",
            t->file, t->name, families[family].arch);
    *rows = n->rows;
    if (*rows == RLHF__GGUF_TRANSPOSED && !is_weight) *rows = RLHF__GGUF_AS_IS;
    if (!(ADJACENT >> family & 1) && (*rows == RLHF__GGUF_PAIR_Q || *rows == RLHF__GGUF_PAIR_K))
        *rows = RLHF__GGUF_AS_IS;
    if (*layer >= 0)
        snprintf(out, RLHF__GGUF_NAME_CAP, "blk.%d.%s%s", (int)*layer, n->gguf, dot);
    else
        snprintf(out, RLHF__GGUF_NAME_CAP, "%s%s", n->gguf, dot);
    return RLHF_OK;
}

// Returns 1 if the model must have the tensor. All of an architecture's tensors are required,
// except a tied output table and the biases of Llama and Granite.
static int needs(const struct name *n, int32_t family, int tied, int bias) {
    const int32_t head = tied && strcmp(n->hf, "lm_head") == 0;
    const int32_t all = bias ? n->bias & ~(LLAMA | GRANITE) : head ? NONE : n->weight;
    return all >> family & 1;
}

// Among the names in `list` that the family requires, finds the one with index *i, writes it to
// `out` and returns 1. If there are not enough such names, subtracts their number from *i and
// returns 0.
static int needed_of(const struct name *list, int32_t family, int tied, int block, size_t *i,
                     char out[RLHF__GGUF_NAME_CAP]) {
    for (; list->hf; list++)
        for (int bias = 0; bias < 2; bias++) {
            if (!needs(list, family, tied, bias) || (*i)-- > 0) continue;
            snprintf(out, RLHF__GGUF_NAME_CAP, "%s%s.%s", block ? "blk.%d." : "", list->gguf,
                     bias ? "bias" : "weight");
            return 1;
        }
    return 0;
}

int rlhf__gguf_required(int32_t family, int tied, size_t i, char out[RLHF__GGUF_NAME_CAP]) {
    return needed_of(families[family].outside, family, tied, 0, &i, out) ||
           needed_of(families[family].in_block, family, tied, 1, &i, out);
}
