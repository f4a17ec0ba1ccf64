// ppo.h: the instance that the files of ppo.so share.
//
// ppo_advantages.c turns a rollout into advantages and returns. ppo.c is the plugin: its descriptor
// and its terms of the loss. common/pg.h has the rest.
#ifndef RLHF_ALGOS_PPO_H
#define RLHF_ALGOS_PPO_H

#include "ppo_options.h"

struct rlhf__ppo {
    struct rlhf__pg pg; // must stay the first member
    struct rlhf__ppo_options opt;
};

// The function of rlhf_algo_ops. [step]
rlhf_status rlhf__ppo_advantages(void *self, const rlhf_rollout *, rlhf_advantages *);

#endif
