// gemm.h: GEMMs on this backend's own tiles: hot/gemm.c in f32, hot/bf16_tile.c and hot/amx_tile.c
// in bf16. gemm.c also decides which GEMMs run on them.
//
// The comparison with oneDNN 2.6 in bf16 with AVX512_BF16, on Zen 5: own tiles are as fast in
// forward GEMMs. They are faster in weight gradients, and when weights come from memory (decoding
// 32 rows). They need no primitive per shape. bf16 with AMX also runs on own tiles, because in
// oneDNN 2.6's AMX GEMMs a row depends on the other rows.
//
// The comparison in f32: oneDNN 2.6 may split the sum over k among threads if neither operand is
// packed, and below AVX-512 its rows depend on each other. On AVX-512, own tiles are as fast as
// oneDNN at a thousand rows. At 32 rows they take 0.65 to 0.8 of oneDNN's time (bench/README.md).
// Only the build without exactness (RLHF_FREE) uses oneDNN.
#ifndef RLHF_CPU_GEMM_H
#define RLHF_CPU_GEMM_H

#include "context.h"
#include "matmul.h"

// True when GEMMs with operands of dtype run on own tiles.
int rlhf__gemm_used(const struct rlhf__cpu *cpu, int32_t dtype);

// As rlhf__product. If packed_wei is NULL, plain_wei is read. An f32 GEMM has an f32 result. With
// s->wei_across, packed_wei holds the transpose [n, k]. Its panels are converted to panels of [k,
// n], a few thousand steps of k at a time. So a weight is stored only once, and the bits are the
// same for both packings. [step]
rlhf_status rlhf__gemm_product(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                               const void *packed_wei, const void *plain_wei, const float *bias,
                               void *dst);

// Like rlhf__gemm_product, with an f32 addend, add [m, n], in separate memory: dst = add + src wei
// + bias. The right operand is packed, and the result is f32. The bits are those of copying add to
// dst and accumulating. [step]
rlhf_status rlhf__gemm_add(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                           const void *wei, const float *bias, const float *add, float *dst);

// The number of steps of a sum over k in one pass. A pass starts its sum at zero and adds it to the
// sum of the previous passes. In an f32 GEMM without a packed operand, a pass's sum consists of
// chains of RLHF__GEMM_ROWS_STEP steps, each started at zero.
int64_t rlhf__gemm_pass(int64_t k);
#define RLHF__GEMM_ROWS_STEP 256

// A bf16 GEMM s plus a second one, src2 wei2, which has the same rows and columns and k2 inputs.
// The result is rounded once, at the end. Both right operands are packed, or both are packed as
// transposes (wei_across). k and k2 are at most RLHF__GEMM_SUM_K. The bits are those of two GEMMs
// that add to the same f32 result. [step]
#define RLHF__GEMM_SUM_K 4096
rlhf_status rlhf__gemm_sum(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                           const void *wei, const float *bias,
                           const struct rlhf__gemm_second *second, void *dst);

// Add the workspaces of a GEMM of this shape or, with `second`, of rlhf__gemm_sum. [step]
void rlhf__gemm_needs(const struct rlhf__cpu *cpu, const struct rlhf__matmul *s,
                      const struct rlhf__gemm_second *second, struct rlhf__cpu_needs *n);

#endif
