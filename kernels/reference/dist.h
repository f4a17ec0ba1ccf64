// dist.h: from a row of logits to the log-probs of the sampling distribution.
//
// The order of operations is that of rlhf_dist: logits * inv_temperature, top-k, softmax, top-p,
// min-p, renormalize.
//
// Tokens are ranked by logit; of equal logits, the lowest id comes first. top-k keeps the first k.
// top-p keeps the shortest prefix of the ranking whose probability is at least top_p. min-p keeps
// the tokens whose probability is at least min_p times the largest. The other tokens get log-prob
// -inf. lm_head and lm_sample share these functions, so their log-probs have the same bits.
#ifndef RLHF_KERNELS_REFERENCE_DIST_H
#define RLHF_KERNELS_REFERENCE_DIST_H

#include "context.h"
#include "weight.h"

struct rlhf__ref_ranked {
    double logit;
    int64_t id;
};

// Copies the caller's struct to *d. RLHF_E_INVALID when a field is out of range; r->op must be set.
rlhf_status rlhf__ref_dist_read(struct rlhf__ref *r, rlhf_dist *d, const rlhf_dist *from);

// 1 / temperature; 1 when the distribution is greedy, since rlhf_dist ignores the temperature then.
double rlhf__ref_dist_scale(const rlhf_dist *d);

// logits[vocab] = row `row` of hidden (act dtype) times the weight, summed in double.
void rlhf__ref_logits(double *logits, rlhf_dev hidden, const rlhf_weight *w, uint64_t row);

// Store the support bits (rlhf/compute.h): the ids whose log-prob is not -inf. Set the others to
// -inf.
void rlhf__ref_support_store(uint32_t *bits, const double *logp, int32_t vocab);
void rlhf__ref_support_apply(double *logits, const uint32_t *bits, int32_t vocab);

// 1 when d's top-k, top-p or min-p may exclude ids.
int rlhf__ref_dist_cuts(const rlhf_dist *d, int32_t vocab);

// logits[vocab] becomes log-probs. ranked[vocab] is scratch. A NaN logit makes all of them NaN.
void rlhf__ref_log_probs(double *logits, struct rlhf__ref_ranked *ranked, int32_t vocab,
                         const rlhf_dist *d);

// Scales logits[vocab] by inv_temperature and turns them into log-probs over the support of logp,
// which is the set of ids whose logp is not -inf. Other ids become -inf. Used for the reference
// model's distribution.
void rlhf__ref_log_probs_on(double *logits, const double *logp, int32_t vocab, const rlhf_dist *d);

#endif
