// episode_share.h: divides the episodes of a batch among the ranks of a team.
#ifndef RLHF_HOST_EPISODE_EPISODE_SHARE_H
#define RLHF_HOST_EPISODE_EPISODE_SHARE_H

#include "episode/playing.h"
#include "team/team.h"

// Like rlhf__playing_sample, but each rank plays the episodes of some groups with its own instance
// of the environment, and receives the rows of the other groups. *counts receives the counts of all
// ranks together. Rows, counts and metrics do not depend on the number of ranks, because an
// episode's number and seed depend on its row, and the environment's reports are passed on in the
// order of the rows. `team` may be NULL. Errors: those of rlhf__playing_sample on any rank; those
// of rlhf__team_agree. [step]
rlhf_status rlhf__playing_share(struct rlhf__team *team, const struct rlhf__episodes_request *of,
                                const struct rlhf__rollout_request *q, struct rlhf__rows *e,
                                int64_t *tokens, struct rlhf__episode_counts *counts,
                                struct rlhf__error *err);

#endif
