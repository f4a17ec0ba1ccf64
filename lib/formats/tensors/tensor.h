// tensor.h: one tensor of a weight file: its dtype, its shape, and its numbers as floats.
//
// This file does not use the compute kernels, because these conversions run only once per load or
// save.
#ifndef RLHF_FORMATS_TENSORS_TENSOR_H
#define RLHF_FORMATS_TENSORS_TENSOR_H

#include "tensors/dtype.h"
#include "tensors/mapped.h"

#define RLHF__TENSOR_MAX_DIMS 8

// How the file stores the elements of a tensor.
enum rlhf__tensor_order {
    RLHF__TENSOR_AS_IS = 0,
    // The rotary pairs of each head of `head` rows are adjacent: row s head / 2 + j of a head is
    // row 2 j + s in the file.
    RLHF__TENSOR_PAIRED,
    RLHF__TENSOR_TRANSPOSED, // a matrix [rows, columns] is [columns, rows] in the file
    RLHF__TENSOR_PLUS_ONE,   // the file has 1 + x
    // The rows from `first` on are heads of `head` rows, in `groups` groups of the same size. The
    // file has the first head of each group, then the second of each, and so on.
    RLHF__TENSOR_TILED,
    RLHF__TENSOR_TILED_COLUMNS, // the same with columns
    RLHF__TENSOR_DECAYS         // the same as TILED, and the file has -exp(x)
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
    int32_t order, head; // enum rlhf__tensor_order; head: rows of a head, if PAIRED or TILED
    int32_t groups;      // if TILED: groups of heads
    int64_t first;       // if TILED: rows (or columns) in front of the heads
    const struct rlhf__tensor *then; // its rows follow the rows in `data`; NULL: none
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

// Returns RLHF_E_INVALID, with the block, if a block of a quantised tensor has a scale that is
// infinite or NaN. Reads the whole tensor. Other tensors pass. Other errors: RLHF_E_IO. [main]
rlhf_status rlhf__tensor_check_scales(const struct rlhf__tensor *t, struct rlhf__error *err);

// Returns 1 if rlhf__tensor_read_blocks can read the tensor: its dtype is quantised, and each of
// its rows is one row of the file. [any]
int rlhf__tensor_has_blocks(const struct rlhf__tensor *t);

// Copy the blocks of rows [row, row + n) of such a tensor to `out`, in the tensor's order of rows.
// A row of c columns has c / block blocks of the dtype. Decoding them (gguf_blocks.h) gives the
// numbers of rlhf__tensor_read_f32. Errors: RLHF_E_UNSUPPORTED (a tensor without blocks),
// RLHF_E_IO. [main]
rlhf_status rlhf__tensor_read_blocks(const struct rlhf__tensor *t, int64_t row, int64_t n,
                                     void *out, struct rlhf__error *err);

// Write "[2, 3]" into out[cap]; returns `out`. [any]
const char *rlhf__tensor_shape_text(const int64_t *shape, int32_t ndim, char *out, size_t cap);

// Returns RLHF_E_UNSUPPORTED if the tensor cannot be read as floats. The message has the file, the
// tensor and the dtype. [any]
rlhf_status rlhf__tensor_check_float(const struct rlhf__tensor *, struct rlhf__error *err);

// ---- a low-rank product ----

// A low-rank product: left [rows, rank] x right [rank, cols], which is added to a tensor [rows,
// cols]; low_rank.h makes one. Both matrices are f32, and the product owns them.
struct rlhf__low_rank {
    int64_t rows, cols, rank;
    float *left, *right;
};

#endif
