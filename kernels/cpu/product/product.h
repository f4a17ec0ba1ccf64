// product.h: GEMMs of the CPU backend for all dtypes, packed operands, weights.
//
// The loops over elements are in files hot_*.c.
#ifndef RLHF_CPU_PRODUCT_H
#define RLHF_CPU_PRODUCT_H

#include "machine/context.h"
#include "product/matmul.h"

// The extra data of a block-structured weight (rlhf_blocks).
struct rlhf__weight_blocks {
    int32_t rank, rows; // rows: number of rows of the source
    float scale;
    int32_t *source, *first; // [n] each: the output's row of the source, -1: none; its first input
};

struct rlhf_weight {
    int32_t k, n;
    int32_t dtype;      // dtype of the operands that the caller passes
    int32_t exec_dtype; // dtype of the GEMM that runs: f32 if the CPU lacks bf16 GEMMs
    uint32_t flags;
    int32_t packed;                     // 1: weight_pack was called, or all rows were put
    int32_t rows_put;                   // quantised: number of rows that weight_put has copied
    void *fwd, *bwd;                    // [k, n]; [n, k] if both are kept, otherwise empty
    struct rlhf__weight_blocks *blocks; // NULL: dense
    struct rlhf__quantised quantised;   // fwd has these panels, and bwd is NULL
};

// True if GEMMs of this dtype are computed as f32 GEMMs, with both operands stored in pairs
// (matmul.h).
static inline int rlhf__cpu_pairs(const struct rlhf__cpu *cpu, int32_t dtype) {
    return dtype == RLHF_BF16 && !cpu->bf16;
}

// The number of steps of k in a packed weight.
static inline int64_t rlhf__packed_k(const struct rlhf__cpu *cpu, int32_t dtype, int64_t k) {
    return rlhf__cpu_pairs(cpu, dtype) ? rlhf__pairs_k(k) : k;
}

// The GEMM dtype for a weight of this dtype.
static inline int32_t rlhf__cpu_exec_dtype(const struct rlhf__cpu *cpu, int32_t dtype) {
    return cpu->bf16 ? dtype : RLHF_F32;
}

// The sizes of a quantised weight's panels. The table of parts is left out. If `a` is NULL, all
// sizes are 0. [any]
struct rlhf__quantised rlhf__quantised_shape(const struct rlhf__cpu *cpu, const rlhf_quantised *a);

// A weight with these arguments but without memory, for computing sizes.
static inline rlhf_weight rlhf__weight_shape(const struct rlhf__cpu *cpu,
                                             const rlhf_call_weight *w) {
    return (rlhf_weight){.k = w->k,
                         .n = w->n,
                         .dtype = w->dtype,
                         .exec_dtype = rlhf__cpu_exec_dtype(cpu, w->dtype),
                         .flags = w->flags,
                         .quantised = rlhf__quantised_shape(cpu, w->quantised)};
}

// True if the weight is packed twice, once for each direction, as small weights are. Large weights,
// and bf16 weights in pairs, are packed once, to save memory, and converted during each backward
// GEMM (gemm.h). Beside a GEMM in pairs, the conversion takes little time.
int rlhf__cpu_keeps_both(const struct rlhf__cpu *cpu, const rlhf_weight *w);

// Returns RLHF_OK if a weight with these arguments can be created. [step]
rlhf_status rlhf__cpu_weight_check(struct rlhf__cpu *cpu, int32_t k, int32_t n, int32_t dtype,
                                   uint32_t flags);

// Returns RLHF_E_INVALID, with the operation in the message, unless the weight has its values.
// [step]
rlhf_status rlhf__cpu_weight_packed(struct rlhf__cpu *cpu, const char *op, const rlhf_weight *w);

// Returns RLHF_E_INVALID if the weight is quantised: it has neither an f32 source nor a gradient.
// [step]
rlhf_status rlhf__cpu_weight_dense(struct rlhf__cpu *cpu, const char *op, const rlhf_weight *w);

// Runs one GEMM. `wei` is the packed right operand; if s->wei_packed is not set, `plain_wei` is
// read instead. The bits of a row of dst do not depend on s->m. [step]
rlhf_status rlhf__product(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                          const void *wei, const void *plain_wei, const float *bias, void *dst);

// Adds the workspaces of rlhf__product. [step]
void rlhf__product_needs(struct rlhf__cpu *cpu, const struct rlhf__matmul *s,
                         struct rlhf__cpu_needs *n);

// dw f32 += x^T dy, like linear_dw of the table but without db. Without goes_on, each sum of the
// call starts at 0 and is added to dw at the end. With goes_on, each sum starts at its value in dw.
// So with goes_on, the rows may be divided among several calls, which together give the same bits
// as a single call. Every call except the last must end at a multiple of RLHF__GEMM_CHAIN rows
// (gemm.h) or, in bf16, of 32 rows. [step]
rlhf_status rlhf__linear_dw(struct rlhf__cpu *cpu, void *dw, const void *x, const void *dy,
                            const rlhf_weight *w, uint32_t rows, int goes_on);

// Add the workspaces that linear_dx and rlhf__linear_dw need for the weight `w`, which need not
// have memory. [step]
void rlhf__linear_dx_needs(struct rlhf__cpu *cpu, const rlhf_weight *w, int32_t dx_dtype,
                           int32_t accumulate, uint32_t rows, struct rlhf__cpu_needs *n);
void rlhf__linear_dw_needs(struct rlhf__cpu *cpu, const rlhf_weight *w, uint32_t rows, int goes_on,
                           struct rlhf__cpu_needs *n);

// Widens a bf16 operand to the layout of struct rlhf__matmul's pairs. If k_is_rows is set, the
// operand is stored as [k, others], and dst has rlhf__pairs_k(k) rows. Otherwise it is stored as
// [others, k], and each row of dst has rlhf__pairs_k(k) elements. [step]
void rlhf__widen_pairs(const struct rlhf__cpu *cpu, float *dst, const uint16_t *src, int64_t k,
                       int64_t others, int k_is_rows);

// ---- blocks.c ----
// Implements weight_create_blocks of the table (rlhf/compute.h). [step]
rlhf_status rlhf__cpu_weight_create_blocks(void *ctx, const rlhf_blocks *from, rlhf_weight **out);
void rlhf__weight_blocks_close(struct rlhf__weight_blocks *b); // NULL allowed
// The size in bytes of a block-structured weight, or of its gradient, as a dense matrix.
static inline uint64_t rlhf__blocks_dense_bytes(const rlhf_weight *w) {
    return (uint64_t)w->k * (uint64_t)w->n * sizeof(float);
}
// Expand *src, the source of a block-structured weight, to the dense [n, k] matrix. *src then
// points to this matrix, which is in a workspace. [step]
rlhf_status rlhf__blocks_expand(struct rlhf__cpu *cpu, const rlhf_weight *w, void **src);
// dw += scale times the blocks of the dense gradient [n, k]. [step]
void rlhf__blocks_add(struct rlhf__cpu *cpu, const rlhf_weight *w, float *dw, const float *dense);

#endif
