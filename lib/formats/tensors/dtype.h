// dtype.h: the types of the numbers in weight files, and their conversions.
#ifndef RLHF_FORMATS_TENSORS_DTYPE_H
#define RLHF_FORMATS_TENSORS_DTYPE_H

#include <stdint.h>

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

// The spelling of a dtype, e.g. "BF16". [any]
const char *rlhf__tensor_dtype_name(int32_t dtype);

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

// The same for n numbers, which need not be aligned. [any]
void rlhf__widen_bf16(const uint8_t *from, int64_t n, float *out);
void rlhf__widen_f16(const uint8_t *from, int64_t n, float *out);

#endif
