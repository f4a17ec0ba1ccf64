// gguf_names.c: see gguf_names.h.
#include "weights/gguf_names.h"

#include "weights/gguf_stems.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The architectures of llama.cpp, as bits.
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
    QWEN35 = 1 << RLHF__GGUF_QWEN35,
    LFM2 = 1 << RLHF__GGUF_LFM2,
    GPT2 = 1 << RLHF__GGUF_GPT2,
    SPLIT = LLAMA | QWEN2 | QWEN3 | SMOLLM3 | GRANITE, // a matrix each for q, k, v, gate and up
    BEFORE = SPLIT | PHI3,                             // norms before attention and the MLP
    ROTARY = BEFORE | OLMO2,
    GEMMA = GEMMA2 | GEMMA3,
    HEADED = ROTARY | GEMMA | QWEN35 | LFM2, // heads of a given width
    ADJACENT = LLAMA | SMOLLM3 | GRANITE,    // llama.cpp stores rotary pairs next to each other
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
    {"qwen3_5_text", RLHF__GGUF_QWEN35, "Qwen3_5ForCausalLM"},
    {"lfm2", RLHF__GGUF_LFM2, "Lfm2ForCausalLM"},
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
    {"vocab_size", "vocab_size", ROTARY | QWEN35 | LFM2 | GPT2, 0, 0},
    {"n_positions", "context_length", GPT2, 0, 0},
    {"max_position_embeddings", "context_length", HEADED, 0, 0},
    {"n_embd", "embedding_length", GPT2, 0, 0},
    {"hidden_size", "embedding_length", HEADED, 0, 0},
    {"n_layer", "block_count", GPT2, 0, 0},
    {"num_hidden_layers", "block_count", HEADED, 0, 0},
    {"n_inner", "feed_forward_length", GPT2, 0, 0},
    {"intermediate_size", "feed_forward_length", HEADED, 0, 0},
    {"n_head", "attention.head_count", GPT2, 0, 0},
    {"num_attention_heads", "attention.head_count", HEADED, 0, 0},
    {"layer_norm_epsilon", "attention.layer_norm_epsilon", GPT2, 1, 0},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", ROTARY, 1, 0},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", GEMMA | QWEN35, 1, 1e-6},
    {"norm_eps", "attention.layer_norm_rms_epsilon", LFM2, 1, 1e-5},
    {"num_key_value_heads", "attention.head_count_kv", ROTARY | GEMMA | QWEN35, 0, 0},
    {"head_dim", "attention.key_length", HEADED, 0, 0},
    {"head_dim", "attention.value_length", HEADED, 0, 0},
    {"sliding_window", "attention.sliding_window", GEMMA, 0, 4096},
    {"attn_logit_softcapping", "attn_logit_softcapping", GEMMA2, 1, 50},
    {"final_logit_softcapping", "final_logit_softcapping", GEMMA2, 1, 30},
    {"linear_conv_kernel_dim", "ssm.conv_kernel", QWEN35, 0, 4},
    {"linear_key_head_dim", "ssm.state_size", QWEN35, 0, 128},
    {"linear_num_key_heads", "ssm.group_count", QWEN35, 0, 16},
    {"linear_num_value_heads", "ssm.time_step_rank", QWEN35, 0, 32},
    {"conv_L_cache", "shortconv.l_cache", LFM2, 0, 3},
    {"attention_multiplier", "attention.scale", GRANITE, 1, 1},
    {"embedding_multiplier", "embedding_scale", GRANITE, 1, 1},
    {"residual_multiplier", "residual_scale", GRANITE, 1, 1},
    {"logits_scaling", "logit_scale", GRANITE, 1, 1},
};

const struct rlhf__gguf_key *rlhf__gguf_key(size_t i) {
    return i < sizeof keys / sizeof *keys ? &keys[i] : NULL;
}

// ---- tensors ----

const char *rlhf__gguf_arch(int32_t family) { return rlhf__gguf_namings[family].arch; }

