// lm_logits.h: blocks of logits and their softmax statistics. lm_head, lm_head_bwd and lm_sample
// use them, so that all three get the same bits.
//
// These functions keep nothing between calls; lm_head.c decides which logits are kept.
#ifndef RLHF_CPU_HEAD_LM_LOGITS_H
#define RLHF_CPU_HEAD_LM_LOGITS_H

#include "product/product.h"

// A block of rows in one call of the head. hidden and ref_hidden point to the first row of the
// block.
struct rlhf__lm_block {
    const rlhf_weight *weight, *ref_weight; // ref_weight NULL: no KL
    int32_t divergence;                     // enum rlhf_divergence
    float beta;                             // of Jensen-Shannon, otherwise 0
    const rlhf_dist *dist;
    const uint32_t *support; // [rows, words], see compute.h; NULL: the kept set of dist
    const char *hidden, *ref_hidden;
    uint32_t rows;
    int32_t vocab, with_entropy;
    struct rlhf__head_map map, ref_map;
    float scale;                  // inverse temperature, 1 when greedy
    size_t stride;                // row stride of logits: vocab, or rounded up to cache lines
    float *logits, *ref_logits;   // [rows, stride], in workspaces
    struct rlhf__head_stat *stat; // [rows]
};

// Copies the caller's struct to *d. Returns RLHF_E_INVALID if a member is out of range.
rlhf_status rlhf__lm_dist_read(struct rlhf__cpu *cpu, const char *op, rlhf_dist *d,
                               const rlhf_dist *from);

// Returns RLHF_E_INVALID unless w is a packed weight with k = d, n = vocab and this dtype.
rlhf_status rlhf__lm_weight_check(struct rlhf__cpu *cpu, const char *op, const rlhf_weight *w,
                                  int32_t d, int32_t vocab, int32_t dtype);

// True if the distribution excludes tokens.
int rlhf__lm_dist_cuts(const rlhf_dist *d, int32_t vocab);

// Set the logits z[n] outside of the kept set of d to -inf. `scale` is the inverse temperature, and
// `work` [n] is scratch memory.
void rlhf__lm_truncate(const struct rlhf__cpu *cpu, float *z, size_t n, float scale,
                       const rlhf_dist *d, float *work);

// Returns how many rows a block may have if its logits and reference logits must fit in the
// workspace budget. (The derivatives overwrite the logits, so they need no more memory.) The result
// is `rows` or, if so many do not fit, a multiple of RLHF__GEMM_CHAIN in f32 and of 32 in bf16. If
// the budget is too small for any such multiple, the result is the smallest one. If blocks end at
// such multiples, the sums of d_weight can continue from block to block with the same bits as in a
// single block.
uint32_t rlhf__lm_block_rows(const struct rlhf__cpu *cpu, const rlhf_weight *w, uint32_t rows,
                             int with_ref);

// Adds to `n` the workspaces that the logits of w need in one block of `rows` rows. These are the
// workspaces that rlhf__lm_block_place takes, those of the GEMMs that compute the logits and, if
// `cuts` is set, the one that rlhf__lm_truncate_work takes. `ref` is the reference's weight, or
// NULL without a reference. [step]
void rlhf__lm_block_needs(struct rlhf__cpu *cpu, const rlhf_weight *w, const rlhf_weight *ref,
                          uint32_t rows, int cuts, struct rlhf__cpu_needs *n);

// Points b->logits, ref_logits and stat to workspaces for b->rows rows. [step]
rlhf_status rlhf__lm_block_place(struct rlhf__cpu *cpu, struct rlhf__lm_block *b);

// Computes only the products with the matrix, without rlhf__lm_row_map and statistics. [step]
rlhf_status rlhf__lm_block_logits(struct rlhf__cpu *cpu, struct rlhf__lm_block *b);

// Returns RLHF_E_INVALID unless scale and cap are allowed in rlhf_lm_head. [step]
rlhf_status rlhf__lm_map_check(struct rlhf__cpu *cpu, const char *op, double scale, double cap);

// The map of these members of rlhf_lm_head.
static inline struct rlhf__head_map rlhf__lm_map(double scale, double cap) {
    return (struct rlhf__head_map){scale == 0.0 ? 1.0f : (float)scale, (float)cap};
}

// Turns the products of a row, and those of its reference, into logits. [any]
void rlhf__lm_row_map(const struct rlhf__cpu *cpu, const struct rlhf__lm_block *b, uint32_t row);

// Sets bits[words] to the ids whose logit is not -inf. [any]
void rlhf__lm_support_store(uint32_t *bits, const float *z, size_t n);

// Restrict a row, in place, to the block's support or, without a support, to the kept set
// of `dist`. Then fill in the row's stat. `work` is scratch memory for head_truncate, or NULL if
// `dist` excludes nothing. [any]
void rlhf__lm_row_stat(const struct rlhf__cpu *cpu, const struct rlhf__lm_block *b, uint32_t row,
                       float *work);

// Get scratch memory for head_truncate: one row for each thread. If all tokens are kept, *out is
// NULL. [step]
rlhf_status rlhf__lm_truncate_work(struct rlhf__cpu *cpu, int cuts, int32_t vocab, float **out);

// The log-prob of an id, from its logit and the statistics of the row; -inf outside of the kept
// set. [any]
static inline float rlhf__lm_logp(const struct rlhf__head_stat *s, float logit, float scale) {
    return (logit - s->max) * scale - s->log_sum;
}

#endif
