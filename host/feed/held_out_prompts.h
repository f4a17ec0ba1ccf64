// held_out_prompts.h: what the policy's responses to held-out prompts (data.eval_path) are worth:
// drawn, cut and paid as those of a phase, and learned from by nobody.
//
// What it is not: held-out rows of a file; see text_feed.c and preference_feed.c.
#ifndef RLHF_HOST_HELD_OUT_PROMPTS_H
#define RLHF_HOST_HELD_OUT_PROMPTS_H

#include "feed/feed.h"
#include "sample/rollout.h"

// Open data.eval_path, its first data.eval_limit rows, with the rules of prompts.*; *out = NULL
// where nothing is held out. Needs the policy. Caller owns *out. Errors: those of
// rlhf__rollout_prompts. [main]
rlhf_status rlhf__held_out_prompts_open(const struct rlhf__feed_env *, struct rlhf__prompts **out,
                                        struct rlhf__error *err);

// One response to each of q->prompts, the held-out ones, with the same draws every time; q is a
// phase's request otherwise. Sets eval/reward, the mean of what the rows are paid, neither
// normalised nor clipped, and eval/<name> for every metric <name> of the rewards, and says the mean
// in the log. Errors: those of rlhf__rollout and rlhf__score. [step]
rlhf_status rlhf__held_out_prompts_measure(const struct rlhf__feed_env *,
                                           struct rlhf__rollout_request q,
                                           const struct rlhf__held_out *, struct rlhf__error *err);

#endif
