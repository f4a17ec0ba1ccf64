// gguf_names.c: see gguf_names.h.
#include "weights/gguf_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The architectures of llama.cpp, as bits. The tables below list, for each name, the architectures
// that have it; for a stem of a tensor's name, those that have a weight and those that have a bias.
enum {
    LLAMA = 1 << RLHF__GGUF_LLAMA,
    QWEN2 = 1 << RLHF__GGUF_QWEN2,
    QWEN3 = 1 << RLHF__GGUF_QWEN3,
    SMOLLM3 = 1 << RLHF__GGUF_SMOLLM3,
    GRANITE = 1 << RLHF__GGUF_GRANITE,
    PHI3 = 1 << RLHF__GGUF_PHI3,
    GEMMA2 = 1 << RLHF__GGUF_GEMMA2,
    GEMMA3 = 1 << RLHF__GGUF_GEMMA3,
    OLMO2 = 1 << RLHF__GGUF_OLMO2,
    GPT2 = 1 << RLHF__GGUF_GPT2,
    SPLIT = LLAMA | QWEN2 | QWEN3 | SMOLLM3 | GRANITE, // a matrix each for q, k, v, gate and up
    BEFORE = SPLIT | PHI3,                             // norms before attention and the MLP
    ROTARY = BEFORE | OLMO2,
    GEMMA = GEMMA2 | GEMMA3,
    ADJACENT = LLAMA | SMOLLM3 | GRANITE, // llama.cpp stores rotary pairs next to each other
    NONE = 0
};

// ---- architectures ----

// Of several types of a family, the first is that of a model that is read from a file.
static const struct {
    const char *model_type;
    int32_t family;
    const char *class_name;
} types[] = {
    {"llama", RLHF__GGUF_LLAMA, "LlamaForCausalLM"},
    {"mistral", RLHF__GGUF_LLAMA, "MistralForCausalLM"},
    {"qwen2", RLHF__GGUF_QWEN2, "Qwen2ForCausalLM"},
    {"qwen3", RLHF__GGUF_QWEN3, "Qwen3ForCausalLM"},
    {"smollm3", RLHF__GGUF_SMOLLM3, "SmolLM3ForCausalLM"},
    {"granite", RLHF__GGUF_GRANITE, "GraniteForCausalLM"},
    {"granitemoehybrid", RLHF__GGUF_GRANITE, "GraniteMoeHybridForCausalLM"},
    {"phi3", RLHF__GGUF_PHI3, "Phi3ForCausalLM"},
    {"gemma2", RLHF__GGUF_GEMMA2, "Gemma2ForCausalLM"},
    {"gemma3_text", RLHF__GGUF_GEMMA3, "Gemma3ForCausalLM"},
    {"olmo2", RLHF__GGUF_OLMO2, "Olmo2ForCausalLM"},
    {"olmo3", RLHF__GGUF_OLMO2, "Olmo3ForCausalLM"},
    {"gpt2", RLHF__GGUF_GPT2, "GPT2LMHeadModel"},
};
enum { N_TYPES = sizeof types / sizeof *types };

int32_t rlhf__gguf_family(const char *model_type) {
    for (size_t i = 0; i < N_TYPES; i++)
        if (strcmp(model_type, types[i].model_type) == 0) return types[i].family;
    return -1;
}

const char *rlhf__gguf_model_type(int32_t family, const char **class_name) {
    size_t i = 0;
    while (types[i].family != family)
        i++;
    *class_name = types[i].class_name;
    return types[i].model_type;
}

int rlhf__gguf_is_gemma(int32_t family) { return GEMMA >> family & 1; }

int32_t rlhf__gguf_window_period(int32_t family) {
    return family == RLHF__GGUF_GEMMA2 ? 2 : family == RLHF__GGUF_OLMO2 ? 4 : 6;
}

int rlhf__gguf_has_window(int32_t family, int32_t layer) {
    return (layer + 1) % rlhf__gguf_window_period(family) != 0;
}

int rlhf__gguf_rotates(int32_t layer) { return (layer + 1) % 4 != 0; }

