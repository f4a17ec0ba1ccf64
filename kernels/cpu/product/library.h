// library.h: an external library that computes the GEMMs instead of gemm.h, without any guarantee
// about the bits of a row. kernels_cpu_free.so uses such a library (onednn.c) to measure the cost
// of exactness. kernels_cpu.so does not.
#ifndef RLHF_CPU_LIBRARY_H
#define RLHF_CPU_LIBRARY_H

#include "context.h"
#include "product/matmul.h"

// A right operand in packed layout.
struct rlhf__packed {
    void *ptr;
    void *library; // data of the library; NULL: the layout of gemm.h
};

// All functions are [step]. On failure they set the error text.
struct rlhf__library {
    // Allocate an empty packed [k, n] operand of dtype in *out. packed_fill fills the operand from
    // a dense f32 matrix, which is stored as [n, k] if src_transposed is set.
    rlhf_status (*packed_create)(struct rlhf__cpu *cpu, int64_t k, int64_t n, int32_t dtype,
                                 int src_transposed, struct rlhf__packed *out);
    void (*packed_destroy)(void *library_half); // does not free ptr; NULL allowed
    uint64_t (*packed_bytes)(struct rlhf__cpu *cpu, int64_t k, int64_t n, int32_t dtype); // 0: none
    rlhf_status (*packed_fill)(struct rlhf__cpu *cpu, const struct rlhf__packed *p, void *src);
    // Like rlhf__product.
    rlhf_status (*product)(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                           const struct rlhf__packed *wei, const void *plain_wei, const float *bias,
                           void *dst);
    // Like rlhf__product_needs.
    void (*product_needs)(struct rlhf__cpu *cpu, const struct rlhf__matmul *s,
                          struct rlhf__cpu_needs *n);
    void (*close)(struct rlhf__cpu *cpu);
};

// The library that is used instead of gemm.h, or NULL.
static inline const struct rlhf__library *rlhf__library(const struct rlhf__cpu *cpu) {
    return cpu->library;
}

#endif
