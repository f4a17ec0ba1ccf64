// rollout_share.h: divides sampling among the ranks of a team.
#ifndef RLHF_HOST_SAMPLE_ROLLOUT_SHARE_H
#define RLHF_HOST_SAMPLE_ROLLOUT_SHARE_H

#include "sample/rollout.h"
#include "team/parts.h"

// Like rlhf__rollout, but each rank samples the responses of some groups, and receives the
// responses of the other groups. The responses are the same for any number of ranks, because their
// random numbers depend only on the row. q->overlap must be NULL if the team has several ranks.
// `team` may be NULL. Errors: those of rlhf__rollout on any rank; those of rlhf__team_agree. [step]
rlhf_status rlhf__rollout_share(struct rlhf__team *team, const struct rlhf__rollout_request *q,
                                const int64_t *row, struct rlhf__rows *e, int64_t *tokens,
                                struct rlhf__error *err);

// How a rank samples its part of a batch.
struct rlhf__rollout_part {
    // Samples the rows [from, to) of the batch, perhaps none, and appends two things to this rank's
    // message: the head, if messages have one, then what rlhf__rollout_pack appends.
    rlhf_status (*sample)(void *arg, uint32_t from, uint32_t to, struct rlhf__buf *out,
                          struct rlhf__error *err);
    // Reads the head of the message that carries the rows [from, to). Called for the messages of
    // all ranks in turn, including this rank's. NULL: messages have only what rlhf__rollout_pack
    // appends.
    rlhf_status (*read_head)(void *arg, uint32_t from, uint32_t to, struct rlhf__part *part,
                             struct rlhf__error *err);
    void *arg;
};

// Each rank samples some groups of a batch, and receives the rows of the other groups. The team
// must have several ranks. Errors: those of the functions in `how` on any rank; those of
// rlhf__team_agree. [step]
rlhf_status rlhf__rollout_exchange(struct rlhf__team *team, const struct rlhf__rollout_request *q,
                                   const int64_t *row, const struct rlhf__rollout_part *how,
                                   struct rlhf__rows *e, int64_t *tokens, struct rlhf__error *err);

// Append the responses, or episodes, of e to a message. `tokens` is the number of tokens that the
// model computed for them. [step]
void rlhf__rollout_pack(const struct rlhf__rows *e, int64_t tokens, struct rlhf__buf *out);

// Combine the rows that several ranks sampled for one request. Rank r has sampled the rows
// [first[r], first[r + 1]), which are read from its message part[r]. A rank without rows needs no
// message. Messages of episodes contain the prompts, because environments add text to prompts. *e
// must be zeroed. *tokens grows by the number of tokens that the models of all ranks computed.
// Errors: RLHF_E_INTERNAL, RLHF_E_NOMEM. [step]
rlhf_status rlhf__rollout_unpack(const struct rlhf__rollout_request *q, const int64_t *row,
                                 int32_t ranks, const uint32_t *first, struct rlhf__part *part,
                                 struct rlhf__rows *e, int64_t *tokens, struct rlhf__error *err);

#endif
