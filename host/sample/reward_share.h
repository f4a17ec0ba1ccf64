// reward_share.h: calls a reward for the rows of a batch that is divided among the ranks of a team.
#ifndef RLHF_HOST_SAMPLE_REWARD_SHARE_H
#define RLHF_HOST_SAMPLE_REWARD_SHARE_H

#include "sample/reward_ask.h"

struct rlhf__team;

// Like rlhf__reward_ask, but each rank calls its instance of the reward for some of the groups, and
// receives the answers for the other groups. If a reward has state, or compares rows of the whole
// batch (RLHF_REWARD_WHOLE_BATCH), rank 0 calls it for all rows. The counts in the tally are sums
// over the ranks; the time is this rank's own. Metrics that the reward reports are combined in the
// order of ranks. `early` must be NULL if the team has several ranks. `team` may be NULL. Errors:
// those of rlhf__reward_ask on any rank; those of rlhf__team_agree. [step]
rlhf_status rlhf__reward_share(struct rlhf__team *team, const struct rlhf__reward_call *q,
                               struct rlhf__overlap_answers *early,
                               const struct rlhf__reward_rows *r, struct rlhf__reward_answer *a,
                               struct rlhf__error *err);

#endif
