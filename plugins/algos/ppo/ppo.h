// ppo.h: the instance that ppo.so's files share.
//
// advantages.c turns a rollout into advantages and returns, loss.c heads into a loss and its
// derivatives, state.c saves the KL controller, ppo.c is the plugin's descriptor and plan.
#ifndef RLHF_ALGOS_PPO_PPO_H
#define RLHF_ALGOS_PPO_PPO_H

#include "common/kl_control.h"
#include "ppo/options.h"

#include <rlhf/algo.h>

struct rlhf__ppo {
    const rlhf_host *host;
    struct rlhf__ppo_options opt;
    struct rlhf__kl_control kl; // saved
    struct rlhf__pg_metrics metrics;
    int64_t advantage_calls; // in this phase
    int64_t phase_tokens;    // response tokens of the phase's batch, 0 = unknown
    void *scratch;           // see rlhf__ppo_scratch
    uint64_t scratch_bytes;
};

// At least `bytes` of scratch memory that lives until the next call; NULL when out of memory.
// [step]
void *rlhf__ppo_scratch(struct rlhf__ppo *, uint64_t bytes);

// rlhf_algo_ops entries.
rlhf_status rlhf__ppo_advantages(void *self, const rlhf_rollout *);            // [step]
rlhf_status rlhf__ppo_loss(void *self, const rlhf_loss_in *, rlhf_loss_out *); // [step]

// rlhf_plugin entries: 4 bytes "RPPO", then kl_coef as a little-endian double. [main]
#define RLHF__PPO_STATE_VERSION 1
rlhf_status rlhf__ppo_save(void *self, const rlhf_ostream *);
rlhf_status rlhf__ppo_load(void *self, const rlhf_istream *, uint32_t state_version);

#endif
