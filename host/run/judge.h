// judge.h: the judge of a run, a reward plugin that looks on: it scores every response and pays
// nothing.
#ifndef RLHF_HOST_JUDGE_H
#define RLHF_HOST_JUDGE_H

#include "feed/feed.h"
#include "learn/phase.h"
#include "report/report.h"

// Let the judge of the cast, if there is one, score the responses of p->x into p->x.judged: metrics
// judge/mean and judge/std. A score that is not finite is RLHF_E_NUMERIC with rewards.nan_policy
// stop, else it is left out of the metrics, as is a row that the judge could not score where
// rewards.on_failure goes on. [step]
rlhf_status rlhf__judge(struct rlhf__phase *p, struct rlhf__error *err);

#endif
