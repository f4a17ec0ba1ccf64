// ppo_options.h: the options of ppo.so. The table with defaults and help is in ppo_options.c.
#ifndef RLHF_ALGOS_PPO_OPTIONS_H
#define RLHF_ALGOS_PPO_OPTIONS_H

#include "common/pg.h"
#include "common/whiten.h"

enum rlhf__ppo_advantage {
    RLHF__PPO_GAE = 0,
    RLHF__PPO_ONE_STEP = 1,
    RLHF__PPO_SEQUENCE = 2,
    RLHF__PPO_GROUP = 3,
    RLHF__PPO_GROUP_MEAN = 4,
    RLHF__PPO_BROADCAST_REWARD = 5,
    RLHF__PPO_REWARD_TO_GO = 6
};
enum rlhf__ppo_switch { RLHF__PPO_AUTO = 0, RLHF__PPO_OFF = 1, RLHF__PPO_ON = 2 };

// The host fills this struct from the option table; the keys are the field names.
struct rlhf__ppo_options {
    struct rlhf__pg_options pg; // must stay the first member: its option rows rely on it
    double gamma, lambda, advantage_eps, whiten_eps, value_coef, value_clip;
    int32_t advantage, advantage_std;
    int32_t whiten_rewards, whiten_advantages, whiten_scope, whiten_form, normalize_scores;
    int32_t aggregation;
};

#define RLHF__PPO_OPTION_COUNT 37
extern const rlhf_opt rlhf__ppo_option_table[RLHF__PPO_OPTION_COUNT];

// 1 if the advantage needs a critic (gae, one_step, broadcast_reward). [any]
int32_t rlhf__ppo_has_critic(const struct rlhf__ppo_options *);

// 1 if advantages are whitened after they are computed ("auto": only with a critic). [any]
int32_t rlhf__ppo_whitens_advantages(const struct rlhf__ppo_options *);

// rlhf_plugin.why_unused. [any]
const char *rlhf__ppo_why_unused(const rlhf_option_in *);

// Refuses meaningless combinations with a message through host->fail. [main]
rlhf_status rlhf__ppo_options_check(const rlhf_host *, const struct rlhf__ppo_options *);

#endif
