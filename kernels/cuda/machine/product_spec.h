// product_spec.h: the description of a GEMM, which product.h runs.
#ifndef RLHF_CUDA_MACHINE_PRODUCT_SPEC_H
#define RLHF_CUDA_MACHINE_PRODUCT_SPEC_H

#include <stdint.h>

// One operand, [lines, depth]. A line is a row of the left operand or a column of the right
// operand.
struct rlhf__cuda_operand {
    const void *ptr;
    uint64_t ld;    // number of elements between two lines; across: between two steps of depth
    int32_t across; // 0: ptr[line * ld + d], as in a packed weight; 1: ptr[d * ld + line]
};

// out[r * out_ld + c] = addend[r * out_ld + c] + (sum over d of left[r, d] right[c, d] + bias[c])
struct rlhf__cuda_product_spec {
    uint32_t rows, cols, depth;
    int32_t in_dtype, out_dtype; // f32 or bf16; out may be bf16 only without addend
    struct rlhf__cuda_operand left, right;
    const float *bias;   // [cols], NULL: none
    const float *addend; // f32, may be out; NULL: none
    void *out;
    uint64_t out_ld; // at least cols
    // 1: the bits of a row must not depend on `rows` or on the other rows. 0: the result need only
    // be repeatable. If rows_exact is 0 and the result is f32 without a bias, our own kernels
    // divide the depth into pieces of 4096 steps and add the sums of the pieces in order.
    int32_t rows_exact;
};

#endif
