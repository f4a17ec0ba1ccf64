// reports.h: the metrics that plugins report on one rank, as bytes for the other ranks.
#ifndef RLHF_HOST_TEAM_REPORTS_H
#define RLHF_HOST_TEAM_REPORTS_H

#include "base/buf.h"
#include "plugin/services.h"
#include "team/parts.h"

// Append a report to a buffer. `ctx` is a struct rlhf__buf; the function is a rlhf__metric_fn.
// [any]
void rlhf__reports_put(void *ctx, const char *name, double value, double weight, int32_t combine);

// Read the reports in the next `bytes` bytes of a part, and pass each of them to `metric`, in
// order. If `metric` is NULL, the reports are read but not passed on. Errors: RLHF_E_INTERNAL.
// [any]
rlhf_status rlhf__reports_take(struct rlhf__part *p, uint64_t bytes, rlhf__metric_fn *metric,
                               void *ctx, struct rlhf__error *err);

#endif
