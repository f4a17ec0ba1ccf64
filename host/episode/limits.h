// limits.h: the limits of an episode, all in tokens and turns. There is no time limit, so the
// contents of rows do not depend on the speed of the machine.
#ifndef RLHF_HOST_EPISODE_LIMITS_H
#define RLHF_HOST_EPISODE_LIMITS_H

#include "config/schema.h"

struct rlhf__episode_limits {
    int32_t turns;  // of the policy
    int32_t turn;   // tokens of a turn
    int32_t reply;  // tokens that the environment adds after a turn, and at the beginning
    int32_t tokens; // of the whole row
};

// The longest prompt, in tokens.
struct rlhf__episode_prompt {
    int32_t tokens; // of the prompt with the tools that it lists
    int32_t tools;  // of the list of tools alone; 0: no list
};

// Set *out for a model with a context of n_ctx tokens, and prompts of at most p->tokens tokens.
// Errors: RLHF_E_INVALID if the limits leave no room for a turn and a reply, or a setting is out of
// range. [main]
rlhf_status rlhf__episode_limits(const struct rlhf__config *, int32_t n_ctx,
                                 const struct rlhf__episode_prompt *p,
                                 struct rlhf__episode_limits *out, struct rlhf__error *err);

#endif
