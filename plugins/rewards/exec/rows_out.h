// rows_out.h: rows as a program reads them: a JSON object a line (docs/rewards/exec.md).
#ifndef RLHF_PLUGINS_EXEC_ROWS_OUT_H
#define RLHF_PLUGINS_EXEC_ROWS_OUT_H

#include "process/bytes.h"

#include <rlhf/reward.h>

// Append row i of the batch, as that of the request with this index; ids: with its token ids.
// [step]
void rlhf__row_out(struct rlhf__bytes *, const rlhf_reward_in *, uint32_t i, uint32_t index,
                   int ids);

#endif