int32_t rlhf__gguf_family_of(const char *arch) {
    for (int32_t i = 0; i < RLHF__GGUF_N_FAMILIES; i++)
        if (strcmp(arch, rlhf__gguf_namings[i].arch) == 0) return i;
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

static int32_t rows_of(const struct rlhf__gguf_stem *n, int32_t family, int is_weight) {
    const int pairs = n->rows == RLHF__GGUF_PAIR_Q || n->rows == RLHF__GGUF_PAIR_K;
    if (n->rows == RLHF__GGUF_TRANSPOSED && !is_weight) return RLHF__GGUF_AS_IS;
    return pairs && !(ADJACENT >> family & 1) ? RLHF__GGUF_AS_IS : n->rows;
}

// What is appended to the stem of a tensor's name: "", ".weight" or ".bias".
static const char *tail_of(const struct rlhf__gguf_stem *n, const char *name) {
    const char *dot = strrchr(name, '.');
    return n->whole || !dot ? "" : dot;
}

// The entry for a name of transformers or, if `gguf` is 1, of llama.cpp, without the number of its
// layer. NULL if the family lacks it.
static const struct rlhf__gguf_stem *find(const struct rlhf__gguf_stem *list, const char *name,
                                          int32_t family, int gguf) {
    for (; list->hf; list++) {
        const char *stem = gguf ? list->gguf : list->hf, *tail = tail_of(list, name);
        const size_t n = strlen(name) - strlen(tail);
        const int bias = strcmp(tail, ".bias") == 0;
        if (strlen(stem) != n || memcmp(stem, name, n) != 0) continue;
        if (!list->whole && !bias && strcmp(tail, ".weight") != 0) continue;
        if (gguf && list->rows == RLHF__GGUF_GATE_UP) continue;
        if ((bias ? list->bias : list->weight) >> family & 1) return list;
    }
    return NULL;
}

rlhf_status rlhf__gguf_name(int32_t family, const struct rlhf__tensor *t,
                            struct rlhf__gguf_place *out, struct rlhf__error *err) {
    const struct rlhf__gguf_naming *f = &rlhf__gguf_namings[family];
    const char *name = t->name;
    if (strncmp(name, f->prefix, strlen(f->prefix)) == 0) name += strlen(f->prefix);
    out->layer = -1;
    if (strncmp(name, f->block, strlen(f->block)) == 0) {
        name += strlen(f->block);
        out->layer = layer_of(&name);
    }
    const struct rlhf__gguf_stem *n =
        find(out->layer >= 0 ? f->in_block : f->outside, name, family, 0);
    if (!n)
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "%s: tensor %s is not supported in a GGUF file of llama.cpp's architecture "
            "%s",
            t->file, t->name, f->arch);
    const char *tail = tail_of(n, name);
    out->rows = rows_of(n, family, strcmp(tail, ".weight") == 0);
    out->in = n->in;
    if (out->layer >= 0)
        snprintf(out->name, sizeof out->name, "blk.%d.%s%s", (int)out->layer, n->gguf, tail);
    else
        snprintf(out->name, sizeof out->name, "%s%s", n->gguf, tail);
    return RLHF_OK;
}

int rlhf__gguf_name_in(int32_t family, const char *name, struct rlhf__gguf_place *out) {
    const struct rlhf__gguf_naming *f = &rlhf__gguf_namings[family];
    const int is_block = strncmp(name, "blk.", 4) == 0;
    out->layer = -1;
    if (is_block) {
        name += 4;
        out->layer = layer_of(&name);
        if (out->layer < 0) return 0;
    }
    const struct rlhf__gguf_stem *n = find(is_block ? f->in_block : f->outside, name, family, 1);
    if (!n) return 0;
    const char *tail = tail_of(n, name);
    out->rows = rows_of(n, family, strcmp(tail, ".weight") == 0);
    out->in = n->in;
    // The LM head is outside of the base model.
    const char *prefix = strcmp(n->hf, "lm_head") == 0 ? "" : f->prefix;
    if (is_block)
        snprintf(out->name, sizeof out->name, "%s%s%d.%s%s", prefix, f->block, (int)out->layer,
                 n->hf, tail);
    else
        snprintf(out->name, sizeof out->name, "%s%s%s", prefix, n->hf, tail);
    return 1;
}

