// gemm.h: GEMMs on this backend's own tiles: product/hot_gemm.c in f32, product/hot_bf16_tile.c and
// product/hot_amx_tile.c in bf16. gemm.c also decides which GEMMs use them.
//
// In bf16 with AVX512_BF16, on Zen 5, our tiles are as fast as oneDNN 2.6 in forward GEMMs. They
// are faster in weight gradients and in decoding (32 rows), where weights are read from memory.
// They also do not need a primitive for each shape. With AMX, bf16 uses our tiles too, because in
// oneDNN 2.6's AMX GEMMs the bits of a row depend on the other rows.
//
// In f32, our tiles replace oneDNN 2.6, because the bits of a row must depend only on the row. If
// neither operand is packed, oneDNN may divide the sum over k among threads. Below AVX-512,
// oneDNN's result for a row depends on the other rows. On AVX-512, our tiles are as fast as oneDNN
// for a thousand rows, and take 0.65 to 0.8 of its time for 32 rows (bench/README.md).
#ifndef RLHF_CPU_GEMM_H
#define RLHF_CPU_GEMM_H

#include "machine/context.h"
#include "product/matmul.h"

// True if GEMMs with operands of this dtype use our own tiles.
int rlhf__gemm_used(const struct rlhf__cpu *cpu, int32_t dtype);

// Like rlhf__product. If `packed_wei` is NULL, reads `plain_wei`. An f32 GEMM has an f32 result. If
// s->wei_across is set, packed_wei is the packed transpose [n, k]. So one packed copy of a weight
// serves both the product with the weight and the product with its transpose. The panels of the
// transpose are converted to panels of [k, n], a few thousand steps of k at a time. The result has
// the same bits as with a packed [k, n]. [step]
rlhf_status rlhf__gemm_product(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                               const void *packed_wei, const void *plain_wei, const float *bias,
                               void *dst);

// Like rlhf__gemm_product, but adds the f32 matrix `add` [m, n], which must not be in dst's memory:
// dst = add + src wei + bias. The right operand must be packed, and the result is f32. The bits are
// the same as if `add` were copied to dst and the GEMM accumulated there. [step]
rlhf_status rlhf__gemm_add(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                           const void *wei, const float *bias, const float *add, float *dst);

// Returns how many steps of a sum over k steps are computed in one pass. The sum of a pass starts
// at zero and is added to the sum of the previous passes. In an f32 GEMM, the sum of a pass
// consists of chains of RLHF__GEMM_CHAIN steps, each of which starts at zero.
int64_t rlhf__gemm_pass(int64_t k);
#define RLHF__GEMM_CHAIN 64

// Computes the bf16 GEMM `s` and the GEMM `second`, which has the same rows and columns, and stores
// their sum. The two results are added in f32, and the sum is rounded once. s->wei_across applies
// to both right operands: both are packed, or both are packed as transposes. s->k and second->k are
// at most RLHF__GEMM_SUM_K. [step]
#define RLHF__GEMM_SUM_K 4096
rlhf_status rlhf__gemm_sum(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                           const void *wei, const float *bias,
                           const struct rlhf__gemm_second *second, void *dst);

// Add the workspaces of a GEMM of this shape or, with `second`, of rlhf__gemm_sum. [step]
void rlhf__gemm_needs(const struct rlhf__cpu *cpu, const struct rlhf__matmul *s,
                      const struct rlhf__gemm_second *second, struct rlhf__cpu_needs *n);

#endif
