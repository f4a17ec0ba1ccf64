// head.h: the parts that lm_head, lm_head_bwd and lm_sample have in common, so that all three get
// the same bits: checked arguments, blocks of logits from the GEMM, and row statistics.
//
// A row of logits, or of their derivatives, has n_pad numbers (n_pad is a member of the weight).
// The row is aligned, and its numbers past the vocabulary are zero.
#ifndef RLHF_CUDA_HEAD_H
#define RLHF_CUDA_HEAD_H

#include "head/dist.h"
#include "product/product.h"
#include "product/weight.h"

// d_weight is summed in chunks of this many rows, so that its bits do not depend on the budget.
static const uint32_t RLHF__HEAD_CHUNK = 2048;

// Statistics of a row's distribution.
struct rlhf__cuda_head_stat {
    float max, log_sum, entropy, kl, ref_max, ref_log_sum; // kl, ref_*: only with a reference
    uint64_t cut;                                          // see rlhf__cut_of
};

// What follows the product with the matrix: z = x scale and, unless cap is 0, cap tanh(z / cap).
struct rlhf__head_map {
    float scale, cap;
};

// The arguments of lm_head and lm_head_bwd, copied and checked.
struct rlhf__head_call {
    rlhf_lm_head a;
    rlhf_dist dist;
    struct rlhf__dist_rule rule;
    struct rlhf__head_map map, ref_map;
    int with_ref;
    uint64_t ld; // row stride of logits: n_pad
};

// The logits of some rows of a call, in workspaces. If ref is NULL, there is no reference.
struct rlhf__head_block {
    uint32_t first, rows; // first: index of its first row in the call
    float *logits, *ref;  // [rows, ld]
    struct rlhf__cuda_head_stat *stat;
};

// Copy the caller's struct to *d and compute *rule, the form that kernels use. Returns
// RLHF_E_INVALID if a member is out of range. [step]
rlhf_status rlhf__head_dist(struct rlhf__cuda *cu, const char *op, rlhf_dist *d,
                            const rlhf_dist *from, int32_t vocab, struct rlhf__dist_rule *rule);

// Returns RLHF_E_INVALID unless w is a packed weight with k = d, n = vocab and this dtype. [step]
rlhf_status rlhf__head_weight(struct rlhf__cuda *cu, const char *op, const rlhf_weight *w,
                              int32_t d, int32_t vocab, int32_t dtype);

// True if the rule excludes ids.
static inline bool rlhf__head_cuts(const struct rlhf__dist_rule &r) {
    return r.top_k > 0 || r.top_p < 1.0 || r.has_least;
}

// Sets *m to the members of rlhf_lm_head. Returns RLHF_E_INVALID if they are not allowed. [step]
rlhf_status rlhf__head_map_read(struct rlhf__cuda *cu, const char *op, struct rlhf__head_map *m,
                                double scale, double cap);

// logits f32 [rows, n_pad] = hidden[rows, d] W, mapped. [step]
rlhf_status rlhf__head_logits(struct rlhf__cuda *cu, float *logits, const void *hidden,
                              const rlhf_weight *w, uint32_t rows, struct rlhf__head_map m);

// Returns how many rows fit in the budget. `bytes` is the size of one row. The result is a multiple
// of 64, at least 64, and at most one chunk.
uint32_t rlhf__head_fit(uint64_t budget, uint64_t bytes);

// Copy and check the arguments. If kl (in backward, d_kl) is not NULL, a reference is required.
// [step]
rlhf_status rlhf__head_read(struct rlhf__cuda *cu, const char *op, struct rlhf__head_call *c,
                            const rlhf_lm_head *from, int backward);

// Compute the block's logits and statistics. With `scores`, also write logp, entropy and kl, and
// check the targets. [step]
rlhf_status rlhf__head_fill(struct rlhf__cuda *cu, const struct rlhf__head_call *c,
                            const struct rlhf__head_block *b, int scores);

// The support of row i of the call, or NULL if it has none.
const uint32_t *rlhf__head_support(const struct rlhf__head_call *c, uint32_t i);

// rlhf__head_kept describes the inputs from which this call computes its logits, for comparison
// with later calls. rlhf__head_serves returns 1 if the call that `want` describes can use the
// logits that `have` describes.
struct rlhf__cuda_kept rlhf__head_kept(const struct rlhf__cuda *cu,
                                       const struct rlhf__head_call *c);
int rlhf__head_serves(const struct rlhf__cuda_kept *have, const struct rlhf__cuda_kept *want);

// The size in bytes of a row's logits, including the reference's logits.
uint64_t rlhf__head_row(const struct rlhf__head_call *c);

// Returns a call that serves only to compute sizes. Only its shapes are set: its weights have no
// memory, and its dist must not be read.
struct rlhf__head_call rlhf__head_shape(const rlhf_lm_head *a, const rlhf_call_weight *w,
                                        int backward);

// Returns the number of rows of logits that lm_head places in workspaces. Sets *keep to 1 if
// lm_head keeps the logits for lm_head_bwd, otherwise to 0. It keeps them if the budget is large
// enough for the logits of all rows and the derivatives of one chunk.
uint32_t rlhf__head_rows(uint64_t budget, const struct rlhf__head_call *c, int *keep);

// Add the workspaces that a call needs for a block of `rows` rows. rlhf__head_needs adds the
// workspaces that rlhf__head_place takes, and those of the GEMM that computes the logits.
// rlhf__head_logits_needs adds only the workspaces of this GEMM. [step]
void rlhf__head_needs(const struct rlhf__cuda *cu, const struct rlhf__head_call *c,
                      const rlhf_weight *w, uint32_t rows, struct rlhf__cuda_needs *n);

void rlhf__head_logits_needs(const struct rlhf__cuda *cu, const rlhf_weight *w, uint32_t rows,
                             struct rlhf__cuda_needs *n);

// Sets *b to workspaces for a block of `rows` rows. Each workspace is used from its start. [step]
rlhf_status rlhf__head_place(struct rlhf__cuda *cu, const struct rlhf__head_call *c, uint32_t rows,
                             struct rlhf__head_block *b);

// Like rlhf__head_place, but reduces *rows if the card lacks memory for so many rows. This does not
// change any bits. The workspace budget is reduced too, so that later calls ask for fewer rows.
// [step]
rlhf_status rlhf__head_place_fewer(struct rlhf__cuda *cu, const struct rlhf__head_call *c,
                                   uint32_t *rows, struct rlhf__head_block *b);

// Called after an allocation failed: releases the memory of the logits, so that the caller can try
// the allocation again. `before` is the value that recordings.status had before the allocation.
// [step]
void rlhf__head_drop(struct rlhf__cuda *cu, rlhf_status before);

#endif
