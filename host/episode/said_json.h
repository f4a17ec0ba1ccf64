// said_json.h: who said what in a row, as JSON.
#ifndef RLHF_HOST_EPISODE_SAID_JSON_H
#define RLHF_HOST_EPISODE_SAID_JSON_H

#include "base/buf.h"
#include "batch/rows.h"
#include "tokenizer/tokenizer.h"

// Append `"end": "done", "turns": [{"by": "policy", "tokens": 3, "paid": 1, "text": "..."}, ...]`
// for row i: how the episode ended, and everything after its prompt. "by" is "policy" or
// "environment"; turns of the environment lack "paid". Texts lack special tokens. [any]
void rlhf__said_json(struct rlhf__buf *, const struct rlhf__tokenizer *, const struct rlhf__rows *,
                     uint32_t i);

#endif
