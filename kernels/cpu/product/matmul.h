// matmul.h: the description of a GEMM of the CPU backend, which gemm.h or a library computes.
#ifndef RLHF_CPU_MATMUL_H
#define RLHF_CPU_MATMUL_H

#include <stdint.h>

// A panel of a quantised right operand (unquantise.h): `columns` columns of B from `column` on, all
// in one format. It begins `at` bytes after the first panel.
struct rlhf__quantised_panel {
    int32_t column, columns;
    int32_t format, part; // enum rlhf_format; the part of rlhf_quantised
    uint64_t at;
};

// The panels of a quantised right operand. Each part of rlhf_quantised begins with a new panel.
struct rlhf__quantised {
    int64_t panels; // 0: the operand is not quantised
    int regular; // 1: panel i begins at column i times the width of a panel, as in a dense operand
    struct rlhf__quantised_panel *panel; // [panels]; NULL: only sizes are computed
};

// The index of the panel that has `column`.
static inline int64_t rlhf__quantised_find(const struct rlhf__quantised *q, int64_t column) {
    int64_t low = 0, high = q->panels - 1;
    while (low < high) {
        const int64_t middle = (low + high + 1) / 2;
        if (q->panel[middle].column <= column)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

// A GEMM dst[m, n] (+)= src[m, k] wei[k, n] + bias[n].
struct rlhf__matmul {
    int64_t m, k, n;
    int32_t in_dtype, out_dtype;
    uint8_t src_transposed;           // src is stored as [k, m]
    uint8_t wei_transposed;           // wei is stored as [n, k]; ignored when packed
    uint8_t wei_packed;               // wei is in the packed layout of gemm.h or the library
    uint8_t wei_across;               // with wei_packed: packed as [n, k] (only for gemm.h)
    uint8_t accumulate;               // dst += instead of =
    uint8_t goes_on;                  // with accumulate: the sums start at dst (gemm.h)
    uint8_t bias;                     // f32 [n]
    uint8_t pairs;                    // f32 operands that are widened bf16, in the layout below
    struct rlhf__quantised quantised; // wei consists of these panels of [k, n]; with wei_across, of
                                      // the transpose. wei_packed is then set
    int64_t ldc; // only for our tiles: elements from one row of dst to the next; 0: n
};

// If `pairs` is set, the result must have the same bits as that of the bf16 GEMM in
// product/hot_bf16_tile.c. That GEMM adds the second element of each pair along k before the first
// element. So both operands are stored with steps 2i and 2i + 1 of k exchanged, and the ordinary
// loop of the f32 tiles adds in that order. If k is odd, a step of zeros is added, so that k
// becomes even.
static inline int64_t rlhf__pairs_k(int64_t k) { return (k + 1) / 2 * 2; }

// A second GEMM, for rlhf__gemm_sum. Its result is added to that of a GEMM with the same rows and
// columns.
struct rlhf__gemm_second {
    const void *src, *wei;
    int64_t k;
};

#endif
