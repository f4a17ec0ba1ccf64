// tensor.h: one tensor of a weight file: its dtype, its shape, and its numbers as floats.
//
// This file does not use the compute kernels, because these conversions run only once per load or
// save.
#ifndef RLHF_FORMATS_WEIGHTS_TENSOR_H
#define RLHF_FORMATS_WEIGHTS_TENSOR_H

#include "weights/mapped.h"

#define RLHF__TENSOR_MAX_DIMS 8

// X(name, spelling in the file, bytes of an element): the dtypes that a file may contain. Only F32,
// F16 and BF16 can be read as floats; the others can only be read as bytes.
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

// One tensor of an open file. `data` points into the mapped file and need not be aligned. Read the
// data only through the functions below, because the file may change at any time.
struct rlhf__low_rank;

struct rlhf__tensor {
    const char *name, *file;
    const struct rlhf__mapped *in; // the file; NULL: `data` is ordinary memory
    int32_t dtype, ndim;           // enum rlhf__tensor_dtype
    int64_t shape[RLHF__TENSOR_MAX_DIMS];
    int64_t count; // elements
    uint64_t n_bytes;
    const uint8_t *data;
    const struct rlhf__low_rank *plus; // added to the numbers when they are read; NULL: nothing
};

// Convert elements [from, from + n) of an F32, BF16 or F16 tensor to out[n] floats (exact). The
// pieces of a tensor may have any length, but read them in order, because pages of the file are
// dropped from the process after they were read. Errors: RLHF_E_UNSUPPORTED (other dtypes),
// RLHF_E_IO (the file was truncated). [main]
rlhf_status rlhf__tensor_read_f32(const struct rlhf__tensor *t, int64_t from, int64_t n, float *out,
                                  struct rlhf__error *err);

// Copy a tensor's n_bytes unchanged. Errors: RLHF_E_IO. [main]
rlhf_status rlhf__tensor_read_bytes(const struct rlhf__tensor *t, void *out,
                                    struct rlhf__error *err);

// The spelling of a dtype, e.g. "BF16". [any]
const char *rlhf__tensor_dtype_name(int32_t dtype);

// Write "[2, 3]" into out[cap]; returns `out`. [any]
const char *rlhf__tensor_shape_text(const int64_t *shape, int32_t ndim, char *out, size_t cap);

// The number of bytes of an element. [any]
uint64_t rlhf__tensor_dtype_size(int32_t dtype);

// The dtype with this spelling, -1 = unknown. [any]
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
