// products.h: matrix products of the CPU backend: the primitive cache, packed operands, weights.
//
// What it is not: it holds no loop over elements; those are in hot/.
#ifndef RLHF_CPU_PRODUCTS_H
#define RLHF_CPU_PRODUCTS_H

#include "context.h"
#include "dnnl_shim.h"

// A right operand in packed layout.
struct rlhf__packed {
    struct rlhf__dnnl_layout *layout; // NULL: the own layout of gemm.h
    struct rlhf__dnnl_mem *mem;
    void *ptr;
};

struct rlhf_weight {
    int32_t k, n;
    int32_t dtype;      // of the operands the caller gives
    int32_t exec_dtype; // of the product that runs: f32 where the CPU has no bf16 products
    uint32_t flags;
    int32_t packed;               // weight_pack was called
    struct rlhf__packed fwd, bwd; // [k, n]; [n, k] when RLHF_WEIGHT_BACKWARD
    struct rlhf__dnnl_op *fwd_reorder, *bwd_reorder;
    struct rlhf__dnnl_mem *fwd_src, *bwd_src;
};

rlhf_status rlhf__products_create(struct rlhf__cpu *cpu); // also finds has_bf16 and detail
void rlhf__products_destroy(struct rlhf__cpu *cpu);

struct rlhf__dnnl *rlhf__products_engine(struct rlhf__cpu *cpu);

// Set the number of OpenMP threads of the calling OS thread to the context's. [step]
void rlhf__cpu_use_threads(const struct rlhf__cpu *cpu);

// Run one product. wei: the packed right operand when s->wei_packed, else plain_wei is read. Bits
// of a row of dst do not depend on s->m. Primitives are made on first use of a shape and kept.
// [step]
rlhf_status rlhf__product(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                          const struct rlhf__packed *wei, const void *plain_wei, const float *bias,
                          void *dst);

// The same with a packed right operand for any number of rows, in few distinct shapes: rows above
// 64 are cut into a multiple of 64 and a rest. s->m is ignored. [step]
rlhf_status rlhf__product_rows(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, uint32_t rows,
                               const void *src, const struct rlhf__packed *wei, const float *bias,
                               void *dst);

// ---- the table's functions (compute.h) ----
rlhf_status rlhf__cpu_weight_create(void *ctx, int32_t k, int32_t n, int32_t dtype, uint32_t flags,
                                    rlhf_weight **out);
void rlhf__cpu_weight_destroy(void *ctx, rlhf_weight *w);
rlhf_status rlhf__cpu_weight_pack(void *ctx, rlhf_weight *w, rlhf_dev src_f32);
rlhf_status rlhf__cpu_linear(void *ctx, rlhf_dev out, int32_t out_dtype, int32_t accumulate,
                             rlhf_dev x, const rlhf_weight *w, rlhf_dev bias, uint32_t rows);
rlhf_status rlhf__cpu_linear_dx(void *ctx, rlhf_dev dx, int32_t dx_dtype, int32_t accumulate,
                                rlhf_dev dy, const rlhf_weight *w, uint32_t rows);
rlhf_status rlhf__cpu_linear_dw(void *ctx, rlhf_dev dw, rlhf_dev db, rlhf_dev x, rlhf_dev dy,
                                const rlhf_weight *w, uint32_t rows);
rlhf_status rlhf__cpu_lm_head(void *ctx, const rlhf_lm_head *a);
rlhf_status rlhf__cpu_lm_head_bwd(void *ctx, const rlhf_lm_head *a);
rlhf_status rlhf__cpu_lm_sample(void *ctx, const rlhf_lm_sample *a);
rlhf_status rlhf__cpu_sumsq(void *ctx, rlhf_dev x, uint64_t n, double *host_out);
rlhf_status rlhf__cpu_adamw(void *ctx, rlhf_dev w, rlhf_dev g, rlhf_dev m, rlhf_dev v, uint64_t n,
                            const rlhf_adamw *a);
rlhf_status rlhf__cpu_muon(void *ctx, rlhf_dev w, rlhf_dev g, rlhf_dev mom, int32_t rows,
                           int32_t cols, const rlhf_muon *a);

#endif
