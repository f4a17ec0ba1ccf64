// reward_parts.h: the parts of rewards. A reward that adds up several scores reports the mean of
// each as the metric PART/mean: python.so with several functions does. The metric of the
// run is then rewards/REWARD/PART/mean.
#ifndef RLHF_FORMATS_VERDICT_REWARD_PARTS_H
#define RLHF_FORMATS_VERDICT_REWARD_PARTS_H

#include "base/buf.h"

#include <rlhf/base.h>

// Returns 1 if the metric is the mean of a part. Sets *reward and *part to the two names, which
// point into `metric`; both may be NULL. [any]
int rlhf__reward_part(const char *metric, rlhf_str *reward, rlhf_str *part);

// Append the name of a part: "PART" if the run has one reward, otherwise "REWARD/PART". `metric` is
// the metric of a part. [any]
void rlhf__reward_part_put(struct rlhf__buf *out, const char *metric, size_t n_rewards);

#endif
