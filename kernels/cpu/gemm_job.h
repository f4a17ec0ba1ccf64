// gemm_job.h: one GEMM on own tiles, as gemm.c runs it and gemm_pack.c packs it. A "word" is the
// data of one column of a panel for one step of k in f32, or for two steps (a pair) in bf16. Only
// these two files include this header.
#ifndef RLHF_CPU_GEMM_JOB_H
#define RLHF_CPU_GEMM_JOB_H

#include "context.h"
#include "matmul.h"

// ---- geometry ----

static inline int64_t rlhf__gemm_panel_width(const struct rlhf__cpu *cpu, int32_t dtype) {
    return dtype == RLHF_BF16 ? cpu->bf16->columns : (int64_t)cpu->hot.gemm_columns;
}

static inline int64_t rlhf__gemm_tile_rows(const struct rlhf__cpu *cpu, int32_t dtype) {
    return dtype == RLHF_BF16 ? cpu->bf16->rows : (int64_t)cpu->hot.gemm_rows;
}

static inline int64_t rlhf__gemm_words(int32_t dtype, int64_t k) {
    return dtype == RLHF_BF16 ? (k + 1) / 2 : k;
}

// Words of a packed row of A.
static inline int64_t rlhf__gemm_a_row_words(const struct rlhf__cpu *cpu, int32_t dtype,
                                             int64_t k) {
    const int64_t step = dtype == RLHF_BF16 ? cpu->bf16->k_step : 1;
    k = (k + step - 1) / step * step;
    return rlhf__gemm_words(dtype, k);
}

static inline int64_t rlhf__gemm_panel_count(const struct rlhf__cpu *cpu, int32_t dtype,
                                             int64_t n) {
    return (n + rlhf__gemm_panel_width(cpu, dtype) - 1) / rlhf__gemm_panel_width(cpu, dtype);
}

// One GEMM: s with its operands. Work is ordered by row block, then by panel.
struct rlhf__gemm_job {
    const struct rlhf__cpu *cpu;
    const struct rlhf__matmul *s;
    const char *src;
    const uint32_t *wei; // packed B; with s->wei_across, its transpose
    uint32_t *turned;    // wei_across: B's panels of this pass, and those of the second GEMM
    uint32_t *turned_second;
    const float *bias;
    char *dst;
    int64_t panels, width;                  // of B: number of panels, columns of one
    int64_t block, blocks;                  // rows per block, number of blocks
    int64_t k0, k1;                         // steps of k in this pass
    int64_t chain;                          // see struct rlhf__panel
    int first, last;                        // whether this is the first, or last, pass
    uint32_t *a_pack;                       // of one thread, if rlhf__gemm_packs_a
    const struct rlhf__gemm_second *second; // NULL: only one GEMM
    const float *add;                       // [m, n] addend of the result; NULL: C or none
    float *sum; // [block, width] of one thread: the first GEMM's sums, when the result is bf16
};

#endif
