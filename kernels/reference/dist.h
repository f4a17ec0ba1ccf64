// dist.h: computes the log-probs of the sampling distribution from a row of logits.
//
// The order of operations is that of rlhf_dist: logits * inv_temperature, top-k, softmax, top-p,
// min-p, renormalize.
//
// Tokens are ranked by logit; if logits are equal, the lowest id comes first. top-k keeps the first
// k tokens. top-p keeps the shortest beginning of the ranking whose total probability is at least
// top_p. min-p keeps the tokens whose probability is at least min_p times the largest probability.
// The other tokens get the log-prob -inf. lm_head and lm_sample both use these functions, so their
// log-probs have the same bits.
#ifndef RLHF_KERNELS_REFERENCE_DIST_H
#define RLHF_KERNELS_REFERENCE_DIST_H

#include "context.h"
#include "weight.h"

struct rlhf__ref_ranked {
    double logit;
    int64_t id;
};

// Copies the caller's struct to *d. Returns RLHF_E_INVALID if a member is out of range. r->op must
// be set.
rlhf_status rlhf__ref_dist_read(struct rlhf__ref *r, rlhf_dist *d, const rlhf_dist *from);

// Returns 1 / temperature, or 1 if the distribution is greedy, because rlhf_dist then ignores the
// temperature.
double rlhf__ref_dist_scale(const rlhf_dist *d);

// What follows the product with the matrix, see rlhf_lm_head. In scale, 1 stands for 0.
struct rlhf__ref_map {
    double scale, cap;
};

// Returns RLHF_E_INVALID unless the members of rlhf_lm_head are allowed. r->op must be set.
rlhf_status rlhf__ref_map_read(struct rlhf__ref *r, struct rlhf__ref_map *m, double scale,
                               double cap);

// logits[vocab] = the row of `hidden` (act dtype) at index `row`, times the weight, summed in
// double, and mapped.
void rlhf__ref_logits(double *logits, rlhf_dev hidden, const rlhf_weight *w, uint64_t row,
                      struct rlhf__ref_map m);

// rlhf__ref_support_store sets the support bits (rlhf/compute.h) of the ids whose log-prob is not
// -inf. rlhf__ref_support_apply sets the logits of all ids outside of the support to -inf.
void rlhf__ref_support_store(uint32_t *bits, const double *logp, int32_t vocab);
void rlhf__ref_support_apply(double *logits, const uint32_t *bits, int32_t vocab);

// 1 if top-k, top-p or min-p of d may exclude ids.
int rlhf__ref_dist_cuts(const rlhf_dist *d, int32_t vocab);

// Turn logits[vocab] into log-probs. ranked[vocab] is scratch memory. If a logit is a NaN, all
// log-probs are NaN.
void rlhf__ref_log_probs(double *logits, struct rlhf__ref_ranked *ranked, int32_t vocab,
                         const rlhf_dist *d);

// Scales logits[vocab] by inv_temperature and turns them into log-probs over the support of logp,
// which is the set of ids whose logp is not -inf. The log-probs of the other ids become -inf. Used
// for the distribution of the reference model.
void rlhf__ref_log_probs_on(double *logits, const double *logp, int32_t vocab, const rlhf_dist *d);

#endif
