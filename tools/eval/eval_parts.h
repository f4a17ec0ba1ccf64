// eval_parts.h: the parts of rewards (verdict/reward_parts.h) in the table of `eval`.
#ifndef RLHF_TOOLS_EVAL_EVAL_PARTS_H
#define RLHF_TOOLS_EVAL_EVAL_PARTS_H

#include "eval/eval_table.h"
#include "report/metrics.h"

// Open a place in memory for the metrics that rewards report. Close it with rlhf__metrics_close.
// [main]
rlhf_status rlhf__eval_parts_open(struct rlhf__log *, struct rlhf__metrics **out,
                                  struct rlhf__error *err);

// Append a row for each part that the rewards of the first model reported: the mean for each of
// the models. Rewards report only means, so there are no standard errors. Call this after the rows
// of the rewards. [main]
rlhf_status rlhf__eval_parts_add(struct rlhf__table *, struct rlhf__metrics *const reported[2],
                                 struct rlhf__error *err);

#endif
