// worker_scoring.h: scores a batch with an instance's workers, each of which gets a part of the
// batch.
#ifndef RLHF_LIB_RUNTIME_WORKER_WORKER_SCORING_H
#define RLHF_LIB_RUNTIME_WORKER_WORKER_SCORING_H

#include <rlhf/reward.h>

// The score() of a stand-in's ops. One worker scores all rows of a group. [as rlhf_reward_ops says]
rlhf_status rlhf__stand_in_score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out);

#endif
