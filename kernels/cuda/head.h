// head.h: what lm_head, lm_head_bwd and lm_sample share: arguments checked, blocks of logits made
// by the product, and what their rows' distributions come to, so that all see the same bits.
//
// Logits and their derivatives lie in rows of the weight's n_pad: aligned, and what is beyond the
// vocabulary is 0.
#ifndef RLHF_CUDA_HEAD_H
#define RLHF_CUDA_HEAD_H

#include "dist.h"
#include "product.h"
#include "weight.h"

// d_weight is a sum over chunks of so many rows: its bits must not depend on the budget.
static const uint32_t RLHF__HEAD_CHUNK = 2048;

// What a row's distribution came to.
struct rlhf__head_stat {
    float max, log_sum, entropy, kl, ref_max, ref_log_sum; // kl, ref_*: with a reference only
    uint64_t cut;                                          // see rlhf__cut_of
};

// The arguments of lm_head and lm_head_bwd, copied and checked.
struct rlhf__head_call {
    rlhf_lm_head a;
    rlhf_dist dist;
    struct rlhf__dist_rule rule;
    int with_ref;
    uint64_t ld; // of logits, n_pad
};

// Logits of some rows of a call, in workspaces. ref NULL: no reference.
struct rlhf__head_block {
    uint32_t first, rows; // of the call
    float *logits, *ref;  // [rows, ld]
    struct rlhf__head_stat *stat;
};

// *d = the caller's struct, *rule what a kernel needs of it. RLHF_E_INVALID when a field is out of
// range. [step]
rlhf_status rlhf__head_dist(struct rlhf__cuda *cu, const char *op, rlhf_dist *d,
                            const rlhf_dist *from, int32_t vocab, struct rlhf__dist_rule *rule);

// RLHF_E_INVALID unless w is a packed weight of k = d, n = vocab and dtype. [step]
rlhf_status rlhf__head_weight(struct rlhf__cuda *cu, const char *op, const rlhf_weight *w,
                              int32_t d, int32_t vocab, int32_t dtype);

// True when the rule leaves ids out.
static inline bool rlhf__head_cuts(const struct rlhf__dist_rule &r) {
    return r.top_k > 0 || r.top_p < 1.0 || r.has_least;
}

// logits f32 [rows, n_pad] = hidden[rows, d] W. [step]
rlhf_status rlhf__head_logits(struct rlhf__cuda *cu, float *logits, const void *hidden,
                              const rlhf_weight *w, uint32_t rows);

// Rows of `bytes` each that fit the budget: a multiple of 64, at least 64, at most a chunk.
uint32_t rlhf__head_fit(uint64_t budget, uint64_t bytes);

// Copies and checks the arguments; backward: whether d_kl, not kl, asks for the reference. [step]
rlhf_status rlhf__head_read(struct rlhf__cuda *cu, const char *op, struct rlhf__head_call *c,
                            const rlhf_lm_head *from, int backward);

// Fills the block's logits and statistics; with scores it also writes logp, entropy and kl and
// checks the targets. [step]
rlhf_status rlhf__head_fill(struct rlhf__cuda *cu, const struct rlhf__head_call *c,
                            const struct rlhf__head_block *b, int scores);

// The support of row i of the call, or NULL.
const uint32_t *rlhf__head_support(const struct rlhf__head_call *c, uint32_t i);

// What logits of this call would be kept as; and whether those that are kept serve it.
struct rlhf__cuda_kept rlhf__head_kept(const struct rlhf__cuda *cu,
                                       const struct rlhf__head_call *c);
int rlhf__head_serves(const struct rlhf__cuda_kept *have, const struct rlhf__cuda_kept *want);

// Bytes of a row's logits, those of the reference included.
uint64_t rlhf__head_row(const struct rlhf__head_call *c);

// *b = workspaces for `rows` rows at the head of each. [step]
rlhf_status rlhf__head_place(struct rlhf__cuda *cu, const struct rlhf__head_call *c, uint32_t rows,
                             struct rlhf__head_block *b);

// The same; where the card has no room for *rows rows, for fewer, which changes no bits, and later
// calls do not ask for so many again. [step]
rlhf_status rlhf__head_place_fewer(struct rlhf__cuda *cu, const struct rlhf__head_call *c,
                                   uint32_t *rows, struct rlhf__head_block *b);

// Gives the memory of logits back, for a call that was refused some; `before` is what
// recordings.status was before that. [step]
void rlhf__head_drop(struct rlhf__cuda *cu, rlhf_status before);

#endif
