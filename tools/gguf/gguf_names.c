// gguf_names.c: see gguf_names.h. The names are those of llama.cpp's architectures llama, qwen2,
// qwen3 and gpt2.
#include "gguf/gguf_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The tensors that llama.cpp's loader of an architecture makes from a stem.
enum {
    LLAMA = 1 << RLHF__GGUF_LLAMA,
    QWEN2 = 1 << RLHF__GGUF_QWEN2,
    QWEN3 = 1 << RLHF__GGUF_QWEN3,
    GPT2 = 1 << RLHF__GGUF_GPT2,
    ROTARY = LLAMA | QWEN2 | QWEN3,
    NONE = 0
};

// A stem and its name in llama.cpp; ".weight" and ".bias" are appended to both.
struct name {
    const char *hf, *gguf;
    int32_t rows;
    int32_t weight, bias; // the architectures that have one
    int32_t reserved;
};

static const struct name rotary_block[] = {
    {"input_layernorm", "attn_norm", RLHF__GGUF_AS_IS, ROTARY, NONE, 0},
    {"self_attn.q_proj", "attn_q", RLHF__GGUF_PAIR_Q, ROTARY, LLAMA | QWEN2, 0},
    {"self_attn.k_proj", "attn_k", RLHF__GGUF_PAIR_K, ROTARY, LLAMA | QWEN2, 0},
    {"self_attn.v_proj", "attn_v", RLHF__GGUF_AS_IS, ROTARY, LLAMA | QWEN2, 0},
    {"self_attn.o_proj", "attn_output", RLHF__GGUF_AS_IS, ROTARY, LLAMA, 0},
    {"self_attn.q_norm", "attn_q_norm", RLHF__GGUF_AS_IS, QWEN3, NONE, 0},
    {"self_attn.k_norm", "attn_k_norm", RLHF__GGUF_AS_IS, QWEN3, NONE, 0},
    {"post_attention_layernorm", "ffn_norm", RLHF__GGUF_AS_IS, ROTARY, NONE, 0},
    {"mlp.gate_proj", "ffn_gate", RLHF__GGUF_AS_IS, ROTARY, LLAMA, 0},
    {"mlp.up_proj", "ffn_up", RLHF__GGUF_AS_IS, ROTARY, LLAMA, 0},
    {"mlp.down_proj", "ffn_down", RLHF__GGUF_AS_IS, ROTARY, LLAMA, 0},
    {0},
};
static const struct name rotary_outside[] = {
    {"embed_tokens", "token_embd", RLHF__GGUF_AS_IS, ROTARY, NONE, 0},
    {"norm", "output_norm", RLHF__GGUF_AS_IS, ROTARY, NONE, 0},
    {"lm_head", "output", RLHF__GGUF_AS_IS, ROTARY, NONE, 0},
    {0},
};
static const struct name gpt2_block[] = {
    {"ln_1", "attn_norm", RLHF__GGUF_AS_IS, GPT2, GPT2, 0},
    {"attn.c_attn", "attn_qkv", RLHF__GGUF_TRANSPOSED, GPT2, GPT2, 0},
    {"attn.c_proj", "attn_output", RLHF__GGUF_TRANSPOSED, GPT2, GPT2, 0},
    {"ln_2", "ffn_norm", RLHF__GGUF_AS_IS, GPT2, GPT2, 0},
    {"mlp.c_fc", "ffn_up", RLHF__GGUF_TRANSPOSED, GPT2, GPT2, 0},
    {"mlp.c_proj", "ffn_down", RLHF__GGUF_TRANSPOSED, GPT2, GPT2, 0},
    {0},
};
static const struct name gpt2_outside[] = {
    {"wte", "token_embd", RLHF__GGUF_AS_IS, GPT2, NONE, 0},
    {"wpe", "position_embd", RLHF__GGUF_AS_IS, GPT2, NONE, 0},
    {"ln_f", "output_norm", RLHF__GGUF_AS_IS, GPT2, GPT2, 0},
    {"lm_head", "output", RLHF__GGUF_AS_IS, GPT2, NONE, 0},
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
    [RLHF__GGUF_GPT2] = {"transformer.", "h.", gpt2_block, gpt2_outside, "gpt2"},
};

// "3." at *text: returns the number and moves *text past it; -1 = none.
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
    if (family != RLHF__GGUF_LLAMA && *rows != RLHF__GGUF_TRANSPOSED)
        *rows = RLHF__GGUF_AS_IS; // the pairs are not interleaved
    if (*layer >= 0)
        snprintf(out, RLHF__GGUF_NAME_CAP, "blk.%d.%s%s", (int)*layer, n->gguf, dot);
    else
        snprintf(out, RLHF__GGUF_NAME_CAP, "%s%s", n->gguf, dot);
    return RLHF_OK;
}

// Everything that an architecture has is required, except a tied output table and Llama's biases.
static int needs(const struct name *n, int32_t family, int tied, int bias) {
    const int32_t head = tied && strcmp(n->hf, "lm_head") == 0;
    const int32_t all = bias ? n->bias & ~LLAMA : head ? NONE : n->weight;
    return all >> family & 1;
}

// The i-th name of the list that the family requires; *i counts down to it.
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
