// gguf_writer.h: writes files in the GGUF format, version 3. A file has keys with values, then
// tensors; the data of each tensor begins at a multiple of 32 bytes. Numbers are little-endian, as
// in the whole program.
//
// The writer does not know models; gguf.h decides what to write. The format is described in ggml's
// docs/gguf.md.
#ifndef RLHF_FORMATS_GGUF_WRITE_GGUF_WRITER_H
#define RLHF_FORMATS_GGUF_WRITE_GGUF_WRITER_H

#include "base/folder.h"
#include "tensors/gguf_file.h"

struct rlhf__gguf; // opaque

// Returns a new file without keys and tensors, or NULL if memory runs out. Free it with
// rlhf__gguf_commit or rlhf__gguf_abort. [main]
struct rlhf__gguf *rlhf__gguf_writer_open(void);

// These functions add a key. Call them before rlhf__gguf_begin, which reports failed allocations of
// these functions too. [main]
void rlhf__gguf_u32(struct rlhf__gguf *g, const char *key, uint32_t v);
void rlhf__gguf_f32(struct rlhf__gguf *g, const char *key, double v);
void rlhf__gguf_bool(struct rlhf__gguf *g, const char *key, int v);
void rlhf__gguf_str(struct rlhf__gguf *g, const char *key, const char *text);
void rlhf__gguf_bytes(struct rlhf__gguf *g, const char *key, const char *text, size_t len);

// Add a key whose value is an array of n elements of a type (enum rlhf__gguf_type). Then call one
// of the next functions for each element. [main]
void rlhf__gguf_array(struct rlhf__gguf *g, const char *key, int32_t type, uint64_t n);
void rlhf__gguf_item_str(struct rlhf__gguf *g, const char *text, size_t len);
void rlhf__gguf_item_i32(struct rlhf__gguf *g, int32_t v);
void rlhf__gguf_item_f32(struct rlhf__gguf *g, float v);
void rlhf__gguf_item_bool(struct rlhf__gguf *g, int v);

// Add a tensor of F32, F16, BF16 or Q8_0. `shape` has the dimensions in the order of a weight file:
// the last dimension is contiguous. Errors: RLHF_E_INVALID (a dimension of 0, more than 4
// dimensions, another dtype, or too many bytes). [main]
rlhf_status rlhf__gguf_tensor(struct rlhf__gguf *g, const char *name, int32_t dtype, int32_t ndim,
                              const int64_t *shape, struct rlhf__error *err);

// Start the file `name` in the folder `in`, with the keys and the list of tensors. If `in` is NULL,
// `name` is a path. The file appears only at commit. Errors: RLHF_E_IO, RLHF_E_NOMEM. [main]
rlhf_status rlhf__gguf_begin(struct rlhf__gguf *g, const struct rlhf__folder *in, const char *name,
                             struct rlhf__error *err);

// Append bytes to the current tensor. When the tensor is full, the next tensor becomes the current
// one. The bytes of a call must all belong to one tensor. Errors: RLHF_E_INVALID if they do not;
// RLHF_E_IO. [main]
rlhf_status rlhf__gguf_put(struct rlhf__gguf *g, const void *bytes, size_t n,
                           struct rlhf__error *err);

// Check that every tensor is full, sync the file and rename it. Frees g in any case. [main]
rlhf_status rlhf__gguf_commit(struct rlhf__gguf *g, struct rlhf__error *err);

// Drop the file and free g. NULL allowed. [main]
void rlhf__gguf_abort(struct rlhf__gguf *g);

#endif
