// stats.h: means with standard errors, and pass@k, over responses to a set of prompts.
//
// Several responses to one prompt are not independent. So standard errors treat the responses of a
// prompt as a cluster (Miller 2024, "Adding Error Bars to Evals", section 2.2), with the usual
// factor for G prompts:
//
//   error = sqrt(G / (G - 1) * sum over prompts c of (sum over responses i of c of (x_i - mean))^2)
//   / n
//
// With one response per prompt this is the unbiased standard deviation divided by sqrt(n). With
// only one prompt there is no standard error.
#ifndef RLHF_HOST_EVAL_STATS_H
#define RLHF_HOST_EVAL_STATS_H

#include "base/error.h"

#include <stdint.h>

struct rlhf__estimate {
    double mean;  // NaN without values
    double error; // standard error of the mean; NaN with fewer than two prompts
};

// Responses and their prompts. All borrowed.
struct rlhf__answers {
    const int64_t *prompt; // [n] index of the prompt, 0 <= prompt[i] < n_prompts
    const uint8_t *keep;   // [n] 0: the response does not count; NULL: all count
    uint32_t n;
    int64_t n_prompts;
};

// Computes the mean of x[n] over the responses that count. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__estimate_mean(const struct rlhf__answers *, const double *x,
                                struct rlhf__estimate *out, struct rlhf__error *err);

// Returns the unbiased estimate of pass@k for a prompt with n responses of which c are right: 1 -
// C(n - c, k) / C(n, k) (Chen et al. 2021, eq. 1). This is the probability that k responses drawn
// without replacement from the n include a right one. NaN if n < k. [any]
double rlhf__pass_at(uint32_t n, uint32_t c, uint32_t k);

// Fill pass[n_prompts] with each prompt's pass@k; this is NaN for a prompt that has fewer than k
// responses with keep[i] != 0. right[n] is 1 for right responses. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__pass_by_prompt(const struct rlhf__answers *, const uint8_t *right, uint32_t k,
                                 double *pass, struct rlhf__error *err);

// Computes the mean of x[n], which has a value for each prompt. Leaves out NaN values, and replaces
// them by 0 in `x`. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__estimate_prompts(double *x, int64_t n, struct rlhf__estimate *out,
                                   struct rlhf__error *err);

// Returns the standard error of a share p of n independent rows: sqrt(p (1 - p) / n). [any]
double rlhf__share_error(double p, int64_t n);

#endif
