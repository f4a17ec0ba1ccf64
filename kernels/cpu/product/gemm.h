// gemm.h: GEMMs on this backend's own tiles: hot/gemm.c in f32, hot/bf16_tile.c and hot/amx_tile.c
// in bf16. gemm.c also decides which GEMMs use them.
//
// Compared with oneDNN 2.6, in bf16 with AVX512_BF16, on Zen 5: own tiles are as fast in forward
// GEMMs. They are faster in weight gradients, and if weights are read from memory (decoding 32
// rows). They do not need a primitive for each shape. bf16 with AMX also uses own tiles, because in
// oneDNN 2.6's AMX GEMMs a row depends on the other rows.
//
// Compared in f32: if neither operand is packed, oneDNN 2.6 may divide the sum over k among
// threads; below AVX-512, its rows depend on each other. On AVX-512, own tiles are as fast as
// oneDNN at a thousand rows. At 32 rows they take 0.65 to 0.8 of oneDNN's time (bench/README.md).
// Only the build without exactness (RLHF_FREE) uses oneDNN.
#ifndef RLHF_CPU_GEMM_H
#define RLHF_CPU_GEMM_H

#include "context.h"
#include "product/matmul.h"

// True if GEMMs with operands of this dtype use own tiles.
int rlhf__gemm_used(const struct rlhf__cpu *cpu, int32_t dtype);

// Like rlhf__product. If packed_wei is NULL, plain_wei is read. An f32 GEMM has an f32 result. With
// s->wei_across, packed_wei is the packed transpose [n, k]. Its panels are converted to panels of
// [k, n], a few thousand steps of k at a time. So a weight is stored only once, and the result has
// the same bits with both packings. [step]
rlhf_status rlhf__gemm_product(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                               const void *packed_wei, const void *plain_wei, const float *bias,
                               void *dst);

// rlhf__gemm_product with an f32 addend, add [m, n], in separate memory: dst = add + src wei +
// bias. The right operand must be packed, and the result is f32. It has the same bits as copying
// `add` to dst and accumulating. [step]
rlhf_status rlhf__gemm_add(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                           const void *wei, const float *bias, const float *add, float *dst);

// The number of steps of a sum over k in one pass. A pass starts its sum at zero and adds it to the
// sum of the previous passes. In an f32 GEMM without a packed operand, the sum of a pass consists
// of chains of RLHF__GEMM_ROWS_STEP steps, each of which starts at zero.
int64_t rlhf__gemm_pass(int64_t k);
#define RLHF__GEMM_ROWS_STEP 256

// A bf16 GEMM s plus a second GEMM, src2 wei2, with the same rows and columns and with k2 inputs.
// The result is rounded once, at the end. Both right operands are packed, or both are packed as
// transposes (wei_across). k and k2 are at most RLHF__GEMM_SUM_K. The result has the bits of two
// GEMMs that are added in f32. [step]
#define RLHF__GEMM_SUM_K 4096
rlhf_status rlhf__gemm_sum(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                           const void *wei, const float *bias,
                           const struct rlhf__gemm_second *second, void *dst);

// Add the workspaces of a GEMM of this shape or, with `second`, of rlhf__gemm_sum. [step]
void rlhf__gemm_needs(const struct rlhf__cpu *cpu, const struct rlhf__matmul *s,
                      const struct rlhf__gemm_second *second, struct rlhf__cpu_needs *n);

#endif
