// prompt_episodes.h: checks the limits of a run's episodes, and samples the episodes as the rows of
// a batch. The environment plays the episodes, unless a record has its answers.
#ifndef RLHF_HOST_FEED_PROMPT_EPISODES_H
#define RLHF_HOST_FEED_PROMPT_EPISODES_H

#include "episode/playing.h"
#include "feed/feed.h"

// All members are 0 for a run without an environment. If the environment is not open, only
// train.limits is set.
struct rlhf__prompt_episodes {
    struct rlhf__episode_setup train, held_out;
};

// Check and prepare the episodes of the prompts and of the held-out prompts. `held_out` is NULL if
// there are no held-out prompts. `alone` is 1 if the run has no prompts (rlhf__playing_alone). *out
// is zeroed if the run has no environment. Errors: those of rlhf__playing_open. [main]
rlhf_status rlhf__prompt_episodes_open(const struct rlhf__feed_env *, const struct rlhf__prompts *,
                                       const struct rlhf__prompts *held_out, int alone,
                                       struct rlhf__prompt_episodes *out, struct rlhf__error *err);
void rlhf__prompt_episodes_close(struct rlhf__prompt_episodes *); // accepts a zeroed one [main]

// Returns the token limit of an episode, or 0 without an environment. [any]
int32_t rlhf__prompt_episodes_longest(const struct rlhf__prompt_episodes *);

// Sample the episodes of a request into *x, in which the caller has set the phase. Each rank plays
// a part of the episodes, unless the answers come from a record. Errors: those of
// rlhf__playing_share and rlhf__recorded_play. [step]
rlhf_status rlhf__prompt_episodes_play(const struct rlhf__prompt_episodes *,
                                       const struct rlhf__feed_env *,
                                       const struct rlhf__rollout_request *, const int64_t *row,
                                       struct rlhf__experience *x, struct rlhf__error *err);

#endif
