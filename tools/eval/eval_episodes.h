// eval_episodes.h: measures of episodes for `eval --env`.
#ifndef RLHF_TOOLS_EVAL_EVAL_EPISODES_H
#define RLHF_TOOLS_EVAL_EVAL_EPISODES_H

#include "eval/eval_setup.h"

double rlhf__episode_paid(const struct rlhf__rows *, uint32_t i);  // the environment's reward [any]
double rlhf__episode_turns(const struct rlhf__rows *, uint32_t i); // the policy's turns [any]

// Sets *task for n episodes. If the environment sets its tasks itself and no prompts were given,
// each episode has a different task: *task becomes an array with task[i] = i. Otherwise *task
// becomes NULL. In both cases, frees the previous array in *task. Errors: RLHF_E_INVALID if
// per_prompt is set without prompts; RLHF_E_NOMEM. [main]
rlhf_status rlhf__episode_tasks(const struct rlhf__eval_setup *, uint32_t n, int per_prompt,
                                int64_t **task, struct rlhf__error *err);

#endif
