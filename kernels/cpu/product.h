// product.h: GEMMs of the CPU backend for any dtypes, packed operands, weights.
//
// Loops over elements are in hot/.
#ifndef RLHF_CPU_PRODUCT_H
#define RLHF_CPU_PRODUCT_H

#include "context.h"
#include "library.h"
#include "matmul.h"

// The extra data of a block-structured weight (rlhf_blocks).
struct rlhf__blocks {
    int32_t rank, rows; // rows of its source
    float scale;
    int32_t *source, *first; // [n] each: the output's row of the source, -1: none; its first input
};

struct rlhf_weight {
    int32_t k, n;
    int32_t dtype;      // of the operands the caller gives
    int32_t exec_dtype; // of the GEMM that runs: f32 if the CPU lacks bf16 GEMMs
    uint32_t flags;
    int32_t packed; // weight_pack was called
    struct rlhf__packed fwd,
        bwd;                     // [k, n]; [n, k] with RLHF_WEIGHT_BACKWARD and a library
    struct rlhf__blocks *blocks; // NULL: dense
};

// Sets the number of OpenMP threads of the calling OS thread to the context's. [step]
void rlhf__cpu_use_threads(const struct rlhf__cpu *cpu);

// Runs one GEMM. wei: the packed right operand when s->wei_packed, otherwise plain_wei is read. The
// bits of a row of dst do not depend on s->m, unless a library is used. [step]
rlhf_status rlhf__product(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                          const struct rlhf__packed *wei, const void *plain_wei, const float *bias,
                          void *dst);

// The same with a packed right operand for `rows` rows; s->m is ignored. [step]
rlhf_status rlhf__product_rows(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, uint32_t rows,
                               const void *src, const struct rlhf__packed *wei, const float *bias,
                               void *dst);

// dw f32 += x^T dy, as linear_dw of the table without db. goes_on: the sums start at dw, so that
// splitting rows into calls at multiples of RLHF__GEMM_ROWS_STEP (gemm.h), in bf16 of 32, gives the
// bits of a single call; otherwise a call's sum is added. [step]
rlhf_status rlhf__linear_dw(struct rlhf__cpu *cpu, void *dw, const void *x, const void *dy,
                            const rlhf_weight *w, uint32_t rows, int goes_on);

// ---- blocks.c ----
// A function of the table. [step]
rlhf_status rlhf__cpu_weight_create_blocks(void *ctx, const rlhf_blocks *from, rlhf_weight **out);
void rlhf__blocks_destroy(struct rlhf__blocks *b); // NULL allowed
// Expands the source of a block-structured weight, *src, to the dense [n, k] matrix in a workspace.
// [step]
rlhf_status rlhf__blocks_expand(struct rlhf__cpu *cpu, const rlhf_weight *w, void **src);
// dw += scale times the blocks of the dense gradient [n, k]. [step]
void rlhf__blocks_add(struct rlhf__cpu *cpu, const rlhf_weight *w, float *dw, const float *dense);

#endif
