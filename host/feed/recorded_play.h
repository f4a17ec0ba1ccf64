// recorded_play.h: samples episodes again, with the environment's answers from a record
// (recorded.h).
#ifndef RLHF_HOST_FEED_RECORDED_PLAY_H
#define RLHF_HOST_FEED_RECORDED_PLAY_H

#include "feed/recorded.h"
#include "sample/experience.h"
#include "sample/rollout.h"

// Sample the rows of a request again. Row i of the request is row i of the record's current phase.
// The policy samples its turns, but the prompts, the environment's texts and rewards, and the ends
// of episodes come from the record. If a turn differs from the recorded one, the episode ends with
// that turn. Errors: those of rlhf__rollout; RLHF_E_INVALID (the record lacks rows, or a value of a
// row is missing or does not fit this run). [step]
rlhf_status rlhf__recorded_play(const struct rlhf__recorded *, const struct rlhf__rollout_request *,
                                const int64_t *row, struct rlhf__experience *x,
                                struct rlhf__error *err);

#endif
