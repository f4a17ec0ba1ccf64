// canary.h: the numbers that both proofs of a library product are made with (canary.cu: rows,
// canary_sums.cu: sums over rows).
#ifndef RLHF_CUDA_CANARY_H
#define RLHF_CUDA_CANARY_H

#include "lt.h"

enum { RLHF__CANARY_THREADS = 256 };

// A matrix of lines of `depth` numbers in the library's storage: element (line, l) at line * ld +
// l, or with `across` at l * ld + line.
struct rlhf__canary_lines {
    uint64_t n, ld, depth; // n: elements in all
    int across;
    int cancel; // 0 as they come; 1, -1: see below
    unsigned tag;
};

// Random numbers in (-1, 1). What would be hidden by a store in bf16 is brought out: with cancel 1
// and -1 the second half of a line repeats the first, and every other line of the operand that has
// -1 takes it with the other sign. Such a sum is nothing but its roundings, and another order of
// summing leaves others. [step]
rlhf_status rlhf__canary_fill(struct rlhf__cuda *cu, void *to, int32_t dtype, rlhf__canary_lines m);

// Blocks for a loop over n numbers with a grid's stride: 16 turns a thread.
static inline dim3 rlhf__canary_blocks(uint64_t n) {
    const uint64_t b = (n / 16 + RLHF__CANARY_THREADS - 1) / RLHF__CANARY_THREADS;
    return dim3((unsigned)(b < 1 ? 1 : b > 4096 ? 4096 : b));
}

#endif
