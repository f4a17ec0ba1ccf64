// ratio.h: how alike two texts are by their letters, in any words: from 0 to 1.
#ifndef RLHF_REWARDS_GRADER_RATIO_H
#define RLHF_REWARDS_GRADER_RATIO_H

#include "grader/letters.h"

// Returns 1 - (insertions and deletions that turn one text into the other) / (letters of both), of
// texts with n_a and n_b letters whose longest common subsequence has `common`. [any]
double rlhf__ratio_of(uint32_t common, uint32_t n_a, uint32_t n_b);

// The larger one; NaN if one of them is. [any]
double rlhf__ratio_best(double a, double b);

// The ratio of the whole texts. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__ratio(const rlhf_host *, const struct rlhf__letters *a,
                        const struct rlhf__letters *b, double *out);

// The best ratio of the shorter text and a part of the longer one. *out is NaN if this takes too
// long. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__ratio_part(const rlhf_host *, const struct rlhf__letters *a,
                             const struct rlhf__letters *b, double *out);

#endif
