// core.h: group relative policy optimisation, as grpo.so and grpo_iterative.so share it.
//
// advantages.c turns a rollout into advantages, loss.c heads into a loss and its derivatives,
// core.c plans and keeps the phase's books. What it is not: a plugin (grpo.c); it saves nothing but
// offers what has to be saved (kl).
#ifndef RLHF_ALGOS_GRPO_CORE_H
#define RLHF_ALGOS_GRPO_CORE_H

#include "common/kl_control.h"
#include "grpo/options.h"

#include <rlhf/algo.h>

struct rlhf__grpo {
    const rlhf_host *host;
    struct rlhf__grpo_options opt;
    struct rlhf__kl_control kl; // state to save
    struct rlhf__pg_metrics metrics;
    int64_t advantage_calls; // in this phase
    int64_t phase_tokens;    // response tokens of the phase's batch, 0 = unknown
    void *scratch;           // of advantages()
    uint64_t scratch_bytes;
};

// Check the options and fill a zeroed instance; host must outlive it. Released with finish. [main]
rlhf_status rlhf__grpo_init(struct rlhf__grpo *, const rlhf_host *,
                            const struct rlhf__grpo_options *);
void rlhf__grpo_finish(struct rlhf__grpo *);

// What the entries of rlhf_algo_ops do; phase_end reports, adapts the coefficient and forgets the
// phase. [main] for plan, [step] for the others.
rlhf_status rlhf__grpo_plan(const struct rlhf__grpo *, const rlhf_run_info *, rlhf_plan *out);
rlhf_status rlhf__grpo_advantages(struct rlhf__grpo *, const rlhf_rollout *);
rlhf_status rlhf__grpo_loss(struct rlhf__grpo *, const rlhf_loss_in *, rlhf_loss_out *);
void rlhf__grpo_minibatch_end(struct rlhf__grpo *, int32_t *stop);
void rlhf__grpo_phase_end(struct rlhf__grpo *);

#endif
