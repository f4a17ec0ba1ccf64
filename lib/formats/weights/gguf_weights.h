// gguf_weights.h: the tensors of a GGUF file as those of transformers' weights: their names, their
// shapes and the order of their rows. Nothing is copied; tensors/tensor.h rearranges when it reads.
// The reverse is lib/formats/gguf_write/gguf.c; both use the table of names in gguf_names.h.
#ifndef RLHF_FORMATS_WEIGHTS_GGUF_WEIGHTS_H
#define RLHF_FORMATS_WEIGHTS_GGUF_WEIGHTS_H

#include "base/buf.h"
#include "tensors/gguf_file.h"

struct rlhf__gguf_weights {
    struct rlhf__gguf_file *file;
    struct rlhf__tensor *tensor; // [n]
    size_t n;
    struct rlhf__tensor *part; // second parts of tensors (tensor.then), or NULL
    char *names;
    size_t left_out; // tensors of layers that predict further tokens
};

// Open a file and name its tensors. Divisors of rotary positions are left out, because they are in
// the config (gguf_metadata.h). *w needs rlhf__gguf_weights_finish, even after a failure. Errors:
// those of rlhf__gguf_open and rlhf__gguf_config; RLHF_E_INVALID (a tensor that the architecture
// does not have, a missing one, a shape that does not follow from the keys), RLHF_E_UNSUPPORTED
// (integers). [main]
rlhf_status rlhf__gguf_weights_open(const char *path, struct rlhf__gguf_weights *w,
                                    struct rlhf__error *err);
void rlhf__gguf_weights_finish(struct rlhf__gguf_weights *w); // a zeroed struct is allowed [main]

// Append a description of a file for people, e.g. "llama; 210 tensors in Q4_1, 61 in F32, 1 in
// Q8_0; 92.1 MiB": the architecture, the types from the most frequent to the rarest, and the size
// of the tensors. Errors: those of rlhf__gguf_open. [main]
rlhf_status rlhf__gguf_describe(const char *path, struct rlhf__buf *out, struct rlhf__error *err);

#endif