double rlhf__gguf_score_divisor(int32_t family, int32_t layers, double width, int32_t heads,
                                int32_t head_dim) {
    const int is_largest = layers == (family == RLHF__GGUF_GEMMA2 ? 46 : 62);
    return is_largest ? width / heads : head_dim;
}

// ---- keys ----

static const struct rlhf__gguf_key keys[] = {
    {"vocab_size", "vocab_size", ROTARY | GPT2, 0, 0},
    {"n_positions", "context_length", GPT2, 0, 0},
    {"max_position_embeddings", "context_length", ROTARY | GEMMA, 0, 0},
    {"n_embd", "embedding_length", GPT2, 0, 0},
    {"hidden_size", "embedding_length", ROTARY | GEMMA, 0, 0},
    {"n_layer", "block_count", GPT2, 0, 0},
    {"num_hidden_layers", "block_count", ROTARY | GEMMA, 0, 0},
    {"n_inner", "feed_forward_length", GPT2, 0, 0},
    {"intermediate_size", "feed_forward_length", ROTARY | GEMMA, 0, 0},
    {"n_head", "attention.head_count", GPT2, 0, 0},
    {"num_attention_heads", "attention.head_count", ROTARY | GEMMA, 0, 0},
    {"layer_norm_epsilon", "attention.layer_norm_epsilon", GPT2, 1, 0},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", ROTARY, 1, 0},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", GEMMA, 1, 1e-6},
    {"num_key_value_heads", "attention.head_count_kv", ROTARY | GEMMA, 0, 0},
    {"head_dim", "attention.key_length", ROTARY | GEMMA, 0, 0},
    {"head_dim", "attention.value_length", ROTARY | GEMMA, 0, 0},
    {"sliding_window", "attention.sliding_window", GEMMA, 0, 4096},
    {"attn_logit_softcapping", "attn_logit_softcapping", GEMMA2, 1, 50},
    {"final_logit_softcapping", "final_logit_softcapping", GEMMA2, 1, 30},
    {"attention_multiplier", "attention.scale", GRANITE, 1, 1},
    {"embedding_multiplier", "embedding_scale", GRANITE, 1, 1},
    {"residual_multiplier", "residual_scale", GRANITE, 1, 1},
    {"logits_scaling", "logit_scale", GRANITE, 1, 1},
};

const struct rlhf__gguf_key *rlhf__gguf_key(size_t i) {
    return i < sizeof keys / sizeof *keys ? &keys[i] : NULL;
}

// ---- tensors ----

// A stem and its name in llama.cpp; ".weight" and ".bias" are appended to both.
struct name {
    const char *hf, *gguf;
    int32_t rows;
    int32_t weight, bias; // architectures with this weight; architectures with this bias
};

