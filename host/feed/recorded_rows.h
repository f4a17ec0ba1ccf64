// recorded_rows.h: builds the rows of a phase from the phase's record (recorded.h): responses or
// episodes, with the scores that they had before the first update. The record is not trusted.
#ifndef RLHF_HOST_FEED_RECORDED_ROWS_H
#define RLHF_HOST_FEED_RECORDED_ROWS_H

#include "feed/feed.h"
#include "feed/recorded.h"

// Put the phase's rows into the zeroed *x. The prompts come from the feed. `supports` is 1 if the
// run's log-probs are normalized over the tokens that sampling kept. In that case the function
// fails, because a record does not contain these tokens. `version` is the number of optimizer steps
// that the policy had taken when it sampled the rows, or -1 if it is not known. Errors:
// RLHF_E_INVALID (a value of a row is missing or does not fit this run), RLHF_E_UNSUPPORTED (the
// file lacks something that this run needs). [step]
rlhf_status rlhf__recorded_take(const struct rlhf__recorded *, const struct rlhf__feed *,
                                int supports, int64_t version, struct rlhf__experience *x,
                                struct rlhf__error *err);

// Copy the recorded scores and token rewards to rows that were sampled again. Drops rows that the
// record lacks. The recorded run dropped these rows because of their scores. Errors: RLHF_E_INVALID
// (a row without score), RLHF_E_NOMEM. [step]
rlhf_status rlhf__recorded_score(const struct rlhf__recorded *, const struct rlhf__feed *,
                                 struct rlhf__experience *x, struct rlhf__error *err);

// Put the phase's episodes into the zeroed *e: the tokens, the author of each token, the
// environment's rewards and verdicts, and the way in which each episode ended. All other numbers
// are 0. Errors: RLHF_E_INVALID (a value of a row is missing or does not fit this run),
// RLHF_E_NOMEM. [step]
rlhf_status rlhf__recorded_episodes(const struct rlhf__recorded *, const struct rlhf__prompts *,
                                    int32_t n_vocab, struct rlhf__rows *e, struct rlhf__error *err);

#endif
