// gguf_metadata.h: makes a config.json of the keys of a GGUF file: the fields that transformers and
// this program's models read. The reverse is lib/formats/gguf_write/gguf_config.c; both use the
// tables in gguf_names.h.
//
// gguf_rotary.h reads the keys of rotary positions.
#ifndef RLHF_FORMATS_WEIGHTS_GGUF_METADATA_H
#define RLHF_FORMATS_WEIGHTS_GGUF_METADATA_H

#include "tensors/gguf_file.h"
#include "weights/gguf_names.h"

#include <jansson.h>

// What the tensors' names and rows depend on.
struct rlhf__gguf_shape {
    int32_t family; // enum rlhf__gguf_family
    int32_t layers, heads, kv_heads, head_dim;
    int32_t width, mlp, context; // mlp: the width between gate or up and down
    int64_t vocab;               // rows of the embedding
    int32_t hybrid;              // 1: a Granite 4 whose layers see no positions (granitemoehybrid)
    int32_t more; // layers behind `layers` that predict further tokens; they are left out
    struct rlhf__gguf_mix mix;
};

// Make the config of the model in the file. The output table is tied if the file has no
// output.weight. The caller owns *config (json_decref). `shape` may be NULL. Errors, each with the
// file and the key: RLHF_E_INVALID (a key is missing or has another type, or its number is out of
// range), RLHF_E_UNSUPPORTED (another architecture, experts, other rotary positions), RLHF_E_NOMEM.
// [main]
rlhf_status rlhf__gguf_config(const struct rlhf__gguf_file *file, struct rlhf__gguf_shape *shape,
                              json_t **config, struct rlhf__error *err);

#endif
