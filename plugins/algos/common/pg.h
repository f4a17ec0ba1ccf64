// pg.h: what the policy-gradient algorithms share: their common options, the plan, the scaffold of
// advantages and of the loss, the books of a phase and the saved state. An algorithm embeds struct
// rlhf__pg as its instance's first member, so that these functions stand in its tables as they are,
// and fills struct rlhf__pg_method with what it does differently.
//
// What it is not: it has no option table (defaults differ) and knows no advantage and no surrogate.
#ifndef RLHF_ALGOS_COMMON_PG_H
#define RLHF_ALGOS_COMMON_PG_H

#include "common/choices.h"
#include "common/kl.h"
#include "common/kl_control.h"
#include "common/metrics.h"
#include "common/rows.h"
#include "common/surrogate.h"

#include <rlhf/algo.h>

// Options under the same names in every algorithm that has them; first member of its options.
struct rlhf__pg_options {
    int64_t group_size, epochs, minibatches;
    double kl_coef, kl_target, kl_horizon;
    double clip_range, clip_range_high, dual_clip;
    double entropy_coef, target_kl;
    int32_t kl_placement, kl_estimator, kl_controller, kl_unit, kl_measure;
    int32_t ratio, old_logp, logprob_temperature, logprob_support;
    int32_t mask_truncated, dynamic_sampling;
    int64_t dynamic_rounds;
    int32_t mask_zero_advantage_groups, reserved;
};

// What one algorithm does its own way; static, outlives the instance. `self` is the instance.
struct rlhf__pg_method {
    const char *name;       // in messages
    char magic[4];          // first bytes of the saved state
    uint32_t state_version; // 0: nothing is saved
    // Algorithms that use rlhf__pg_advantages: advantage[n] from paid[n], what each row is paid in
    // all, KL penalty included; order[n] is scratch.
    void (*compare)(const void *self, const rlhf_rollout *, const double *paid, int64_t *order,
                    double *advantage);
    // The terms of one response whose tokens weigh w: adds to u and to d. KL and entropy are not
    // among them.
    void (*terms)(const void *self, const rlhf_loss_in *, struct rlhf__span row, double w,
                  rlhf_heads *d, struct rlhf__pg_update_sums *u);
};

// Why the common option `key` changes nothing beside the others, NULL: it acts, or is another's.
// [any]
const char *rlhf__pg_idle(const struct rlhf__pg_options *, const char *key);

struct rlhf__pg {
    const rlhf_host *host;
    const struct rlhf__pg_method *method;
    struct rlhf__pg_options opt;
    int32_t aggregation, scope; // enum rlhf__aggregation, rlhf__scope (of advantages)
    int32_t unclipped;          // 1: without clipping, and without a clipped share metric
    int32_t critic, together;   // critic 1: the algorithm trains a value head; together 1: all rows
                                // of a phase are compared with each other, whatever their groups
    struct rlhf__clip clip;
    struct rlhf__kl_control kl; // saved
    struct rlhf__pg_metrics metrics;
    int64_t advantage_calls; // in this phase
    int64_t phase_tokens;    // response tokens of the phase's batch, 0 = unknown
    int64_t rows;            // of advantages() that count in divisors; negative: all rows do
    double *scratch;         // of advantages
    uint64_t scratch_bytes;
};

// *self = a zeroed instance of `bytes` that starts with struct rlhf__pg, filled from the options;
// its creator then sets aggregation, scope and critic. Refuses options that have no meaning
// together, in one sentence. Released by destroy, which takes NULL. [main]
rlhf_status rlhf__pg_create(const rlhf_host *, const struct rlhf__pg_method *,
                            const struct rlhf__pg_options *, uint64_t bytes, void **self);
void rlhf__pg_destroy(void *self);

// Of rlhf_algo_ops. plan refuses a combination that this run rules out; phase_end reports, adapts
// the KL coefficient and forgets the phase. [main] for plan, [step] for the others.
rlhf_status rlhf__pg_plan(void *self, const rlhf_run_info *, rlhf_plan *out);
rlhf_status rlhf__pg_loss(void *self, const rlhf_loss_in *, rlhf_loss_out *);
rlhf_status rlhf__pg_minibatch_end(void *self, const rlhf_step_info *, int32_t *stop);
rlhf_status rlhf__pg_phase_end(void *self, uint64_t phase);

// Of rlhf_algo_ops too, for one advantage a response:
//   S_i = score_i + sum_t token_reward_it [- beta sum_t k_it, with kl_placement reward]
// goes to `compare` and is every token's return. [step]
rlhf_status rlhf__pg_advantages(void *self, const rlhf_rollout *);

// What every advantages() begins with: checks the arrays and notes the phase's tokens. *scratch =
// room for per_token numbers of 8 bytes a response token and per_row a row, until the next call;
// *counts = 1 when this call counts towards the metrics. RLHF_E_NOMEM through host->fail. [step]
rlhf_status rlhf__pg_begin(struct rlhf__pg *, const rlhf_rollout *, int64_t per_token,
                           int64_t per_row, double **scratch, int32_t *counts);

// What every advantages() ends with, the advantages being in their place: which rows the loss
// leaves alone (enum rlhf_row_use). A row whose advantages are all 0 is still where the loss has no
// other term: no critic, no KL with a coefficient, no entropy bonus. With mask_truncated a row that
// is not finished is masked. counts: as begin() said. RLHF_E_INTERNAL. [step]
//
// rlhf__pg_advantages then masks, with mask_zero_advantage_groups, the rows of groups whose
// advantages are all 0, and takes them out of every divisor.
rlhf_status rlhf__pg_uses(struct rlhf__pg *, const rlhf_rollout *, int32_t counts);

// Of rlhf_plugin: the method's magic, then kl_coef as a little-endian double. [main]
rlhf_status rlhf__pg_save(void *self, const rlhf_ostream *);
rlhf_status rlhf__pg_load(void *self, const rlhf_istream *, uint32_t state_version);

#endif
