// safetensors.h: reading weight files in the safetensors format; safetensors_writer.h writes them.
//
// Format: u64 little-endian header length, a JSON header {name: {dtype, shape, data_offsets}} with
// an optional "__metadata__" of strings, then the tensors' bytes, little-endian, row-major, without
// gaps. A reader trusts nothing: every number of the header is checked before it is used.
//
// What it is not: it knows no model; see model/ for which tensors one needs.
#ifndef RLHF_HOST_WEIGHTS_SAFETENSORS_H
#define RLHF_HOST_WEIGHTS_SAFETENSORS_H

#include "weights/tensor.h"

struct rlhf__weights; // opaque: the tensors of one file, or of all shards of a checkpoint

// Open and validate a .safetensors file, a model.safetensors.index.json with its shards, or a
// directory that holds model.safetensors or that index. The files are mapped, not read. Caller owns
// *out; free with rlhf__weights_close.
// Errors: RLHF_E_INVALID (missing or lying file, with what it says and what is true), RLHF_E_IO,
// RLHF_E_NOMEM, RLHF_E_UNSUPPORTED (unknown dtype, more than 8 dimensions). [main]
rlhf_status rlhf__weights_open(const char *path, struct rlhf__weights **out,
                               struct rlhf__error *err);

// NULL allowed. [main]
void rlhf__weights_close(struct rlhf__weights *weights);

// Number of tensors. The host asks by name; tests go through all of a file. [any]
size_t rlhf__weights_count(const struct rlhf__weights *weights);

// Tensor i < count, ordered by name; borrowed. [any]
const struct rlhf__tensor *rlhf__weights_at(const struct rlhf__weights *weights, size_t i);

// By name; NULL = none. [any]
const struct rlhf__tensor *rlhf__weights_find(const struct rlhf__weights *weights,
                                              const char *name);

// Value of a metadata string, which only people and other programs read (and tests); NULL = none.
// Borrowed. [any]
const char *rlhf__weights_metadata(const struct rlhf__weights *weights, const char *key);

#endif
