// paper_work.h: a backend on paper from inside: its struct, and its ops that take memory (paper.h).
#ifndef RLHF_HOST_PAPER_WORK_H
#define RLHF_HOST_PAPER_WORK_H

#include "model/ledger.h"
#include "model/paper.h"

// Workspaces of a backend: each grows to the largest size asked for and stays.
enum rlhf__paper_ws {
    WORK_LOGITS,
    WORK_REF,
    WORK_DLOGITS,
    WORK_PRODUCT, // the operand that a call packs or transposes
    WORK_BLOCK,   // rows of the other operand, per thread
    WORK_WIDE,
    WORK_KEEP, // top-k and top-p, per thread
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

// The op on paper, where the real backend has one.
#define RLHF__PAPER_PUT(f)                                                                         \
    if (RLHF_COMPUTE_HAS(real, f)) t->f = p_##f;

// Put the ops that take memory into t: weights, matrix products, the language-model head,
// attention, norms and Muon.
void rlhf__paper_fill_work(rlhf_compute *t, const rlhf_compute *real);

#endif
