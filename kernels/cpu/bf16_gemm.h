// bf16_gemm.h: bf16 products on AVX512_BF16 by own tiles (hot/bf16.h). Measured on Zen 5 they equal
// oneDNN 2.6's forward products (0.95 of the instruction peak), are faster where weights come from
// memory (32-row decoding: the next panel is fetched ahead) and in weight gradients, and need no
// primitive for each shape. CPUs with AMX keep oneDNN, whose tiles are faster there.
#ifndef RLHF_CPU_BF16_GEMM_H
#define RLHF_CPU_BF16_GEMM_H

#include "products.h"

// Bytes of a packed [k, n] operand.
uint64_t rlhf__bf16_packed_bytes(int64_t k, int64_t n);

// Pack dense [k, n], which lies as [n, k] when transposed; src is f32 or bf16. [step]
void rlhf__bf16_pack(const struct rlhf__cpu *cpu, void *dst, const void *src, int32_t src_dtype,
                     int64_t k, int64_t n, int transposed);

// As rlhf__product, for bf16 operands. [step]
rlhf_status rlhf__bf16_product(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                               const struct rlhf__packed *wei, const void *plain_wei,
                               const float *bias, void *dst);

#endif
