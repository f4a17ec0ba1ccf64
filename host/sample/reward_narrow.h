// reward_narrow.h: a call of a reward whose process it ended, made again in parts, so that only the
// rows that end it have failed and the others are scored.
#ifndef RLHF_HOST_REWARD_NARROW_H
#define RLHF_HOST_REWARD_NARROW_H

#include "sample/reward_call.h"

// 1 where rewards.on_failure keeps what is said of the other rows (zero, drop). [any]
int rlhf__reward_narrows(const struct rlhf__mixing_config *rules);

// As rlhf__reward_call, with q->narrows: where the call ended the reward's process and the reward
// keeps no state, the row at which that was is asked about alone (with its group, unless
// RLHF_REWARD_ROW_ALONE), those before and behind it without it; where that row was not it, halves
// are, and so on. It ends when the process was ended sixteen times, or after four times
// rewards.timeout_s: rows that nobody knows of by then have failed. *why is what the first call
// said. [step]
rlhf_status rlhf__reward_narrow(const struct rlhf__reward_call *q,
                                struct rlhf__reward_metrics *metrics,
                                const struct rlhf__reward_rows *r, struct rlhf__reward_answer *a,
                                struct rlhf__error *why, int32_t *whole, struct rlhf__error *err);

#endif
