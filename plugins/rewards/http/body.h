// body.h: writes the request for some rows of a batch, as JSON.
//
//   rows      {"rows": [...]}; each row has the form that exec.so writes (rows_out.h)
//   openrlhf  {"query": [prompt + response], "prompts": [prompt], "labels": [label of the row]}
#ifndef RLHF_REWARDS_HTTP_BODY_H
#define RLHF_REWARDS_HTTP_BODY_H

#include "http/options.h"
#include "process/bytes.h"

#include <rlhf/reward.h>

// Append n rows, starting at row `first`. Errors: RLHF_E_NOMEM; RLHF_E_INVALID if a label is
// required and a row lacks it. [any]
rlhf_status rlhf__body_write(struct rlhf__bytes *out, const struct rlhf__http_options *,
                             const rlhf_reward_in *, uint32_t first, uint32_t n);

// Returns RLHF_OK if a row has the required label; for check_row of rlhf_reward_ops. [main]
rlhf_status rlhf__body_check_row(const rlhf_host *, const struct rlhf__http_options *,
                                 rlhf_str row);

#endif
