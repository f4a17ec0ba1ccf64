// tensor.h: one tensor of a weight file: its dtype, its shape, and its numbers as floats.
//
// This file does not use the compute kernels, because these conversions run only once per load or
// save.
#ifndef RLHF_FORMATS_TENSORS_TENSOR_H
#define RLHF_FORMATS_TENSORS_TENSOR_H

#include "tensors/mapped.h"

#define RLHF__TENSOR_MAX_DIMS 8

// X(name, elements of a block, bytes of a block): the dtypes that a file may contain, with their
// names in safetensors files. A dtype whose blocks have more than one element is quantised; only
// GGUF files have these (gguf_blocks.h). The integers, F64 and BOOL can only be read as bytes, and
// the others as floats.
#define RLHF__TENSOR_DTYPE_MAP(X)                                                                  \
    X(F32, 1, 4)                                                                                   \
    X(BF16, 1, 2)                                                                                  \
    X(F16, 1, 2)                                                                                   \
    X(F64, 1, 8)                                                                                   \
    X(I64, 1, 8)                                                                                   \
    X(I32, 1, 4)                                                                                   \
    X(I16, 1, 2)                                                                                   \
    X(I8, 1, 1)                                                                                    \
    X(U64, 1, 8)                                                                                   \
    X(U32, 1, 4)                                                                                   \
    X(U16, 1, 2)                                                                                   \
    X(U8, 1, 1)                                                                                    \
    X(BOOL, 1, 1)                                                                                  \
    X(Q8_0, 32, 34)                                                                                \
    X(Q4_0, 32, 18)                                                                                \
    X(Q4_1, 32, 20)                                                                                \
    X(Q5_0, 32, 22)                                                                                \
    X(Q5_1, 32, 24)                                                                                \
    X(Q4_K, 256, 144)                                                                              \
    X(Q5_K, 256, 176)                                                                              \
    X(Q6_K, 256, 210)

enum rlhf__tensor_dtype {
#define RLHF__TENSOR_ENUM(name, block, bytes) RLHF__TENSOR_##name,
    RLHF__TENSOR_DTYPE_MAP(RLHF__TENSOR_ENUM)
#undef RLHF__TENSOR_ENUM
        RLHF__N_TENSOR_DTYPES
};

// How the file stores the elements of a tensor.
enum rlhf__tensor_order {
    RLHF__TENSOR_AS_IS = 0,
    // The rotary pairs of each head of `head` rows are adjacent: row s head / 2 + j of a head is
    // row 2 j + s in the file.
    RLHF__TENSOR_PAIRED,
    RLHF__TENSOR_TRANSPOSED, // a matrix [rows, columns] is [columns, rows] in the file
    RLHF__TENSOR_PLUS_ONE    // the file has 1 + x
};

struct rlhf__low_rank;

// One tensor of an open file. `data` points into the mapped file and need not be aligned. Read the
// data only through the functions below, because the file may change at any time.
struct rlhf__tensor {
    const char *name, *file;
    const struct rlhf__mapped *in; // the file; NULL: `data` is ordinary memory
    int32_t dtype, ndim;           // enum rlhf__tensor_dtype
    int64_t shape[RLHF__TENSOR_MAX_DIMS];
    int64_t count;    // elements
    uint64_t n_bytes; // in the file; without those of `then`
    const uint8_t *data;
    const struct rlhf__low_rank *plus; // added to the numbers when they are read; NULL: nothing
    int32_t order, head;               // enum rlhf__tensor_order; head: rows of a head, if PAIRED
    const struct rlhf__tensor *then;   // its rows follow the rows in `data`; NULL: none
};

// Convert elements [from, from + n) of an F32, BF16, F16 or quantised tensor to out[n] floats.
// F32, BF16 and F16 are exact; gguf_blocks.h has the arithmetic of the others. The pieces of a
// tensor may have any length, but read them in order, because pages of the file are dropped from
// the process after they were read. Errors: RLHF_E_UNSUPPORTED (other dtypes), RLHF_E_IO (the file
// was truncated), RLHF_E_NOMEM. [main]
rlhf_status rlhf__tensor_read_f32(const struct rlhf__tensor *t, int64_t from, int64_t n, float *out,
                                  struct rlhf__error *err);

// Copy a tensor's n_bytes unchanged, in the order of the file. Errors: RLHF_E_IO. [main]
rlhf_status rlhf__tensor_read_bytes(const struct rlhf__tensor *t, void *out,
                                    struct rlhf__error *err);

// Returns 1 if rlhf__tensor_read_blocks can read the tensor: its dtype is quantised, and each of
// its rows is one row of the file. [any]
int rlhf__tensor_has_blocks(const struct rlhf__tensor *t);

// Copy the blocks of rows [row, row + n) of such a tensor to `out`, in the tensor's order of rows.
// A row of c columns has c / block blocks of the dtype. Decoding them (gguf_blocks.h) gives the
// numbers of rlhf__tensor_read_f32. Errors: RLHF_E_UNSUPPORTED (a tensor without blocks),
// RLHF_E_IO. [main]
rlhf_status rlhf__tensor_read_blocks(const struct rlhf__tensor *t, int64_t row, int64_t n,
                                     void *out, struct rlhf__error *err);

// The spelling of a dtype, e.g. "BF16". [any]
const char *rlhf__tensor_dtype_name(int32_t dtype);

// Write "[2, 3]" into out[cap]; returns `out`. [any]
const char *rlhf__tensor_shape_text(const int64_t *shape, int32_t ndim, char *out, size_t cap);

// 1 for the dtypes that can be read as floats: F32, F16, BF16 and the quantised ones. [any]
int rlhf__tensor_is_float(int32_t dtype);

// The number of elements of a block; 1 if the dtype is not quantised. [any]
int64_t rlhf__tensor_dtype_block(int32_t dtype);

// The number of bytes of a block. [any]
uint64_t rlhf__tensor_dtype_size(int32_t dtype);

// The dtype with this spelling in safetensors files, -1 = unknown or quantised. [any]
int32_t rlhf__tensor_dtype_find(const char *name);

// Convert f32 to bf16 and f16, rounded to nearest even. A NaN stays a NaN; a number that is too
// large becomes infinity. [any]
uint16_t rlhf__f32_to_bf16(float x);
uint16_t rlhf__f32_to_f16(float x);

// Exact conversions. [any]
float rlhf__bf16_to_f32(uint16_t h);
float rlhf__f16_to_f32(uint16_t h);

// ---- low-rank products ----

// A low-rank product: left [rows, rank] x right [rank, cols], which is added to a tensor [rows,
// cols]. Both matrices are f32, and the product owns them.
struct rlhf__low_rank {
    int64_t rows, cols, rank;
    float *left, *right;
};

// Make a low-rank product for the matrix `w` from `a` [rank, inputs] and `b` [outputs, rank]. `w`
// is [outputs, inputs], or [inputs, outputs] if in_out is set. The scale is multiplied into `left`.
// Errors: RLHF_E_INVALID (shapes that do not fit; the message has all three), and those of
// rlhf__tensor_read_f32. [main]
rlhf_status rlhf__low_rank_open(const struct rlhf__tensor *w, const struct rlhf__tensor *a,
                                const struct rlhf__tensor *b, double scale, int in_out,
                                struct rlhf__low_rank **out, struct rlhf__error *err);
void rlhf__low_rank_close(struct rlhf__low_rank *); // NULL allowed [main]

#endif
