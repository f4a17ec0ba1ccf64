// gguf_stems.h: the table of tensors' names of llama.cpp's architectures, for gguf_names.c.
#ifndef RLHF_FORMATS_WEIGHTS_GGUF_STEMS_H
#define RLHF_FORMATS_WEIGHTS_GGUF_STEMS_H

#include "weights/gguf_names.h"

// A stem and its name in llama.cpp; ".weight" and ".bias" are appended to both.
struct rlhf__gguf_stem {
    const char *hf, *gguf;
    int32_t rows;         // enum rlhf__gguf_rows
    int32_t weight, bias; // bits 1 << enum rlhf__gguf_family: those with this weight, this bias
    int32_t in;           // enum rlhf__gguf_layers
    int32_t whole;        // 1: both are whole names, to which nothing is appended
};

struct rlhf__gguf_naming {
    const char *prefix, *block;                       // "model." may be missing; "layers.3."
    const struct rlhf__gguf_stem *in_block, *outside; // both end with a NULL
    const char *arch;
};

extern const struct rlhf__gguf_naming rlhf__gguf_namings[RLHF__GGUF_N_FAMILIES];

#endif