static const struct name rotary_block[] = {
    {"input_layernorm", "attn_norm", RLHF__GGUF_AS_IS, BEFORE, NONE},
    {"self_attn.q_proj", "attn_q", RLHF__GGUF_PAIR_Q, SPLIT, LLAMA | QWEN2 | GRANITE},
    {"self_attn.k_proj", "attn_k", RLHF__GGUF_PAIR_K, SPLIT, LLAMA | QWEN2 | GRANITE},
    {"self_attn.v_proj", "attn_v", RLHF__GGUF_AS_IS, SPLIT, LLAMA | QWEN2 | GRANITE},
    {"self_attn.o_proj", "attn_output", RLHF__GGUF_AS_IS, BEFORE, LLAMA | GRANITE},
    {"self_attn.q_norm", "attn_q_norm", RLHF__GGUF_AS_IS, QWEN3, NONE},
    {"self_attn.k_norm", "attn_k_norm", RLHF__GGUF_AS_IS, QWEN3, NONE},
    {"post_attention_layernorm", "ffn_norm", RLHF__GGUF_AS_IS, BEFORE, NONE},
    {"mlp.gate_proj", "ffn_gate", RLHF__GGUF_AS_IS, SPLIT, LLAMA | GRANITE},
    {"mlp.up_proj", "ffn_up", RLHF__GGUF_AS_IS, SPLIT, LLAMA | GRANITE},
    {"mlp.down_proj", "ffn_down", RLHF__GGUF_AS_IS, BEFORE, LLAMA | GRANITE},
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
static const struct name olmo_block[] = {
    {"self_attn.q_proj", "attn_q", RLHF__GGUF_AS_IS, OLMO2, NONE},
    {"self_attn.k_proj", "attn_k", RLHF__GGUF_AS_IS, OLMO2, NONE},
    {"self_attn.v_proj", "attn_v", RLHF__GGUF_AS_IS, OLMO2, NONE},
    {"self_attn.o_proj", "attn_output", RLHF__GGUF_AS_IS, OLMO2, NONE},
    {"self_attn.q_norm", "attn_q_norm", RLHF__GGUF_AS_IS, OLMO2, NONE},
    {"self_attn.k_norm", "attn_k_norm", RLHF__GGUF_AS_IS, OLMO2, NONE},
    {"post_attention_layernorm", "post_attention_norm", RLHF__GGUF_AS_IS, OLMO2, NONE},
    {"mlp.gate_proj", "ffn_gate", RLHF__GGUF_AS_IS, OLMO2, NONE},
    {"mlp.up_proj", "ffn_up", RLHF__GGUF_AS_IS, OLMO2, NONE},
    {"mlp.down_proj", "ffn_down", RLHF__GGUF_AS_IS, OLMO2, NONE},
    {"post_feedforward_layernorm", "post_ffw_norm", RLHF__GGUF_AS_IS, OLMO2, NONE},
    {0},
};
static const struct name gemma_block[] = {
    {"input_layernorm", "attn_norm", RLHF__GGUF_PLUS_ONE, GEMMA, NONE},
    {"self_attn.q_proj", "attn_q", RLHF__GGUF_AS_IS, GEMMA, NONE},
    {"self_attn.k_proj", "attn_k", RLHF__GGUF_AS_IS, GEMMA, NONE},
    {"self_attn.v_proj", "attn_v", RLHF__GGUF_AS_IS, GEMMA, NONE},
    {"self_attn.o_proj", "attn_output", RLHF__GGUF_AS_IS, GEMMA, NONE},
    {"self_attn.q_norm", "attn_q_norm", RLHF__GGUF_PLUS_ONE, GEMMA3, NONE},
    {"self_attn.k_norm", "attn_k_norm", RLHF__GGUF_PLUS_ONE, GEMMA3, NONE},
    {"post_attention_layernorm", "post_attention_norm", RLHF__GGUF_PLUS_ONE, GEMMA, NONE},
    {"pre_feedforward_layernorm", "ffn_norm", RLHF__GGUF_PLUS_ONE, GEMMA, NONE},
    {"mlp.gate_proj", "ffn_gate", RLHF__GGUF_AS_IS, GEMMA, NONE},
    {"mlp.up_proj", "ffn_up", RLHF__GGUF_AS_IS, GEMMA, NONE},
    {"mlp.down_proj", "ffn_down", RLHF__GGUF_AS_IS, GEMMA, NONE},
    {"post_feedforward_layernorm", "post_ffw_norm", RLHF__GGUF_PLUS_ONE, GEMMA, NONE},
    {0},
};
static const struct name gemma_outside[] = {
    {"embed_tokens", "token_embd", RLHF__GGUF_AS_IS, GEMMA, NONE},
    {"norm", "output_norm", RLHF__GGUF_PLUS_ONE, GEMMA, NONE},
    {"lm_head", "output", RLHF__GGUF_AS_IS, GEMMA3, NONE},
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
    [RLHF__GGUF_GEMMA2] = {"model.", "layers.", gemma_block, gemma_outside, "gemma2"},
    [RLHF__GGUF_GEMMA3] = {"model.", "layers.", gemma_block, gemma_outside, "gemma3"},
    [RLHF__GGUF_OLMO2] = {"model.", "layers.", olmo_block, rotary_outside, "olmo2"},
    [RLHF__GGUF_GPT2] = {"transformer.", "h.", gpt2_block, gpt2_outside, "gpt2"},
};

const char *rlhf__gguf_arch(int32_t family) { return families[family].arch; }

int32_t rlhf__gguf_family_of(const char *arch) {
    for (int32_t i = 0; i < RLHF__GGUF_N_FAMILIES; i++)
        if (strcmp(arch, families[i].arch) == 0) return i;
    return -1;
}

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

static int32_t rows_of(const struct name *n, int32_t family, int is_weight) {
    const int pairs = n->rows == RLHF__GGUF_PAIR_Q || n->rows == RLHF__GGUF_PAIR_K;
    if (n->rows == RLHF__GGUF_TRANSPOSED && !is_weight) return RLHF__GGUF_AS_IS;
    return pairs && !(ADJACENT >> family & 1) ? RLHF__GGUF_AS_IS : n->rows;
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
    *rows = rows_of(n, family, is_weight);
    if (*layer >= 0)
        snprintf(out, RLHF__GGUF_NAME_CAP, "blk.%d.%s%s", (int)*layer, n->gguf, dot);
    else
        snprintf(out, RLHF__GGUF_NAME_CAP, "%s%s", n->gguf, dot);
    return RLHF_OK;
}

static const struct name *find_in(const struct name *list, const char *stem, size_t len,
                                  int32_t family, int is_weight) {
    for (; list->hf; list++)
        if (strlen(list->gguf) == len && memcmp(list->gguf, stem, len) == 0 &&
            list->rows != RLHF__GGUF_GATE_UP &&
            ((is_weight ? list->weight : list->bias) >> family & 1))
            return list;
    return NULL;
}

int rlhf__gguf_name_in(int32_t family, const char *name, char out[RLHF__GGUF_NAME_CAP],
                       int32_t *rows) {
    const char *stem = name, *dot = strrchr(name, '.');
    const int is_weight = dot && strcmp(dot, ".weight") == 0;
    const int is_block = strncmp(stem, "blk.", 4) == 0;
    int32_t layer = -1;
    stem += is_block ? 4 : 0;
    if (is_block) layer = layer_of(&stem);
    if (!dot || dot < stem || (is_block && layer < 0)) return 0;
    if (!is_weight && strcmp(dot, ".bias") != 0) return 0;
    const struct name *list = is_block ? families[family].in_block : families[family].outside;
    const struct name *n = find_in(list, stem, (size_t)(dot - stem), family, is_weight);
    if (!n) return 0;
    *rows = rows_of(n, family, is_weight);
    // The LM head is outside of the base model.
    const char *prefix = strcmp(n->hf, "lm_head") == 0 ? "" : families[family].prefix;
    if (is_block)
        snprintf(out, RLHF__GGUF_NAME_CAP, "%s%s%d.%s%s", prefix, families[family].block,
                 (int)layer, n->hf, dot);
    else
        snprintf(out, RLHF__GGUF_NAME_CAP, "%s%s%s", prefix, n->hf, dot);
    return 1;
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
// returns 0. The names are those of a layer, or of none (-1).
static int needed_of(const struct name *list, int32_t family, int tied, int32_t layer, size_t *i,
                     char out[RLHF__GGUF_NAME_CAP]) {
    char block[24] = "";
    if (layer >= 0) snprintf(block, sizeof block, "blk.%d.", (int)layer);
    for (; list->hf; list++)
        for (int bias = 0; bias < 2; bias++) {
            if (!needs(list, family, tied, bias) || (*i)-- > 0) continue;
            snprintf(out, RLHF__GGUF_NAME_CAP, "%s%s.%s", block, list->gguf,
                     bias ? "bias" : "weight");
            return 1;
        }
    return 0;
}

int rlhf__gguf_required(int32_t family, int tied, int32_t layers, size_t i,
                        char out[RLHF__GGUF_NAME_CAP]) {
    size_t left = SIZE_MAX;
    if (needed_of(families[family].outside, family, tied, -1, &i, out)) return 1;
    needed_of(families[family].in_block, family, tied, 0, &left, out);
    const size_t n = SIZE_MAX - left; // in a layer
    if (i / n >= (size_t)layers) return 0;
    const int32_t layer = (int32_t)(i / n);
    i %= n;
    return needed_of(families[family].in_block, family, tied, layer, &i, out);
}
