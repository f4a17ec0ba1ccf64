// rows_out.h: writes rows for a program, one JSON object per line (docs/rewards/exec.md).
#ifndef RLHF_PLUGINS_REWARDS_ROWS_OUT_H
#define RLHF_PLUGINS_REWARDS_ROWS_OUT_H

#include "process/bytes.h"

#include <rlhf/reward.h>

// Appends row i of the batch, with `index` as its "index". If `ids` is 1, also appends the token
// ids. [step]
void rlhf__row_out(struct rlhf__bytes *, const rlhf_reward_in *, uint32_t i, uint32_t index,
                   int ids);

#endif
