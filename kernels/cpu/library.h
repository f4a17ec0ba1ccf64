// library.h: a library that makes the matrix products in place of gemm.h, as it likes them and
// whatever that does to the bits of a row. kernels_cpu_free.so has one (onednn.c), so that what
// exactness costs can be measured; kernels_cpu.so has none.
#ifndef RLHF_CPU_LIBRARY_H
#define RLHF_CPU_LIBRARY_H

#include "context.h"
#include "matmul.h"

// A right operand in packed layout.
struct rlhf__packed {
    void *ptr;
    void *library; // the library's half; NULL: the layout of gemm.h
};

// All: [step]; those that fail set the error text.
struct rlhf__library {
    // A [k, n] operand of dtype in *out, memory and all, empty; packed_fill takes it from dense
    // f32, which lies as [n, k] when src_transposed.
    rlhf_status (*packed_create)(struct rlhf__cpu *cpu, int64_t k, int64_t n, int32_t dtype,
                                 int src_transposed, struct rlhf__packed *out);
    void (*packed_destroy)(void *library_half); // not ptr; NULL allowed
    uint64_t (*packed_bytes)(struct rlhf__cpu *cpu, int64_t k, int64_t n, int32_t dtype); // 0: none
    rlhf_status (*packed_fill)(struct rlhf__cpu *cpu, const struct rlhf__packed *p, void *src);
    // As rlhf__product.
    rlhf_status (*product)(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                           const struct rlhf__packed *wei, const void *plain_wei, const float *bias,
                           void *dst);
    void (*close)(struct rlhf__cpu *cpu);
};

// Who multiplies instead of gemm.h; NULL: nobody.
static inline const struct rlhf__library *rlhf__library(const struct rlhf__cpu *cpu) {
    return cpu->library;
}

#endif
