// gemm_job.h: one GEMM on our own tiles. gemm.c runs it, and gemm_pack.c packs its operands. Only
// these two files include this header. A "word" is the data of one column of a panel for one step
// of k in f32, or for two steps (a pair) in bf16.
#ifndef RLHF_CPU_GEMM_JOB_H
#define RLHF_CPU_GEMM_JOB_H

#include "machine/context.h"
#include "product/matmul.h"

// ---- geometry ----

#define RLHF__GEMM_WIDEST 32 // columns of the widest panel of all levels

static inline int64_t rlhf__gemm_panel_width(const struct rlhf__cpu *cpu, int32_t dtype) {
    return dtype == RLHF_BF16 ? cpu->bf16->columns : (int64_t)cpu->hot.gemm_columns;
}

static inline int64_t rlhf__gemm_tile_rows(const struct rlhf__cpu *cpu, int32_t dtype) {
    return dtype == RLHF_BF16 ? cpu->bf16->rows : (int64_t)cpu->hot.gemm_rows;
}

static inline int64_t rlhf__gemm_words(int32_t dtype, int64_t k) {
    return dtype == RLHF_BF16 ? (k + 1) / 2 : k;
}

// The number of words of a packed row of A.
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

// One GEMM: s and its operands. The work is ordered by row block, then by panel.
struct rlhf__gemm_job {
    const struct rlhf__cpu *cpu;
    const struct rlhf__matmul *s;
    const char *src;
    const uint32_t *wei; // packed B; with s->wei_across, the packed transpose of B
    uint32_t *turned;    // wei_across: the panels of B for this pass, then those of the second GEMM
    uint32_t *turned_second;
    uint32_t *unpacked; // quantised B, unless wei_across: a panel of this pass, for one thread
    const float *bias;
    char *dst;
    int64_t panels, width;                  // number of panels of B; columns of a panel
    int64_t block, blocks;                  // rows per block, number of blocks
    int64_t k0, k1;                         // this pass has the steps k0 .. k1 - 1 of k
    int64_t chain;                          // see struct rlhf__panel
    int first, last;                        // 1: this is the first pass; 1: it is the last pass
    uint32_t *a_pack;                       // for one thread, if rlhf__gemm_packs_a
    const struct rlhf__gemm_second *second; // NULL: there is only one GEMM
    const float *add;                       // [m, n] addend of the result; NULL: C or nothing
    float *sum; // [block, width] for one thread: sums of the first GEMM, if the result is bf16
};

#endif
