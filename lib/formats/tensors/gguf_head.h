// gguf_head.h: the head of a GGUF file, i.e. its keys and descriptions of tensors, as bytes that
// are read in order. No read goes beyond the file.
#ifndef RLHF_FORMATS_TENSORS_GGUF_HEAD_H
#define RLHF_FORMATS_TENSORS_GGUF_HEAD_H

#include "tensors/mapped.h"

struct rlhf__gguf_value;

// The first bytes of a file, up to the tensors' data. The file may change, so they are copied.
struct rlhf__gguf_head {
    struct rlhf__mapped file;
    uint8_t *bytes; // [len] the copy so far
    uint64_t len;
    uint64_t at;                    // where reading continues
    struct rlhf__gguf_value *value; // [n_values] sorted by key; see gguf_values.h
    size_t n_values;
};

// Check that the file has n more bytes, and copy them to `bytes`. The caller then reads them at
// `at`, and moves `at`. Messages say that they belong to `what` with the name `name`, e.g. "tensor"
// and "output.weight". [main]
rlhf_status rlhf__gguf_need(struct rlhf__gguf_head *, uint64_t n, const char *what,
                            const char *name, struct rlhf__error *err);

// Read an integer. [main]
rlhf_status rlhf__gguf_take_u32(struct rlhf__gguf_head *, const char *what, const char *name,
                                uint32_t *out, struct rlhf__error *err);
rlhf_status rlhf__gguf_take_u64(struct rlhf__gguf_head *, const char *what, const char *name,
                                uint64_t *out, struct rlhf__error *err);

// Read the name of key or tensor i, of 1 to `max` printable ASCII characters. The caller frees
// *out. [main]
rlhf_status rlhf__gguf_take_name(struct rlhf__gguf_head *, const char *what, size_t i, uint64_t max,
                                 char **out, struct rlhf__error *err);

// The number at an offset below `len` - 3 or `len` - 7. [any]
uint32_t rlhf__gguf_u32_at(const struct rlhf__gguf_head *, uint64_t at);
uint64_t rlhf__gguf_u64_at(const struct rlhf__gguf_head *, uint64_t at);

#endif
