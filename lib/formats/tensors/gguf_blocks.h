// gguf_blocks.h: the numbers in blocks of ggml's quantised formats.
//
// A block of 32 elements has one or two scales in f16; a block of 256 elements has two, and 6 or 8
// bits of scale for each 16 or 32 of its elements. With q the integer of an element, the formats
// give, in f32 and with a rounding after every operation (no fused multiply-add):
//   Q8_0        d q                          q: -128 to 127
//   Q4_0, Q5_0  d (q - 8), d (q - 16)        q: 4 bits, 5 bits
//   Q4_1, Q5_1  (d q) + m
//   Q4_K, Q5_K  ((d s) q) - (e t)            s, t: 6 bits, for each 32 elements
//   Q6_K        (d s) (q - 32)               s: -128 to 127, for each 16 elements; q: 6 bits
// where d, e and m are the f16 numbers of the block. These are the operations of gguf-py's
// dequantize, and the results have its bits.
//
// This file does not quantise.
#ifndef RLHF_FORMATS_TENSORS_GGUF_BLOCKS_H
#define RLHF_FORMATS_TENSORS_GGUF_BLOCKS_H

#include "tensors/dtype.h"

// Decode n blocks of a quantised dtype to n times rlhf__tensor_dtype_block(dtype) floats. The
// blocks need not be aligned. Neither allocates nor locks. [any]
void rlhf__blocks_decode(int32_t dtype, const uint8_t *blocks, int64_t n, float *out);

// The first of n blocks of a quantised dtype with an f16 number that is infinite or NaN; n if all
// are finite. [any]
int64_t rlhf__blocks_not_finite(int32_t dtype, const uint8_t *blocks, int64_t n);

#endif
