// safetensors.h: reads weight files in the safetensors format; safetensors_writer.h writes them.
//
// A file begins with the length of the header (u64, little-endian). Then comes the header, a JSON
// object {name: {dtype, shape, data_offsets}} with an optional "__metadata__" of strings. Then come
// the tensors' bytes, little-endian, row-major and without gaps. The reader does not trust the
// file, so it checks every number of the header before using it.
//
// This file does not know models; a model's plugin knows which tensors the model needs.
#ifndef RLHF_FORMATS_WEIGHTS_SAFETENSORS_H
#define RLHF_FORMATS_WEIGHTS_SAFETENSORS_H

#include "tensors/tensor.h"

struct rlhf__weights; // opaque: the tensors of one file, or of all shards of a checkpoint

// Open and validate a .safetensors file, a model.safetensors.index.json with its shards, a
// directory that contains model.safetensors or that index, or a GGUF file, whose tensors get the
// names that transformers uses (gguf_weights.h). The files are mapped, not read. If the directory's
// model also reads images (text_part.h), the tensors are those of its language model, with the
// names that they have without the other parts. The caller owns *out; free it with
// rlhf__weights_close. Errors: RLHF_E_INVALID (a missing or inconsistent file; the message has the
// number in the file and the correct one), RLHF_E_IO, RLHF_E_NOMEM, RLHF_E_UNSUPPORTED (unknown
// dtype, more than 8 dimensions). [main]
rlhf_status rlhf__weights_open(const char *path, struct rlhf__weights **out,
                               struct rlhf__error *err);

// 1 if `dir` has model.safetensors or its index, or is a GGUF file. [any]
int rlhf__weights_exist(const char *dir);

// NULL allowed. [main]
void rlhf__weights_close(struct rlhf__weights *weights);

// Number of tensors. [any]
size_t rlhf__weights_count(const struct rlhf__weights *weights);

// Number of tensors that were left out because they belong to other parts than the language model.
// [any]
size_t rlhf__weights_left_out(const struct rlhf__weights *weights);

// Tensor i < count, ordered by name; borrowed. [any]
const struct rlhf__tensor *rlhf__weights_at(const struct rlhf__weights *weights, size_t i);

// Find a tensor by name; NULL = not found. [any]
const struct rlhf__tensor *rlhf__weights_find(const struct rlhf__weights *weights,
                                              const char *name);

// Returns the value of a metadata string, or NULL if the file lacks it. Such strings are for users,
// other programs and tests. Borrowed. [any]
const char *rlhf__weights_metadata(const struct rlhf__weights *weights, const char *key);

// ---- unexpected tensors ----

// Returns 1 if `name` is the name of a buffer. Buffers are masks, angles and tables that a model
// computes; old versions of transformers stored them as tensors. The name of a buffer is attn.bias,
// attn.masked_bias, rotary_emb.inv_freq or embeddings.position_ids, or it ends in a dot and one of
// these names. [any]
int rlhf__tensor_is_buffer(const char *name);

// 1 for v_head.*. trl's tensors are v_head.summary, ours are v_head.fc and v_head.out. [any]
int rlhf__tensor_is_value_head(const char *name);

// Set *same to 1 if both tensors have the same shape and the same bits when read as f32. Errors:
// those of rlhf__tensor_read_f32, RLHF_E_NOMEM. [any]
rlhf_status rlhf__tensor_same(const struct rlhf__tensor *a, const struct rlhf__tensor *b, int *same,
                              struct rlhf__error *err);

#endif
