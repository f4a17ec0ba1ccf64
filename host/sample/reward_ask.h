// reward_ask.h: one reward asked about rows, and what becomes of those it could not score
// (rewards.on_failure, rewards.retries). What it says of the others is not judged here, but for
// `retry`, which asks again for a number that is not finite where rewards.nan_policy would stop.
//
// What a reward reports with host->metric while it is asked in several calls is the mean over the
// calls, weighted by the rows that each scored.
#ifndef RLHF_HOST_REWARD_ASK_H
#define RLHF_HOST_REWARD_ASK_H

#include "sample/reward_early.h"

// Fill *a, which has room for r; early: what it has said before, NULL = nothing. With on_failure
// zero or drop a->failed says which rows could not be scored, and nothing is said of them; with
// stop and retry there are none. A row is asked about again together with its group (unless
// RLHF_REWARD_ROW_ALONE), of which the others keep what was said of them; after a call that failed
// whole the reward's state (its save) is first what it was before. Errors: RLHF_E_IO in a sentence
// that names plugin, phase and rows, what was said and what rewards.on_failure says; RLHF_E_NOMEM
// and RLHF_E_CANCELLED, which are no failures of rows. [step]
rlhf_status rlhf__reward_ask(const struct rlhf__reward_call *q, struct rlhf__reward_early *early,
                             const struct rlhf__reward_rows *r, struct rlhf__reward_answer *a,
                             struct rlhf__error *err);

#endif
