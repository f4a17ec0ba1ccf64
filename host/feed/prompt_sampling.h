// prompt_sampling.h: builds the requests with which a run samples responses to its prompts, and
// keeps the KV cache for these requests.
#ifndef RLHF_HOST_FEED_PROMPT_SAMPLING_H
#define RLHF_HOST_FEED_PROMPT_SAMPLING_H

#include "feed/feed.h"

// Zeroed until it is initialized.
struct rlhf__prompt_sampling {
    const struct rlhf__feed_env *env;
    const struct rlhf__prompts *prompts;
    rlhf_gen *cache; // NULL: each rollout opens a cache
    uint32_t slots, prefix_slots;
    uint32_t group;       // rows per prompt
    int32_t share;        // 1: rows of a group share its prompt in the KV cache
    int32_t keep_support; // 1: log-probs are over the tokens that top-k, top-p or min-p kept
};

// Choose the number of slots, and the tokens over which log-probs are normalized. The cast must be
// as for rlhf__prompt_feed_open. Borrows env and prompts. Errors: RLHF_E_UNSUPPORTED (the backend
// lacks a sampling rule, or a model cannot normalize over these tokens). [main]
rlhf_status rlhf__prompt_sampling_init(struct rlhf__prompt_sampling *,
                                       const struct rlhf__feed_env *, const struct rlhf__prompts *,
                                       struct rlhf__error *err);
void rlhf__prompt_sampling_finish(struct rlhf__prompt_sampling *); // [main]

// If the backend records calls, open a cache for the whole run. `longest` is the number of tokens
// that each slot can hold. With other backends, each rollout opens and closes its own cache, so
// that the cache takes no memory during the update. [main]
rlhf_status rlhf__prompt_sampling_ready(struct rlhf__prompt_sampling *, uint32_t longest,
                                        struct rlhf__error *err);

// Returns the members of a request that are the same for all sampling in a run. [any]
struct rlhf__rollout_request rlhf__prompt_sampling_request(const struct rlhf__prompt_sampling *);

// Returns the request of a phase, whose rows come in groups with the same prompt. [any]
struct rlhf__rollout_request rlhf__prompt_sampling_batch(const struct rlhf__prompt_sampling *);

// With rewards.overlap, create x->overlap. While the n rows of *x are being sampled, x->overlap
// calls the rewards that allow this. With several processes, does nothing. [step]
rlhf_status rlhf__prompt_sampling_overlap(const struct rlhf__prompt_sampling *, uint32_t n,
                                          struct rlhf__experience *x, struct rlhf__error *err);

// On the memory plan, let the model fill every slot of a cache with the prompts of *x, and decode
// one more token. `*cache` stays open. The caller closes it, even after an error. [step]
rlhf_status rlhf__prompt_sampling_estimate(const struct rlhf__prompt_sampling *,
                                           const struct rlhf__model *, uint32_t longest,
                                           const struct rlhf__experience *x, rlhf_gen **cache,
                                           struct rlhf__error *err);

// The same for the held-out prompts, with one response for each. Closes the cache. [step]
rlhf_status rlhf__prompt_sampling_estimate_held_out(const struct rlhf__prompt_sampling *,
                                                    const struct rlhf__prompts *held_out,
                                                    struct rlhf__held_out_estimate *out,
                                                    struct rlhf__error *err);

#endif
