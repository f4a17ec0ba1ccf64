// safetensors.h: reading and writing weight files in the safetensors format.
//
// Format: u64 little-endian header length, a JSON header {name: {dtype, shape, data_offsets}} with
// an optional "__metadata__" of strings, then the tensors' bytes, little-endian, row-major, without
// gaps. A reader trusts nothing: every number of the header is checked before it is used.
//
// What it is not: it knows no model; see model/ for which tensors one needs.
#ifndef RLHF_HOST_WEIGHTS_SAFETENSORS_H
#define RLHF_HOST_WEIGHTS_SAFETENSORS_H

#include "base/folder.h"

#define RLHF__TENSOR_MAX_DIMS 8

// X(name, spelling in the file, bytes an element): dtypes a file may hold. Only F32, F16 and BF16
// can be read as floats; the others can be looked at as bytes.
#define RLHF__TENSOR_DTYPE_MAP(X)                                                                  \
    X(F32, 4)                                                                                      \
    X(BF16, 2)                                                                                     \
    X(F16, 2)                                                                                      \
    X(F64, 8)                                                                                      \
    X(I64, 8)                                                                                      \
    X(I32, 4)                                                                                      \
    X(I16, 2)                                                                                      \
    X(I8, 1)                                                                                       \
    X(U64, 8)                                                                                      \
    X(U32, 4)                                                                                      \
    X(U16, 2)                                                                                      \
    X(U8, 1)                                                                                       \
    X(BOOL, 1)

enum rlhf__tensor_dtype {
#define RLHF__TENSOR_ENUM(name, bytes) RLHF__TENSOR_##name,
    RLHF__TENSOR_DTYPE_MAP(RLHF__TENSOR_ENUM)
#undef RLHF__TENSOR_ENUM
        RLHF__N_TENSOR_DTYPES
};

// One tensor of an open file. data points into the mapped file and need not be aligned.
struct rlhf__tensor {
    const char *name, *file;
    int32_t dtype, ndim; // enum rlhf__tensor_dtype
    int64_t shape[RLHF__TENSOR_MAX_DIMS];
    int64_t count; // elements
    uint64_t n_bytes;
    const uint8_t *data;
};

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

// Number of tensors. [any]
size_t rlhf__weights_count(const struct rlhf__weights *weights);

// Tensor i < count, ordered by name; borrowed. [any]
const struct rlhf__tensor *rlhf__weights_at(const struct rlhf__weights *weights, size_t i);

// By name; NULL = none. [any]
const struct rlhf__tensor *rlhf__weights_find(const struct rlhf__weights *weights,
                                              const char *name);

// Value of a metadata string; NULL = none. Borrowed. [any]
const char *rlhf__weights_metadata(const struct rlhf__weights *weights, const char *key);

// Convert a F32, BF16 or F16 tensor to out[count] floats (exact). Errors: RLHF_E_UNSUPPORTED. [any]
rlhf_status rlhf__tensor_read_f32(const struct rlhf__tensor *t, float *out,
                                  struct rlhf__error *err);

// The spelling of a dtype, e.g. "BF16". [any]
const char *rlhf__tensor_dtype_name(int32_t dtype);

// "[2, 3]" into out[cap]; returns out. [any]
const char *rlhf__tensor_shape_text(const int64_t *shape, int32_t ndim, char *out, size_t cap);

// ---- writer
// --------------------------------------------------------------------------------------

// What a file will hold. names and shapes are read during create only.
struct rlhf__tensor_spec {
    const char *name;
    int32_t dtype, ndim; // dtype: any of the map
    int64_t shape[RLHF__TENSOR_MAX_DIMS];
};

struct rlhf__weights_writer; // opaque

// Start the file `name` in a folder (NULL: name is a path): header first, then the tensors' data in
// the order of specs. It appears only at commit. metadata: n_meta pairs key, value (NULL, 0:
// {"format": "pt"}). Where a narrow dtype would leave a wider one unaligned, order wide dtypes
// first (RLHF_E_INVALID). Errors: RLHF_E_INVALID (duplicate name, bad shape), RLHF_E_IO,
// RLHF_E_NOMEM. [main]
rlhf_status rlhf__weights_create(const struct rlhf__folder *in, const char *name,
                                 const struct rlhf__tensor_spec *specs, size_t n,
                                 const char *const (*metadata)[2], size_t n_meta,
                                 struct rlhf__weights_writer **out, struct rlhf__error *err);

// Append count floats to the current tensor, converting to its dtype F32, BF16 or F16 (round to
// nearest even). The next tensor begins when one is full; a call may not cross tensors.
// Errors: RLHF_E_INVALID (too many, dtype that is no float), RLHF_E_IO (disk full). [main]
rlhf_status rlhf__weights_put_f32(struct rlhf__weights_writer *w, const float *data, size_t count,
                                  struct rlhf__error *err);

// The same with bytes as they are to lie in the file. [main]
rlhf_status rlhf__weights_put_bytes(struct rlhf__weights_writer *w, const void *data, size_t len,
                                    struct rlhf__error *err);

// Check that every tensor is full, sync, rename. Frees the writer whatever comes. Errors:
// RLHF_E_INVALID, RLHF_E_IO; then no file is left behind. [main]
rlhf_status rlhf__weights_commit(struct rlhf__weights_writer *w, struct rlhf__error *err);

// Drop the file and free the writer. NULL allowed. [main]
void rlhf__weights_abort(struct rlhf__weights_writer *w);

#endif
