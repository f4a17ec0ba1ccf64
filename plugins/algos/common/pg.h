// pg.h: the shared code of the policy-gradient algorithms: common options, plan(), the common parts
// of advantages() and loss(), the statistics of a phase, and the saved state.
//
// struct rlhf__pg is the first member of an algorithm's instance, so the algorithm's function
// tables can point to the functions of this file. The algorithm describes its advantages and its
// surrogate in a struct rlhf__pg_method. It also provides an option table, because defaults differ
// between algorithms.
#ifndef RLHF_ALGOS_COMMON_PG_H
#define RLHF_ALGOS_COMMON_PG_H

#include "common/choices.h"
#include "common/correction.h"
#include "common/kl.h"
#include "common/kl_control.h"
#include "common/metrics.h"
#include "common/rows.h"
#include "common/surrogate.h"

#include <rlhf/algo.h>

// Options that have the same names in all algorithms. This struct must be the first member of an
// algorithm's options.
struct rlhf__pg_options {
    int64_t group_size, epochs, minibatches;
    double kl_coef, kl_target, kl_horizon;
    double clip_range, clip_range_high, dual_clip;
    double entropy_coef, target_kl;
    int32_t kl_placement, kl_estimator, kl_controller, kl_unit, kl_measure;
    int32_t ratio, old_logp, logprob_temperature, logprob_support;
    int32_t mask_truncated, dynamic_sampling;
    int64_t dynamic_rounds;
    int32_t mask_zero_advantage_groups;
    int32_t correction, correction_mode; // enum rlhf__correction_level, _mode
    double correction_cap;
};

// Rows for the option tables: options that have the same default in every algorithm. The
// algorithm's options must begin with a struct rlhf__pg_options.
#define RLHF__PG_OPT_LOGPROBS                                                                      \
    RLHF_OPT_ENUM(struct rlhf__pg_options, old_logp, RLHF__OLD_ROLLOUT, rlhf__old_logp_names,      \
                  "old log-probs as sampled, or from a second forward"),                           \
        RLHF_OPT_ENUM(struct rlhf__pg_options, logprob_temperature, RLHF__TEMPERATURE_SAMPLING,    \
                      rlhf__temperature_names, "log-probs at the sampling temperature, or at 1"),  \
        RLHF_OPT_ENUM(struct rlhf__pg_options, logprob_support, RLHF__SUPPORT_FULL,                \
                      rlhf__support_names,                                                         \
                      "log-probs over the whole vocabulary, or over what top-k, top-p and min-p "  \
                      "kept")
#define RLHF__PG_OPT_CORRECTION                                                                    \
    RLHF_OPT_ENUM(                                                                                 \
        struct rlhf__pg_options, correction, RLHF__CORRECT_AUTO, rlhf__correction_names,           \
        "weight of rows that an older policy sampled, exp(old log-prob - sampled log-prob), for "  \
        "each token or each response; auto: only with rollout.ahead, for each response with "      \
        "ratio=sequence or, in GRPO, loss=gmpo; otherwise for each token"),                        \
        RLHF_OPT_F64(struct rlhf__pg_options, correction_cap, 2, 0, 1e9,                           \
                     "largest such weight; 0: none"),                                              \
        RLHF_OPT_ENUM(struct rlhf__pg_options, correction_mode, RLHF__CORRECT_TRUNCATE,            \
                      rlhf__correction_mode_names,                                                 \
                      "what a weight above correction_cap becomes: correction_cap, or 0, which "   \
                      "for a weight of a response leaves the response out")
#define RLHF__PG_OPT_DYNAMIC                                                                       \
    RLHF_OPT_BOOL(struct rlhf__pg_options, dynamic_sampling, 0,                                    \
                  "groups whose responses all get the same reward are replaced by responses to "   \
                  "further prompts"),                                                              \
        RLHF_OPT_I64(struct rlhf__pg_options, dynamic_rounds, 10, 1, 1000,                         \
                     "rounds of further prompts in a phase, at most; groups that are left "        \
                     "without spread stay in the batch")

// The parts that are specific to an algorithm. Each algorithm has one static struct of this type,
// so it outlives all instances. `self` is the instance.
struct rlhf__pg_method {
    const char *name;       // shown in messages
    char magic[4];          // first bytes of the saved state
    uint32_t state_version; // 0: nothing is saved
    // For algorithms that use rlhf__pg_advantages: computes advantage[n] from paid[n], the total
    // rewards of the rows including the KL penalty. `work` [4 * n] and `order` [n] are scratch
    // memory.
    void (*compare)(const void *self, const rlhf_rollout *, const double *paid, double *work,
                    int64_t *order, double *advantage);
    // Adds the loss terms of one response to *u and *d, except the terms of KL and entropy. `w` is
    // the weight of each token of the response. adv [row.end - row.begin] is the advantage of each,
    // corrected for rows that an older policy sampled.
    void (*terms)(const void *self, const rlhf_loss_in *, struct rlhf__span row, const float *adv,
                  double w, const rlhf_head_gradients *d, struct rlhf__pg_update_sums *u);
};

