// preference_feed.h: a feed of preference rows, to train a reward model (score head) or a policy.
// Held-out rows measure how often the model agrees. Completions with a label are rows with one
// response; held-out ones measure the mean reward of each label.
#ifndef RLHF_HOST_PREFERENCE_FEED_H
#define RLHF_HOST_PREFERENCE_FEED_H

#include "feed/feed.h"

struct rlhf__preferences;
struct rlhf__reward_training;

// Read and tokenise data.path and data.eval_path. Needs the plan and the policy, whose tokenizer
// decides how rows begin. The caller owns *out. Errors: those of rlhf__preferences_open. [main]
rlhf_status rlhf__preference_feed_open(const struct rlhf__feed_env *, struct rlhf__feed **out,
                                       struct rlhf__error *err);

// The rows. [any]
const struct rlhf__preferences *rlhf__preference_feed_rows(const struct rlhf__feed *);

// The run trains a reward model: measure with its gain and bias. Borrowed. [main]
void rlhf__preference_feed_trains(struct rlhf__feed *, struct rlhf__reward_training *);

#endif
