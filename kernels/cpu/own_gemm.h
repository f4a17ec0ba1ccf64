// own_gemm.h: f32 products without oneDNN, for CPUs where its products lack the guarantee that a
// row's bits do not depend on the number of rows (those without AVX-512). Every output is one chain
// of multiply-adds over k in ascending order, whatever the tile it falls in.
//
// What it is not: tuned beyond register tiles; such a machine computes in f32 and is not the one
// the project's speed goals are set on.
#ifndef RLHF_CPU_OWN_GEMM_H
#define RLHF_CPU_OWN_GEMM_H

#include "products.h"

// Bytes of a packed [k, n] operand: panels of columns, each [k][panel width], zero-filled.
uint64_t rlhf__own_packed_bytes(const struct rlhf__cpu *cpu, int64_t k, int64_t n);

// Pack dense f32 [k, n], which lies as [n, k] when transposed. [step]
void rlhf__own_pack(const struct rlhf__cpu *cpu, float *dst, const float *src, int64_t k, int64_t n,
                    int transposed);

// As rlhf__product, f32 operands and result only. [step]
rlhf_status rlhf__own_product(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                              const struct rlhf__packed *wei, const void *plain_wei,
                              const float *bias, void *dst);

#endif