// ---- layers ----

int rlhf__gguf_has_state(const struct rlhf__gguf_mix *mix, int32_t layer) {
    return layer >= 0 && layer < RLHF__GGUF_LAYERS && mix->state[layer / 8] >> layer % 8 & 1;
}

void rlhf__gguf_set_state(struct rlhf__gguf_mix *mix, int32_t layer) {
    if (layer >= 0 && layer < RLHF__GGUF_LAYERS) mix->state[layer / 8] |= (uint8_t)(1 << layer % 8);
}

int rlhf__gguf_fits(const struct rlhf__gguf_mix *mix, const struct rlhf__gguf_place *p) {
    return p->in == RLHF__GGUF_IN_ALL ||
           (p->in == RLHF__GGUF_IN_STATE) == rlhf__gguf_has_state(mix, p->layer);
}

void rlhf__gguf_tile(int32_t rows, const struct rlhf__gguf_mix *mix, int64_t *first,
                     int32_t *head) {
    const int after_keys = rows == RLHF__GGUF_TILED_QKV || rows == RLHF__GGUF_TILED_TAPS;
    const int one = rows == RLHF__GGUF_TILED_HEADS || rows == RLHF__GGUF_DECAYS;
    const int tiled =
        after_keys || one || rows == RLHF__GGUF_TILED_VALUES || rows == RLHF__GGUF_TILED_COLUMNS;
    *first = after_keys ? 2 * (int64_t)mix->key_heads * mix->key_dim : 0;
    *head = !tiled || mix->key_heads == mix->value_heads ? 0 : one ? 1 : mix->value_dim;
}

int rlhf__gguf_has_taps(int32_t rows) {
    return rows == RLHF__GGUF_TAPS || rows == RLHF__GGUF_TILED_TAPS;
}

// ---- completeness ----

// Returns 1 if the model must have the tensor. All of an architecture's tensors are required,
// except a tied output table and the biases of Llama and Granite.
static int needs(const struct rlhf__gguf_stem *n, int32_t family, int tied, int bias) {
    const int32_t head = tied && strcmp(n->hf, "lm_head") == 0;
    const int32_t all = bias ? n->bias & ~(LLAMA | GRANITE) : head ? NONE : n->weight;
    return all >> family & 1;
}

// Among the names in `list` that the family requires, finds the one with index *i, writes it to
// `out` and returns 1. If there are not enough such names, subtracts their number from *i and
// returns 0. The names are those of a layer, or of none (-1).
static int needed_of(const struct rlhf__gguf_stem *list, int32_t family, int tied,
                     const struct rlhf__gguf_mix *mix, int32_t layer, size_t *i,
                     char out[RLHF__GGUF_NAME_CAP]) {
    char block[24] = "";
    if (layer >= 0) snprintf(block, sizeof block, "blk.%d.", (int)layer);
    for (; list->hf; list++) {
        const struct rlhf__gguf_place p = {.layer = layer, .in = list->in};
        for (int bias = 0; bias < 2 && rlhf__gguf_fits(mix, &p); bias++) {
            if (!needs(list, family, tied, bias) || (*i)-- > 0) continue;
            snprintf(out, RLHF__GGUF_NAME_CAP, "%s%s%s", block, list->gguf,
                     list->whole ? ""
                     : bias      ? ".bias"
                                 : ".weight");
            return 1;
        }
    }
    return 0;
}

int rlhf__gguf_required(int32_t family, int tied, const struct rlhf__gguf_mix *mix, int32_t layers,
                        size_t i, char out[RLHF__GGUF_NAME_CAP]) {
    const struct rlhf__gguf_naming *f = &rlhf__gguf_namings[family];
    if (needed_of(f->outside, family, tied, mix, -1, &i, out)) return 1;
    for (int32_t layer = 0; layer < layers; layer++)
        if (needed_of(f->in_block, family, tied, mix, layer, &i, out)) return 1;
    return 0;
}
