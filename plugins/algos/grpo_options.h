// grpo_options.h: the options of grpo.so. grpo_iterative.so has these options and further ones.
#ifndef RLHF_ALGOS_GRPO_OPTIONS_H
#define RLHF_ALGOS_GRPO_OPTIONS_H

#include "common/pg.h"

enum rlhf__grpo_scale {
    RLHF__GRPO_SCALE_GROUP = 0,
    RLHF__GRPO_SCALE_BATCH = 1,
    RLHF__GRPO_SCALE_NONE = 2
};
enum rlhf__grpo_rewards { RLHF__GRPO_REWARDS_SUM = 0, RLHF__GRPO_REWARDS_EACH = 1 };
enum rlhf__grpo_loss {
    RLHF__GRPO_LOSS_GRPO = 0,
    RLHF__GRPO_LOSS_BNPO = 1,
    RLHF__GRPO_LOSS_DR_GRPO = 2,
    RLHF__GRPO_LOSS_DAPO = 3,
    RLHF__GRPO_LOSS_CISPO = 4,
    RLHF__GRPO_LOSS_GMPO = 5,
    RLHF__GRPO_LOSS_SAPO = 6
};

// The host fills this struct from the option table; the keys are the field names.
struct rlhf__grpo_options {
    struct rlhf__pg_options pg; // must stay the first member: the option table relies on it
    double advantage_eps, sapo_temperature_pos, sapo_temperature_neg;
    int32_t advantage_scale, advantage_std, advantage_scope, loss;
    int32_t advantage_rewards, spare;
};

#define RLHF__GRPO_OPTION_COUNT 35
extern const rlhf_opt rlhf__grpo_option_table[RLHF__GRPO_OPTION_COUNT];

// The token weights that the option `loss` selects: enum rlhf__aggregation. [any]
int32_t rlhf__grpo_aggregation(const struct rlhf__grpo_options *);

// rlhf_plugin.why_unused, for a config that starts with struct rlhf__grpo_options. [any]
const char *rlhf__grpo_why_unused(const rlhf_option_in *);

// Refuses meaningless combinations with a message through host->fail. [main]
rlhf_status rlhf__grpo_options_check(const rlhf_host *, const struct rlhf__grpo_options *);

#endif
