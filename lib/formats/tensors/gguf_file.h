// gguf_file.h: reads files in the GGUF format of ggml, versions 2 and 3.
//
// A file has a header (the magic "GGUF", a version, two counts), then keys with values, then the
// descriptions of the tensors, then the tensors' data, each at a multiple of the alignment. All
// numbers are little-endian. The format is described in ggml's docs/gguf.md. The reader does not
// trust the file: it checks every count, length and offset before it uses it.
//
// This file does not know models: weights/gguf_metadata.h makes a config.json of the keys, and
// weights/gguf_weights.h gives the tensors the names and shapes that transformers uses.
#ifndef RLHF_FORMATS_TENSORS_GGUF_FILE_H
#define RLHF_FORMATS_TENSORS_GGUF_FILE_H

#include "tensors/gguf_values.h"
#include "tensors/tensor.h"

struct rlhf__gguf_file; // opaque

// Returns 1 if `path` is a regular file that begins with "GGUF". [any]
int rlhf__gguf_is(const char *path);

// Open and check a file. The keys and the descriptions of the tensors are copied to memory; the
// data is mapped. The caller owns *out; free it with rlhf__gguf_close. Errors, each with the file
// and, where there is one, the key or tensor: RLHF_E_INVALID (no GGUF file, a big-endian or
// truncated one, a count or offset that does not fit the file, a duplicate key or tensor,
// overlapping tensors), RLHF_E_UNSUPPORTED (version 1 or above 3, a type of tensors that is not
// read, arrays of arrays, one part of a split file), RLHF_E_IO, RLHF_E_NOMEM. [main]
rlhf_status rlhf__gguf_open(const char *path, struct rlhf__gguf_file **out,
                            struct rlhf__error *err);
void rlhf__gguf_close(struct rlhf__gguf_file *file); // NULL allowed [main]

// The path with which the file was opened, for messages. [any]
const char *rlhf__gguf_path(const struct rlhf__gguf_file *file);

// Find the value of a key (gguf_values.h); NULL = not in the file. Borrowed. [any]
const struct rlhf__gguf_value *rlhf__gguf_find(const struct rlhf__gguf_file *file, const char *key);

// ---- tensors ----

// The tensors, in the order of the file, with the names that the file gives them. Their shapes are
// row-major, as in safetensors. Borrowed. [any]
const struct rlhf__tensor *rlhf__gguf_tensors(const struct rlhf__gguf_file *file, size_t *n);

// Find a tensor by its name in the file; NULL = not found. Borrowed. [any]
const struct rlhf__tensor *rlhf__gguf_tensor_find(const struct rlhf__gguf_file *file,
                                                  const char *name);

#endif
