// rollout_share.h: divides sampling among the ranks of a team.
#ifndef RLHF_HOST_ROLLOUT_SHARE_H
#define RLHF_HOST_ROLLOUT_SHARE_H

#include "sample/rollout.h"
#include "team/parts.h"

// Like rlhf__rollout, but each rank samples the responses of some groups, and receives those of the
// other groups. The responses are the same for any number of ranks, because their random numbers
// depend only on the row. q->overlap must be NULL if the team has several ranks. team may be NULL.
// Errors: those of rlhf__rollout, of any rank; those of rlhf__team_agree. [step]
rlhf_status rlhf__rollout_share(struct rlhf__team *team, const struct rlhf__rollout_request *q,
                                const int64_t *row, struct rlhf__rows *e, int64_t *tokens,
                                struct rlhf__error *err);

// Set first[ranks + 1]: rank r samples the rows [first[r], first[r + 1]) of n, which are whole
// groups. [any]
void rlhf__rollout_deal(const struct rlhf__team *team, uint32_t n, uint32_t group, uint32_t *first);

// Append the responses, or episodes, of e to a message. `tokens` is the number of tokens that the
// model computed for them. [step]
void rlhf__rollout_pack(const struct rlhf__rows *e, int64_t tokens, struct rlhf__buf *out);

// Put together the rows of a request that several ranks sampled. Rank r has sampled the rows
// [first[r], first[r + 1]), which are read from its message part[r]. A rank without rows needs no
// message. Messages of episodes contain the prompts, because environments add to them. *e must be
// zeroed. *tokens grows by the tokens that the models of all ranks computed. Errors:
// RLHF_E_INTERNAL, RLHF_E_NOMEM. [step]
rlhf_status rlhf__rollout_unpack(const struct rlhf__rollout_request *q, const int64_t *row,
                                 int32_t ranks, const uint32_t *first, struct rlhf__part *part,
                                 struct rlhf__rows *e, int64_t *tokens, struct rlhf__error *err);

#endif
