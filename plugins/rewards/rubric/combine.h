// combine.h: combines the scores by all criteria into rewards. The reward is the weighted mean over
// the criteria that are not lost, or 0 if a gate is closed.
#ifndef RLHF_REWARDS_RUBRIC_COMBINE_H
#define RLHF_REWARDS_RUBRIC_COMBINE_H

#include "rubric/asks.h"

// Log which criteria are lost, and why. [step]
void rlhf__combine_say_lost(const struct rlhf__asks *);

// Report the metrics criterion_NAME, lost_NAME and asked. [step]
void rlhf__combine_report(const struct rlhf__asks *);

// Record the answers. Errors: those of rlhf__record_add. [step]
rlhf_status rlhf__combine_record(struct rlhf__record *, const struct rlhf__asks *);

// Write the rewards. A row fails if all its criteria are lost, or if one with a gate is lost and no
// other gate is closed. Errors: RLHF_E_IO if all rows fail. [step]
rlhf_status rlhf__combine(const struct rlhf__asks *, const rlhf_reward_out *out);

#endif
