// lm_head.h: the functions of the reference backend that both lm_head and its derivative use.
#ifndef RLHF_KERNELS_REFERENCE_LM_HEAD_H
#define RLHF_KERNELS_REFERENCE_LM_HEAD_H

#include "dist.h"

// The scratch memory of one row: the log-probs of the policy and, for kl, those of the reference
// model; the derivatives of the policy's logits by the products with the matrix.
struct rlhf__ref_head_row {
    double *logp, *ref, *slope; // [vocab]; ref is -inf outside of the support of logp
    struct rlhf__ref_ranked *ranked;
    struct rlhf__ref_map map, ref_map;
};

// Copy the caller's struct to *a and its member `dist` to *dist, and check both. With `backward`,
// also check the members that lm_head_bwd needs. If ref_d is 0, sets it to d.
rlhf_status rlhf__ref_head_read(struct rlhf__ref *r, const char *op, rlhf_lm_head *a,
                                rlhf_dist *dist, const rlhf_lm_head *from, int backward);

// Also reads the maps of the call.
rlhf_status rlhf__ref_head_row_init(struct rlhf__ref *r, struct rlhf__ref_head_row *s,
                                    const rlhf_lm_head *a);
void rlhf__ref_head_row_finish(struct rlhf__ref_head_row *s);

// Fills *s for row t. If `with_ref` is set, also computes the log-probs of the reference model.
void rlhf__ref_head_row_fill(struct rlhf__ref_head_row *s, const rlhf_lm_head *a, uint64_t t,
                             int with_ref);

// -sum p log p, and sum p (log p - log q), both over the support.
double rlhf__ref_entropy(const struct rlhf__ref_head_row *s, int32_t vocab);
double rlhf__ref_kl(const struct rlhf__ref_head_row *s, int32_t vocab);

// With m = beta q + (1 - beta) p, rlhf__ref_log_p_over_m returns log(p/m) for the id v, which must
// be in the support, and rlhf__ref_kl_to_m returns sum p log(p/m).
double rlhf__ref_log_p_over_m(const struct rlhf__ref_head_row *s, int32_t v, double beta);
double rlhf__ref_kl_to_m(const struct rlhf__ref_head_row *s, int32_t vocab, double beta);

// The divergence that a->divergence selects.
double rlhf__ref_divergence(const struct rlhf__ref_head_row *s, const rlhf_lm_head *a);

// Returns RLHF_E_INVALID if a target is outside of the vocabulary, or outside of the support of its
// row. The arrays must be accessible.
rlhf_status rlhf__ref_head_check_targets(struct rlhf__ref *r, const rlhf_lm_head *a);

// The device range of a's support.
struct rlhf__ref_use rlhf__ref_head_support(const rlhf_lm_head *a);

#endif
