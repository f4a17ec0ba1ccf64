// canary.h: the test data for the two proofs about a library GEMM. canary.cu proves that rows are
// independent. canary_sums.cu proves that sums over rows are repeatable.
#ifndef RLHF_KERNELS_CUDA_PRODUCT_CANARY_H
#define RLHF_KERNELS_CUDA_PRODUCT_CANARY_H

#include "product/lt.h"

enum { RLHF__CANARY_THREADS = 256 };

// A matrix in the library's storage, which consists of lines of `depth` numbers. Element (line, l)
// is at line * ld + l or, if `across` is set, at l * ld + line.
struct rlhf__canary_lines {
    uint64_t n, ld, depth; // n: total number of elements
    int across;
    int cancel; // 0: no cancellation; 1, -1: see rlhf__canary_fill
    unsigned tag;
};

// Fill a matrix with random numbers in (-1, 1). If m.cancel is set, some lines contain the same
// numbers twice, so that rounding to bf16 cannot hide a different order of summation. With cancel
// 1, which is for one operand, the second half of every line is a copy of the first half. With
// cancel -1, which is for the other operand, the second half of every second line is the first half
// with the opposite sign. The product of a line of the first operand and such a line of the other
// operand is exactly 0, apart from rounding errors, which depend on the order of summation. [step]
rlhf_status rlhf__canary_fill(struct rlhf__cuda *cu, void *to, int32_t dtype, rlhf__canary_lines m);

// The number of blocks for a grid-stride loop over n numbers, with 16 iterations per thread.
static inline dim3 rlhf__canary_blocks(uint64_t n) {
    const uint64_t b = (n / 16 + RLHF__CANARY_THREADS - 1) / RLHF__CANARY_THREADS;
    return dim3((unsigned)(b < 1 ? 1 : b > 4096 ? 4096 : b));
}

#endif
