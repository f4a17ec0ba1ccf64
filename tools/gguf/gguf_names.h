// gguf_names.h: the names and layouts of a language model's tensors in llama.cpp.
#ifndef RLHF_HOST_WEIGHTS_GGUF_NAMES_H
#define RLHF_HOST_WEIGHTS_GGUF_NAMES_H

#include "weights/tensor.h"

enum { RLHF__GGUF_NAME_CAP = 64 };

enum rlhf__gguf_family {
    RLHF__GGUF_LLAMA, // llama, mistral
    RLHF__GGUF_QWEN2,
    RLHF__GGUF_QWEN3,
    RLHF__GGUF_GPT2,
    RLHF__GGUF_N_FAMILIES
};

// How the rows of a tensor are written.
enum rlhf__gguf_rows {
    RLHF__GGUF_AS_IS,
    // Queries and keys of the llama form: rotary pairs (c, c + head_dim / 2) become adjacent. Row
    // h, 2 j + s of the file is row h, s head_dim / 2 + j of the weight.
    RLHF__GGUF_PAIR_Q,
    RLHF__GGUF_PAIR_K,
    RLHF__GGUF_TRANSPOSED // GPT-2's weights are [in, out]
};

// The name of a tensor and the layout of its rows. layer: of its block, -1 = none. RLHF_E_INVALID
// if llama.cpp has no such tensor for this architecture: it refuses a file with additional tensors.
// [any]
rlhf_status rlhf__gguf_name(int32_t family, const struct rlhf__tensor *t,
                            char out[RLHF__GGUF_NAME_CAP], int32_t *layer, int32_t *rows,
                            struct rlhf__error *err);

// The i-th name that a model of the family must have, for every block if it contains %d; an output
// table is required unless it is tied. 0 = there are fewer. [any]
int rlhf__gguf_required(int32_t family, int tied, size_t i, char out[RLHF__GGUF_NAME_CAP]);

#endif
