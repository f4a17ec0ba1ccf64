// reward_view.h: the part of a row of several turns that a reward sees. A reward with
// RLHF_REWARD_TURNS sees the whole row, the conversation, and how the episode ended. For any other
// reward, the last turn is the response and everything before it is the prompt.
#ifndef RLHF_HOST_SAMPLE_REWARD_VIEW_H
#define RLHF_HOST_SAMPLE_REWARD_VIEW_H

#include "sample/reward_rows.h"

// Zero-initialize; release with rlhf__reward_view_finish, even after a failure.
struct rlhf__reward_view {
    rlhf_reward_in in;
    rlhf_str *texts; // [2 n] owned
    int32_t *prompt_len;
    float *logp; // [2 offset[n]]
};

// Make the view for a reward whose flags are `flags` (enum rlhf_reward_flag). Borrows r. Errors:
// RLHF_E_NOMEM. [any]
rlhf_status rlhf__reward_view_init(struct rlhf__reward_view *, const struct rlhf__reward_rows *r,
                                   uint32_t flags, int64_t phase, struct rlhf__error *err);
void rlhf__reward_view_finish(struct rlhf__reward_view *); // accepts a zeroed struct [any]

// Set token rewards to 0 for tokens that the reward does not see as a response: tokens that the
// policy did not write and, if the reward sees only the last turn, all earlier tokens. Does nothing
// for rows of one turn. [any]
void rlhf__reward_view_keep(const struct rlhf__reward_view *, const struct rlhf__reward_rows *r,
                            float *token);

#endif
