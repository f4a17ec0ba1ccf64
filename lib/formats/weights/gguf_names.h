// gguf_names.h: the names in GGUF files of llama.cpp's architectures: what its keys and tensors are
// called in config.json and in the weights of transformers.
#ifndef RLHF_FORMATS_WEIGHTS_GGUF_NAMES_H
#define RLHF_FORMATS_WEIGHTS_GGUF_NAMES_H

#include "tensors/tensor.h"

enum {
    RLHF__GGUF_NAME_CAP = 64,
    RLHF__GGUF_LAYERS = 4096 // layers of a model at most
};

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
    RLHF__GGUF_QWEN35,
    RLHF__GGUF_LFM2,
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
    RLHF__GGUF_PLUS_ONE, // gains of Gemma and Qwen3.5: the file has 1 + w
    RLHF__GGUF_TAPS,     // a convolution's [channels, 1, taps] is [channels, taps]
    // Heads of values of Qwen3.5's delta rule. Here those that share a head of keys follow each
    // other. In the file, the first of each head of keys come first, then the second of each.
    RLHF__GGUF_TILED_QKV,     // rows behind those of queries and keys
    RLHF__GGUF_TILED_TAPS,    // the same rows, and TAPS
    RLHF__GGUF_TILED_VALUES,  // rows: a head has the width of its values
    RLHF__GGUF_TILED_HEADS,   // a row for each head
    RLHF__GGUF_TILED_COLUMNS, // columns: a head has the width of its values
    RLHF__GGUF_DECAYS         // A_log: TILED_HEADS, and the file has -exp(A_log)
};

// The layers that have a tensor.
enum rlhf__gguf_layers {
    RLHF__GGUF_IN_ALL,
    RLHF__GGUF_IN_ATTENTION,
    RLHF__GGUF_IN_STATE // layers with a state: LFM2's convolutions, Qwen3.5's delta rule
};

// The layers with a state, and their sizes. For other families all is 0.
struct rlhf__gguf_mix {
    int32_t taps, key_heads, value_heads, key_dim, value_dim; // LFM2 has only taps
    uint8_t state[RLHF__GGUF_LAYERS / 8];                     // bit i % 8 of byte i / 8: layer i
};
int rlhf__gguf_has_state(const struct rlhf__gguf_mix *, int32_t layer); // [any]
void rlhf__gguf_set_state(struct rlhf__gguf_mix *, int32_t layer);      // [any]

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

struct rlhf__gguf_place {
    char name[RLHF__GGUF_NAME_CAP];
    int32_t layer;    // -1: none
    int32_t rows, in; // enum rlhf__gguf_rows, enum rlhf__gguf_layers
};

// Set *out, with llama.cpp's name of the tensor. Returns RLHF_E_INVALID if llama.cpp's architecture
// lacks this tensor, because llama.cpp rejects files with unknown tensors. [any]
rlhf_status rlhf__gguf_name(int32_t family, const struct rlhf__tensor *t,
                            struct rlhf__gguf_place *out, struct rlhf__error *err);

// The reverse: set *out, with the name in transformers of the tensor `name` of a GGUF file. Half of
// a GATE_UP tensor is ffn_gate, the other half ffn_up; here both have the names of separate
// tensors. Returns 0 if the architecture lacks the tensor. [any]
int rlhf__gguf_name_in(int32_t family, const char *name, struct rlhf__gguf_place *out);

// 1 if the tensor is one of its layer's kind. [any]
int rlhf__gguf_fits(const struct rlhf__gguf_mix *, const struct rlhf__gguf_place *);

// Set *head to the rows (or columns) of a head of a tensor in one of the orders TILED, and *first
// to those in front of the heads. *head is 0 if the order is that of the file: the tensor is in
// another order, or each head of keys has one head of values. The number of groups is that of the
// heads of keys. [any]
void rlhf__gguf_tile(int32_t rows, const struct rlhf__gguf_mix *, int64_t *first, int32_t *head);

int rlhf__gguf_has_taps(int32_t rows); // 1 for TAPS and TILED_TAPS [any]

// Set `out` to the i-th name that a model of the family with this number of layers must have. The
// output table is required unless it is tied. Returns 0 if there are fewer names. [any]
int rlhf__gguf_required(int32_t family, int tied, const struct rlhf__gguf_mix *, int32_t layers,
                        size_t i, char out[RLHF__GGUF_NAME_CAP]);

#endif
