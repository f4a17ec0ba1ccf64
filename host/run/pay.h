// pay.h: what the rewards of a run pay rows of a phase. What responses are made of: feed.h.
#ifndef RLHF_HOST_RUN_PAY_H
#define RLHF_HOST_RUN_PAY_H

#include "feed/feed.h"
#include "learn/phase.h"
#include "report/report.h"

// Pay the responses in x, which are p's or some more of its phase; those that rewards.nan_policy or
// rewards.on_failure drops leave. more 1: x is some more, of which none need stay. [step]
rlhf_status rlhf__phase_pay(const struct rlhf__phase *p, struct rlhf__experience *x, int more,
                            struct rlhf__error *err);

#endif
