// gguf_config.h: llama.cpp's architectures llama, qwen2, qwen3, smollm3, granite, phi3 and gpt2.
// Translates config.json to llama.cpp's keys, and tensors to llama.cpp's names and layouts.
#ifndef RLHF_TOOLS_EXPORT_GGUF_CONFIG_H
#define RLHF_TOOLS_EXPORT_GGUF_CONFIG_H

#include "export/gguf_rope.h"
#include "export/gguf_writer.h"
#include "weights/tensor.h"

#include <jansson.h>

enum { RLHF__GGUF_NAME_CAP = 64 };

enum rlhf__gguf_family {
    RLHF__GGUF_LLAMA, // llama, mistral
    RLHF__GGUF_QWEN2,
    RLHF__GGUF_QWEN3,
    RLHF__GGUF_SMOLLM3,
    RLHF__GGUF_GRANITE, // granite, granitemoehybrid
    RLHF__GGUF_PHI3,
    RLHF__GGUF_GPT2,
    RLHF__GGUF_N_FAMILIES
};

// How the rows of a tensor are written.
enum rlhf__gguf_rows {
    RLHF__GGUF_AS_IS,
    // Queries and keys of llama, smollm3 and granite: the rotary pairs (c, c + head_dim / 2) become
    // adjacent. Row (h, 2 j + s) of the file is row (h, s head_dim / 2 + j) of the weight.
    RLHF__GGUF_PAIR_Q,
    RLHF__GGUF_PAIR_K,
    RLHF__GGUF_TRANSPOSED, // GPT-2's weights are [in, out]
    // Granite 4's MLP: the first half of the rows is ffn_gate, the second half is ffn_up.
    RLHF__GGUF_GATE_UP
};

// ---- config.json ----

struct rlhf__gguf_config {
    const char *arch; // llama.cpp's name
    int32_t family;   // enum rlhf__gguf_family
    int32_t layers, heads, kv_heads, head_dim, vocab;
    struct rlhf__gguf_rope rope; // of rotary models
};

// Read a config. `dir` is used only in messages. Refuses anything that the file cannot express, and
// names the field and its value: a model_type that llama.cpp's architectures do not cover, a
// classifier, another activation, a sliding window, other rope types, and so on. Errors:
// RLHF_E_INVALID. [main]
rlhf_status rlhf__gguf_config_read(const json_t *config, const char *dir,
                                   struct rlhf__gguf_config *out, struct rlhf__error *err);

// Add the config's keys. Errors: RLHF_E_INVALID, as for rlhf__gguf_config_read. [main]
rlhf_status rlhf__gguf_config_put(struct rlhf__gguf *g, const json_t *config, const char *dir,
                                  const struct rlhf__gguf_config *c, struct rlhf__error *err);

// ---- tensors ----

// Set `out` to llama.cpp's name of the tensor, *layer to the number of its block (-1: none), and
// *rows to an enum rlhf__gguf_rows. Returns RLHF_E_INVALID if llama.cpp's architecture lacks this
// tensor, because llama.cpp rejects files with unknown tensors. [any]
rlhf_status rlhf__gguf_name(int32_t family, const struct rlhf__tensor *t,
                            char out[RLHF__GGUF_NAME_CAP], int32_t *layer, int32_t *rows,
                            struct rlhf__error *err);

// Set `out` to the i-th name that a model of the family must have. If the name contains %d, every
// block must have it. The output table is required unless it is tied. Returns 0 if there are fewer
// names. [any]
int rlhf__gguf_required(int32_t family, int tied, size_t i, char out[RLHF__GGUF_NAME_CAP]);

#endif
