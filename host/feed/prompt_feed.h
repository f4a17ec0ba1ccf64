// prompt_feed.h: a feed of responses: samples the policy's responses to the run's prompts, a batch
// per phase.
#ifndef RLHF_HOST_PROMPT_FEED_H
#define RLHF_HOST_PROMPT_FEED_H

#include "feed/feed.h"

// Read the prompts, check that they fit the context with sampling.max_new_tokens, and open the KV
// cache. Needs plan, logp_dist, rules, policy and reference. A batch is batch.size rows in groups
// of plan.group_size. ops->check samples a few short responses and compares the log-probs of
// decoding, of the training forward pass and, with reference_is_start (the reference is the policy
// as it starts), of the reference. Before the first update all are the same function; any
// difference on a backend with exact rows is RLHF_E_INTERNAL. The caller owns *out. Errors:
// RLHF_E_INVALID, and those of rlhf__rollout_prompts. [main]
rlhf_status rlhf__prompt_feed_open(const struct rlhf__feed_env *, int reference_is_start,
                                   struct rlhf__feed **out, struct rlhf__error *err);

// Longest prompt + sampling.max_new_tokens, in tokens. [any]
int32_t rlhf__prompt_feed_longest(const struct rlhf__feed *);

// Responses of `model` (the policy or one with its vocabulary) to n prompts, taken from the start
// of the file and repeated as needed. Random numbers come from the named stream, from sequence
// number `first` on. The cursor does not move. *e must be zeroed or finished. [step]
rlhf_status rlhf__prompt_feed_sample(const struct rlhf__feed *, const struct rlhf__model *model,
                                     uint32_t n, const char *stream, uint64_t first,
                                     struct rlhf__rows *e, struct rlhf__error *err);

#endif
