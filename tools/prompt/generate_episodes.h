// generate_episodes.h: `rlhf-host generate --env`: samples and prints episodes of an environment.
#ifndef RLHF_TOOLS_PROMPT_GENERATE_EPISODES_H
#define RLHF_TOOLS_PROMPT_GENERATE_EPISODES_H

#include "base/env.h"
#include "cmd/command_setup.h"

// The flags of `generate`. NULL, or a number below the flag's minimum, means that the flag was not
// given. Then the setting of the model's run applies.
struct rlhf__generate_episodes {
    const char *model, *environment, *prompts;
    struct rlhf__chat_choice chat;
    const struct rlhf__flag_list *stop;
    int64_t n, max_new, turns, seed, top_k, max_mib;
    double temperature, top_p, min_p;
    int32_t json;
    const struct rlhf__command_setup_flags *at;
};

// n is the number of episodes for each prompt or, without prompts, the number of all episodes.
// Errors: those of rlhf__eval_setup_open and of sampling. [main]
rlhf_status rlhf__generate_episodes(const struct rlhf__env *,
                                    const struct rlhf__generate_episodes *,
                                    struct rlhf__error *err);

#endif
