// gemm.h: products by own tiles (hot/gemm.c in f32, hot/bf16_tile.c and hot/amx_tile.c in bf16),
// and which products they are used for.
//
// bf16 on AVX512_BF16: measured on Zen 5 they equal oneDNN 2.6's forward products, are faster where
// weights come from memory (32-row decoding) and in weight gradients, and need no primitive for
// each shape. With AMX too, since the rows of oneDNN 2.6's AMX products are not independent. f32:
// oneDNN 2.6 may cut the sum over k among threads where no operand is packed, and has no
// independent rows below AVX-512; on AVX-512 these tiles equal it at a thousand rows and take 0.65
// to 0.8 of its time at 32 (bench/README.md). oneDNN multiplies in the build without exactness.
#ifndef RLHF_CPU_GEMM_H
#define RLHF_CPU_GEMM_H

#include "context.h"
#include "matmul.h"

// True when a product of operands of dtype runs on the own tiles.
int rlhf__gemm_used(const struct rlhf__cpu *cpu, int32_t dtype);

// As rlhf__product, with the packed right operand or NULL; an f32 product has an f32 result. With
// s->wei_across what is packed is the transpose [n, k], whose panels are turned into those of
// [k, n], a few thousand steps of k at a time: a weight need not be kept both ways, and no bit
// shows which way it was packed. [step]
rlhf_status rlhf__gemm_product(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                               const void *packed_wei, const void *plain_wei, const float *bias,
                               void *dst);

// The same on top of add f32 [m, n], which lies elsewhere: dst = add + src wei + bias. The right
// operand is packed, the result f32. The bits are those of add copied to dst and added to. [step]
rlhf_status rlhf__gemm_add(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                           const void *wei, const float *bias, const float *add, float *dst);

// How many steps of a sum over k are one pass, whose sum is made from zero and then added to what
// there is. In an f32 product without a packed operand the pass's sum is one of chains of
// RLHF__GEMM_ROWS_STEP steps, each from zero.
int64_t rlhf__gemm_pass(int64_t k);
#define RLHF__GEMM_ROWS_STEP 256

// A bf16 product and a second one of as many rows and columns, with k2 inputs: s, then src2 wei2 on
// top of it, rounded once at the end. Both right operands are packed, or both across, k and k2 at
// most RLHF__GEMM_SUM_K. The bits are those of the two products with an f32 result. [step]
#define RLHF__GEMM_SUM_K 4096
rlhf_status rlhf__gemm_sum(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                           const void *wei, const float *bias,
                           const struct rlhf__gemm_second *second, void *dst);

#endif
