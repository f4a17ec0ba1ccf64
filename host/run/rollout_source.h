// rollout_source.h: the prompts of a run and the responses drawn for them, a batch a phase.
#ifndef RLHF_HOST_ROLLOUT_SOURCE_H
#define RLHF_HOST_ROLLOUT_SOURCE_H

#include "batch/episodes.h"
#include "data/order.h"
#include "data/prompts.h"

struct rlhf__run;
struct rlhf__model;
struct rlhf__rollout_source;

// Read the prompts, check that they fit the context with sampling.max_new_tokens, and open the
// generation session. [main]
rlhf_status rlhf__rollout_source_create(struct rlhf__run *t, struct rlhf__rollout_source **out,
                                        struct rlhf__error *err);
// Longest prompt + sampling.max_new_tokens, in tokens. [any]
int32_t rlhf__rollout_source_longest(const struct rlhf__rollout_source *);
// Before the policy is closed. NULL allowed. [main]
void rlhf__rollout_source_destroy(struct rlhf__rollout_source *);

// The cursor, for the checkpoint. [main]
struct rlhf__order *rlhf__rollout_source_order(struct rlhf__rollout_source *);

// Responses to the next prompts, batch.size rows in groups of plan.group_size: ids, lengths,
// finished (a stop token was drawn) and old log-probs. Sequence numbers go on from t->episodes.
// *e must be zeroed or finished. [main]
rlhf_status rlhf__rollout_source_next(struct rlhf__rollout_source *, struct rlhf__run *t,
                                      struct rlhf__episodes *e, struct rlhf__error *err);

// Responses of `model` (the policy or one of its vocabulary) to n prompts, taken in the order of
// the file from the start as often as need be; draws of the named stream from sequence number
// `first` on. The cursor stays. *e must be zeroed or finished. [main]
rlhf_status rlhf__rollout_source_sample(const struct rlhf__rollout_source *,
                                        const struct rlhf__run *t, const struct rlhf__model *model,
                                        uint32_t n, const char *stream, uint64_t first,
                                        struct rlhf__episodes *e, struct rlhf__error *err);

// Before the first update the policy that samples, the policy that is trained and the reference are
// the same function: draw a few short responses and compare log-probs of decoding, training forward
// and reference (when it is a copy). Any difference on a CPU is an error. [main]
rlhf_status rlhf__rollout_source_check(struct rlhf__rollout_source *, struct rlhf__run *t,
                                       struct rlhf__error *err);

// The prompt that row i of a batch came from. Borrowed. [any]
struct rlhf__prompt rlhf__rollout_source_prompt(const struct rlhf__rollout_source *,
                                                const struct rlhf__episodes *e, uint32_t i);

#endif
