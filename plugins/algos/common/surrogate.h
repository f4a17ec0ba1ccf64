// surrogate.h: the clipped policy-gradient surrogate, and the weights that combine the terms of
// tokens into one loss.
//
// x = log-prob now, o = log-prob at rollout, A = advantage, rho = probability ratio. The loss is
// minimized. terms.h has the KL and entropy terms.
#ifndef RLHF_ALGOS_COMMON_SURROGATE_H
#define RLHF_ALGOS_COMMON_SURROGATE_H

#include <stdint.h>

enum rlhf__ratio_level {
    RLHF__RATIO_TOKEN = 0,        // rho_t = exp(x_t - o_t)
    RLHF__RATIO_SEQUENCE = 1,     // one rho = exp(sum_t (x_t - o_t))
    RLHF__RATIO_SEQUENCE_MEAN = 2 // one rho = exp(mean_t (x_t - o_t)), GSPO (Zheng et al. 2025)
};

// The weights w_it of the token terms. They are computed from totals of the minibatch (DAPO: of the
// phase), so the loss does not depend on how the minibatch is divided into microbatches. Three of
// the weights also have published names: GRPO, BNPO and DR_GRPO.
enum rlhf__aggregation {
    RLHF__AGG_TOKEN = 0,    // 1 / (tokens of the minibatch)
    RLHF__AGG_SEQUENCE = 1, // 1 / (rows * tokens of the row)
    RLHF__AGG_MAX_LEN = 2,  // 1 / (rows * longest possible response)
    RLHF__AGG_DAPO = 3,     // 1 / (tokens of the phase's batch / minibatches)
    RLHF__AGG_GRPO = 4,     // = SEQUENCE
    RLHF__AGG_BNPO = 5,     // = TOKEN
    RLHF__AGG_DR_GRPO = 6,  // = MAX_LEN
    RLHF__AGG_SUM = 7       // 1 / rows: the term of a response is the sum over its tokens
};

// The totals that determine the weights. phase_tokens is 0 if it is unknown; DAPO then equals
// TOKEN.
struct rlhf__totals {
    double sequences;        // rows of the minibatch; if rows are masked, the mean over minibatches
    int64_t tokens, max_len; // tokens of the minibatch; longest possible response
    int64_t phase_tokens, minibatches; // tokens of the phase; number of minibatches in one epoch
};

struct rlhf__clip {
    double low, high; // the ratio is clipped to [1 - low, 1 + high]
    double dual;      // > 1 + high: for A < 0 the loss is at most -A * dual; 0 = no such bound
};

// The contribution of a row to the loss, and its statistics (sums over tokens).
struct rlhf__surrogate_sums {
    double loss;             // weighted
    double ratio, ratio2;    // sums of rho and rho^2
    double approx_kl;        // sum of (x - o)^2 / 2
    int64_t tokens, clipped; // clipped: tokens whose clipped branch was the larger
    int64_t out_of_support;  // number of tokens with x = -inf: their ratio is 0, without a gradient
};

// The weight of each token term of a row with len > 0 response tokens. [any]
double rlhf__token_weight(int32_t aggregation, const struct rlhf__totals *, int64_t len);

// Returns max(-A rho, -A clip(rho)) (Schulman et al. 2017, eq. 7). If A < 0 and `dual` is set, the
// result is at most -A * dual (Ye et al. 2020, eq. 3). Sets *d_ratio to the derivative by rho. Sets
// *clipped to 1 if a bound determines the result, which then does not depend on rho, otherwise to
// 0. [any]
double rlhf__surrogate(double ratio, double adv, const struct rlhf__clip *, double *d_ratio,
                       int *clipped);

// Adds `w` times the surrogate of one row to the sums, and the gradient of this product to d_logp.
// logp, logp_old, adv and d_logp are [len]. [any]
void rlhf__surrogate_row(int32_t level, const struct rlhf__clip *, double w, const float *logp,
                         const float *logp_old, const float *adv, int64_t len, float *d_logp,
                         struct rlhf__surrogate_sums *);

// Adds the surrogate of CISPO (MiniMax 2025, arXiv 2506.13585, eq. 4 without the lower bound):
// -min(rho, 1 + high) A x. The bounded ratio is a constant weight, so every token has a gradient. A
// token counts as clipped if rho > 1 + high and A is not 0. The other arguments are those of
// rlhf__surrogate_row. [any]
void rlhf__cispo_row(int32_t level, double high, double w, const float *logp, const float *logp_old,
                     const float *adv, int64_t len, float *d_logp, struct rlhf__surrogate_sums *);

// Adds the surrogate of GMPO (Zhao et al. 2025, arXiv 2507.20673): -A rho, where rho is the
// geometric mean of the tokens' ratios. Each log-ratio is clipped to [-low, high], but only in the
// direction that increases the objective. The row has a single advantage, adv[0]. The other
// arguments are those of rlhf__surrogate_row. [any]
void rlhf__gmpo_row(const struct rlhf__clip *, double w, const float *logp, const float *logp_old,
                    const float *adv, int64_t len, float *d_logp, struct rlhf__surrogate_sums *);

// Adds the surrogate of SAPO (Gao et al. 2025, arXiv 2511.20347): -A (4 / tau) sigmoid(tau (rho -
// 1)), a soft gate instead of the clip. tau is `pos` if A > 0, otherwise `neg`. No token counts as
// clipped. [any]
void rlhf__sapo_row(int32_t level, double pos, double neg, double w, const float *logp,
                    const float *logp_old, const float *adv, int64_t len, float *d_logp,
                    struct rlhf__surrogate_sums *);

#endif
