// correction.h: corrects the loss for rows that an older policy sampled. The corrected loss is the
// decoupled objective (Hilton et al. 2022, "Batch size-invariance for policy optimization"; Fu et
// al. 2025, arXiv 2505.24298).
//
// The log-probs of a token: b under the policy that sampled it (logp_sampled), p under the policy
// at the start of the phase (logp_old, from a second forward pass), x under the policy that learns.
//
//   L = -mean_t w_t min(u_t A_t, clip(u_t) A_t),  u_t = exp(x_t - p_t),  w_t = exp(p_t - b_t)
//
// advantages() computes the weights w, and they reach loss() as carried numbers
// (rlhf_plan.carry_rows, carry_tokens). w is constant and not negative, so w min(u A, clip(u) A) =
// min(u (w A), clip(u) (w A)): the loss functions get the advantage w A.
//
// A loss with one ratio and one advantage per response (GMPO) has one weight per response: with
// weights per token, their geometric mean, as the ratio is the geometric mean of the tokens'
// ratios.
#ifndef RLHF_ALGOS_COMMON_CORRECTION_H
#define RLHF_ALGOS_COMMON_CORRECTION_H

#include <rlhf/algo.h>

enum rlhf__correction_level {
    RLHF__CORRECT_AUTO = 0, // NONE; if the run samples ahead, TOKEN or SEQUENCE
    RLHF__CORRECT_NONE = 1,
    RLHF__CORRECT_TOKEN = 2,   // a weight per token
    RLHF__CORRECT_SEQUENCE = 3 // a weight per response, from the sum of its log-ratios
};
enum rlhf__correction_mode {
    RLHF__CORRECT_TRUNCATE = 0, // a weight above the cap becomes the cap
    // With one weight per token, a weight above the cap becomes 0, and the divisors of the loss do
    // not change. With one weight per row (SEQUENCE), a row whose weight is above the cap is left
    // out of the loss (RLHF_USE_EXCLUDED).
    RLHF__CORRECT_MASK = 1
};

// The names of the values of both enums, NULL-terminated.
extern const char *const rlhf__correction_names[], *const rlhf__correction_mode_names[];

struct rlhf__correction {
    int32_t level, mode; // level must not be AUTO
    double cap;          // 0: there is no cap
};

// Statistics of the weights of a phase. Zero this struct before the first use.
struct rlhf__correction_sums {
    int64_t rows, tokens;    // number of responses that have tokens; number of these tokens
    int64_t units, high;     // number of weights, and of weights above the cap
    int64_t masked;          // number of tokens masked because of their weight
    double weight, min, max; // sum, least and largest weight of the tokens, before the cap
    double near, near2;      // sums over tokens of w and w^2, where w is clamped to [1 / cap, cap]
    double kl, k3, chi2;     // sums over tokens of b - p, e^r - r - 1 and e^2r, with r = p - b
    double training, sampling; // sums over rows of the mean of p and the mean of b
};

// Returns the weight, after the cap. `log_ratio` is p - b of one token or, with SEQUENCE, the sum
// of p - b over the response; `log_ratio` is first clamped to [-20, 20]. Sets *high to 1 if the
// uncapped weight is above the cap, otherwise to 0. [any]
double rlhf__correction_weight(const struct rlhf__correction *, double log_ratio, int32_t *high);

// Stores the weights of all rows in out->carry_row (SEQUENCE) or out->carry_token (TOKEN). With
// SEQUENCE and MASK, also excludes the rows whose weight is above the cap. Sets *excluded to the
// number of response tokens of the excluded rows; if `finished` is set, unfinished rows do not
// count. If the pointer to the sums is not NULL, adds each token to them. Returns RLHF_E_NUMERIC,
// with a message, if a log-prob is not finite. [step]
rlhf_status rlhf__correct(const rlhf_host *, const struct rlhf__correction *, const rlhf_rollout *,
                          rlhf_advantages *out, int32_t finished, struct rlhf__correction_sums *,
                          int64_t *excluded);

// The weights that rlhf__correct stored, in advantages() or in loss(): each array is NULL if the
// plan does not carry it.
struct rlhf__correction_weights {
    const double *row, *token;
};

// Returns the weight of token t of row i; 1 without a correction. [any]
static inline double rlhf__correction_of(const struct rlhf__correction_weights *w, int64_t i,
                                         int64_t t) {
    return w->row ? w->row[i] : w->token ? w->token[t] : 1;
}

// Returns the geometric mean of the weights of the tokens [begin, end) of row i, which must not be
// empty; 0 if a weight is 0. [any]
double rlhf__correction_mean(const struct rlhf__correction_weights *, int64_t i, int64_t begin,
                             int64_t end);

// Send the metrics rollout_corr/* (docs/metrics.md) to host->metric. [step]
void rlhf__correction_report(const rlhf_host *, const struct rlhf__correction *,
                             const struct rlhf__correction_sums *);

#endif
