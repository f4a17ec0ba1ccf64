// held_out_prompts.h: the reward of the policy's responses to held-out prompts (data.eval_path).
// They are sampled, cut and rewarded as in a phase, but not learned from.
// Held-out rows of a file are measured by text_feed.c and preference_feed.c.
#ifndef RLHF_HOST_HELD_OUT_PROMPTS_H
#define RLHF_HOST_HELD_OUT_PROMPTS_H

#include "feed/feed.h"
#include "sample/rollout.h"

// Open the first data.eval_limit rows of data.eval_path by the rules of prompts.*; *out = NULL
// without data.eval_path. Needs the policy. The caller owns *out. Errors: those of
// rlhf__rollout_prompts. [main]
rlhf_status rlhf__held_out_prompts_open(const struct rlhf__feed_env *, struct rlhf__prompts **out,
                                        struct rlhf__error *err);

// Sample one response to each of q.prompts, with the same random numbers every time; q is otherwise
// a phase's request. Sets eval/reward, the mean reward, not normalised or clipped, and
// eval/<name> for every metric <name> of the rewards; logs the mean. Errors: those of rlhf__rollout
// and rlhf__score. [step]
rlhf_status rlhf__held_out_prompts_measure(const struct rlhf__feed_env *,
                                           struct rlhf__rollout_request q,
                                           const struct rlhf__held_out *, struct rlhf__error *err);

#endif
