// paper_inner.h: a backend on paper from inside: what its ops share (paper.h).
#ifndef RLHF_HOST_PAPER_INNER_H
#define RLHF_HOST_PAPER_INNER_H

#include "model/ledger.h"
#include "model/paper.h"

// Workspaces of a backend: each grows to the largest size asked for and stays.
enum rlhf__paper_ws {
    WORK_LOGITS,
    WORK_REF,
    WORK_DLOGITS,
    WORK_PRODUCT, // the operand that is packed, or turned, for a call
    WORK_BLOCK,   // rows of the other, a thread
    WORK_WIDE,
    WORK_KEEP, // top-k and top-p, a thread
    WORK_ATTENTION,
    WORK_ATTENTION_BWD,
    WORK_PARTIAL,
    WORK_MUON,
    WORK_SUM, // f32 sums that are rounded, or scattered, at the end
    WORK_N
};

struct rlhf__paper {
    rlhf_compute table;
    const rlhf_compute *real;
    struct rlhf__ledger ledger;
    uint64_t budget;
    int32_t keeps_none;   // 1: the backend has no workspaces between calls
    int32_t bf16_weights; // 1: a weight of bf16 was made: Muon's products are in bf16
    uint64_t work[WORK_N];
};

// The op of the paper, where the real backend has one.
#define RLHF__PAPER_PUT(f)                                                                         \
    if (RLHF_COMPUTE_HAS(real, f)) t->f = p_##f;

static inline uint64_t rlhf__paper_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }
static inline uint64_t rlhf__paper_times(uint64_t a, uint64_t b) {
    return b && a > RLHF__LEDGER_MOST / b ? RLHF__LEDGER_MOST : a * b;
}

// ---- paper_work.c ----
// A workspace is the backend's, whoever makes it grow.
void rlhf__paper_work(struct rlhf__paper *p, enum rlhf__paper_ws which, uint64_t bytes);
// One of every thread of a CPU.
void rlhf__paper_on_host(struct rlhf__paper *p, enum rlhf__paper_ws which, uint64_t bytes);

// ---- paper_products.c: weights, and the workspaces of products with them ----
void rlhf__paper_product(struct rlhf__paper *p, const rlhf_weight *weight, uint64_t rows);
void rlhf__paper_product_dx(struct rlhf__paper *p, const rlhf_weight *weight, uint64_t rows);
void rlhf__paper_product_dw(struct rlhf__paper *p, const rlhf_weight *weight, uint64_t rows);
// rows times [depth, cols], neither of them packed beforehand, in the dtype of the run.
void rlhf__paper_product_plain(struct rlhf__paper *p, uint64_t rows, uint64_t depth, uint64_t cols);
void rlhf__paper_fill_products(rlhf_compute *t, const rlhf_compute *real);

// ---- paper_head.c: the language-model head ----
void rlhf__paper_fill_head(rlhf_compute *t, const rlhf_compute *real);

// ---- paper_rows.c: attention, norms, Muon ----
void rlhf__paper_fill_rows(rlhf_compute *t, const rlhf_compute *real);

#endif
