// gguf_family.h: the fields of a config that only some families have, from the keys of a GGUF file.
// gguf_metadata.c, which makes the rest of the config, uses the same reader.
#ifndef RLHF_FORMATS_WEIGHTS_GGUF_FAMILY_H
#define RLHF_FORMATS_WEIGHTS_GGUF_FAMILY_H

#include "weights/gguf_metadata.h"

#define RLHF__GGUF_SIZE (1 << 30) // the largest size that is read

struct rlhf__gguf_reader {
    const struct rlhf__gguf_file *file;
    const char *arch; // llama.cpp's name, with which the keys begin
    struct rlhf__gguf_shape shape;
    json_t *config;
    int32_t by_kind; // 1: layers with a window have positions of their own
};

// Set a field of the config. Takes `v`; NULL means that memory ran out. Errors: RLHF_E_NOMEM.
// [main]
rlhf_status rlhf__gguf_field_put(struct rlhf__gguf_reader *, const char *field, json_t *v,
                                 struct rlhf__error *err);

// The value of the key ARCH.name, or NULL. [any]
const struct rlhf__gguf_value *rlhf__gguf_key_find(const struct rlhf__gguf_reader *,
                                                   const char *name);

int rlhf__gguf_has_tensor(const struct rlhf__gguf_reader *, const char *name); // [any]

// Set the fields of the reader's family. Sets by_kind and shape.hybrid. Errors: those of
// rlhf__gguf_config. [main]
rlhf_status rlhf__gguf_family_put(struct rlhf__gguf_reader *, struct rlhf__error *err);

#endif
