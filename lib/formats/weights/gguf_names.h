// gguf_names.h: the names in GGUF files of llama.cpp's architectures: what its keys and tensors are
// called in config.json and in the weights of transformers.
#ifndef RLHF_FORMATS_WEIGHTS_GGUF_NAMES_H
#define RLHF_FORMATS_WEIGHTS_GGUF_NAMES_H

#include "tensors/tensor.h"

enum { RLHF__GGUF_NAME_CAP = 64 };

// An architecture of llama.cpp, with the model_types that it covers.
enum rlhf__gguf_family {
    RLHF__GGUF_LLAMA, // llama, mistral
    RLHF__GGUF_QWEN2,
    RLHF__GGUF_QWEN3,
    RLHF__GGUF_SMOLLM3,
    RLHF__GGUF_GRANITE, // granite, granitemoehybrid
    RLHF__GGUF_PHI3,
    RLHF__GGUF_GEMMA2,
    RLHF__GGUF_GEMMA3,
    RLHF__GGUF_OLMO2, // olmo2, olmo3
    RLHF__GGUF_GPT2,
    RLHF__GGUF_N_FAMILIES
};

// How the rows of a tensor are stored.
enum rlhf__gguf_rows {
    RLHF__GGUF_AS_IS,
    // Queries and keys of llama, smollm3 and granite: the rotary pairs (c, c + head_dim / 2) become
    // adjacent. Row (h, 2 j + s) of the file is row (h, s head_dim / 2 + j) of the weight.
    RLHF__GGUF_PAIR_Q,
    RLHF__GGUF_PAIR_K,
    RLHF__GGUF_TRANSPOSED, // GPT-2's weights are [in, out]
    // Granite 4's MLP: the first half of the rows is ffn_gate, the second half is ffn_up.
    RLHF__GGUF_GATE_UP,
    RLHF__GGUF_PLUS_ONE // gains of Gemma: the file has 1 + w
};

// The family of a model_type of config.json, or -1. [any]
int32_t rlhf__gguf_family(const char *model_type);
// llama.cpp's name of the architecture, with which its keys begin. [any]
const char *rlhf__gguf_arch(int32_t family);
// The family of llama.cpp's name of an architecture, or -1. [any]
int32_t rlhf__gguf_family_of(const char *arch);
// The model_type and the class of transformers that read a file of the family. [any]
const char *rlhf__gguf_model_type(int32_t family, const char **class_name);

// 1 for gemma2 and gemma3. [any]
int rlhf__gguf_is_gemma(int32_t family);
// llama.cpp's fixed rules. Layers n, 2 n, 3 n, ... of a Gemma or OLMo 3 have no window; whether
// layer i has one; whether layer i of smollm3 rotates its queries and keys. [any]
int32_t rlhf__gguf_window_period(int32_t family); // n
int rlhf__gguf_has_window(int32_t family, int32_t layer);
int rlhf__gguf_rotates(int32_t layer);
// The scores of a Gemma are divided by the root of this: of head_dim or, in the models of 27B,
// which llama.cpp knows by their number of layers, of the width over the number of heads. [any]
double rlhf__gguf_score_divisor(int32_t family, int32_t layers, double width, int32_t heads,
                                int32_t head_dim);

// ---- keys ----

// A number: its field in config.json, and its key after "<arch>.".
struct rlhf__gguf_key {
    const char *field, *key;
    int32_t families; // bit 1 << enum rlhf__gguf_family
    int32_t is_float; // 1: f32; 0: u32
    double missing;   // the value if the field or the key is missing; 0: depends on others
};

// Returns the i-th key, or NULL. The list has neither the keys of rotary positions, whose fields
// have several forms, nor the windows of Phi-3 and OLMo 3. [any]
const struct rlhf__gguf_key *rlhf__gguf_key(size_t i);

// ---- tensors ----

// Set `out` to llama.cpp's name of the tensor, *layer to the number of its block (-1: none), and
// *rows to an enum rlhf__gguf_rows. Returns RLHF_E_INVALID if llama.cpp's architecture lacks this
// tensor, because llama.cpp rejects files with unknown tensors. [any]
rlhf_status rlhf__gguf_name(int32_t family, const struct rlhf__tensor *t,
                            char out[RLHF__GGUF_NAME_CAP], int32_t *layer, int32_t *rows,
                            struct rlhf__error *err);

// The reverse: set `out` to the name in transformers of the tensor `name` of a GGUF file, and *rows
// to an enum rlhf__gguf_rows. Half of a GATE_UP tensor is ffn_gate, the other half ffn_up; here
// both have the names of separate tensors. Returns 0 if the architecture lacks the tensor. [any]
int rlhf__gguf_name_in(int32_t family, const char *name, char out[RLHF__GGUF_NAME_CAP],
                       int32_t *rows);

// Set `out` to the i-th name that a model of the family with this number of layers must have. The
// output table is required unless it is tied. Returns 0 if there are fewer names. [any]
int rlhf__gguf_required(int32_t family, int tied, int32_t layers, size_t i,
                        char out[RLHF__GGUF_NAME_CAP]);

#endif