// If the values of other options disable the common option `key`, returns the reason. Returns NULL
// if the option has an effect or is not a common option. [any]
const char *rlhf__pg_why_unused(const struct rlhf__pg_options *, const char *key);

struct rlhf__pg {
    const rlhf_host *host;
    const struct rlhf__pg_method *method;
    struct rlhf__pg_options opt;
    int32_t aggregation, scope; // enum rlhf__aggregation, rlhf__scope (of advantages)
    int32_t whole_rows;         // 1: all tokens of a row must have the same advantage
    int32_t unclipped;          // 1: without clipping, and without a clipped share metric
    int32_t each; // 1: advantages come from each reward's own score (rlhf_rollout.reward_score)
    int32_t spare;
    int32_t critic, together; // critic 1: the algorithm trains a value head; together 1: all rows
                              // of a phase are compared with each other, whatever their groups
    struct rlhf__clip clip;
    struct rlhf__kl_control kl; // its coefficient is saved
    struct rlhf__pg_metrics metrics;
    struct rlhf__correction correction;     // set by plan()
    struct rlhf__correction_sums corrected; // sums of the phase
    int64_t advantage_calls;                // number of calls of advantages() in this phase
    int64_t phase_tokens; // number of response tokens in the phase's batch, 0 = unknown
    int64_t rows;         // number of rows of advantages() that the divisors count; negative: all
    double *scratch;      // scratch memory of advantages()
    uint64_t scratch_bytes;
};

// Set *self to a new instance of `bytes` bytes, which must start with struct rlhf__pg. The instance
// is zeroed, and its struct rlhf__pg is filled from the options. The caller then sets the members
// `aggregation`, `scope` and `critic`. Returns RLHF_E_INVALID, with a message, if the combination
// of options has no meaning. Free the instance with destroy, which accepts NULL. [main]
rlhf_status rlhf__pg_create(const rlhf_host *, const struct rlhf__pg_method *,
                            const struct rlhf__pg_options *, uint64_t bytes, void **self);
void rlhf__pg_destroy(void *self);

// These implement functions of rlhf_algo_ops. plan() refuses combinations of options that are
// invalid for this run. phase_end() reports the metrics, adapts the KL coefficient and clears the
// phase. plan() is [main]; the others are [step].
rlhf_status rlhf__pg_plan(void *self, const rlhf_run_info *, rlhf_plan *out);
rlhf_status rlhf__pg_loss(void *self, const rlhf_loss_in *, rlhf_loss_out *);
rlhf_status rlhf__pg_minibatch_end(void *self, const rlhf_step_info *, rlhf_step_out *);
rlhf_status rlhf__pg_phase_end(void *self, const rlhf_phase_info *);

// Implements advantages() of rlhf_algo_ops for algorithms with one advantage per response. Computes
//   S_i = score_i + sum_t token_reward_it [- beta sum_t k_it, with kl_placement reward]
// and passes S to `compare`. The return of every token of row i is S_i. [step]
rlhf_status rlhf__pg_advantages(void *self, const rlhf_rollout *, rlhf_advantages *);

// Each algorithm's advantages() must begin with a call of this function. It checks the arrays and
// records the phase's token count. It sets *scratch to memory for 8-byte numbers: `per_token`
// numbers for each response token, and `per_row` numbers for each row. This memory is valid until
// the next call. Sets *counts to 1 if the rollout counts toward the metrics, otherwise to 0. If
// memory runs out, the function reports RLHF_E_NOMEM through host->fail. [step]
rlhf_status rlhf__pg_begin(struct rlhf__pg *, const rlhf_rollout *, const rlhf_advantages *,
                           int64_t per_token, int64_t per_row, double **scratch, int32_t *counts);

// Each algorithm's advantages() must call this function at its end, after it has set the
// advantages. This function computes the weights of rows that an older policy sampled, and
// decides how the loss uses each row (enum rlhf_row_use). `counts` is from rlhf__pg_begin. Errors:
// RLHF_E_INTERNAL, and those of rlhf__correct. [step]
//
// A row whose advantages are all 0 becomes RLHF_USE_NO_GRADIENT if the loss has no other term
// (critic, KL with a coefficient, entropy bonus). With mask_truncated, an unfinished row becomes
// RLHF_USE_EXCLUDED.
//
// If mask_zero_advantage_groups is set, rlhf__pg_advantages masks further rows after this call:
// those of groups whose advantages are all 0. These rows count in no divisor.
rlhf_status rlhf__pg_uses(struct rlhf__pg *, const rlhf_rollout *, rlhf_advantages *,
                          int32_t counts);

// These implement functions of rlhf_plugin. The saved state is the method's magic, then kl_coef as
// a little-endian double. [main]
rlhf_status rlhf__pg_save(void *self, const rlhf_ostream *);
rlhf_status rlhf__pg_load(void *self, const rlhf_istream *, uint32_t state_version);

#endif
