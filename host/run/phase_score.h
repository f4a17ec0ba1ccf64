// phase_score.h: scores the responses of a phase: by the rewards, with rounds that replace groups
// without spread, and by the judge.
#ifndef RLHF_HOST_PHASE_SCORE_H
#define RLHF_HOST_PHASE_SCORE_H

#include "feed/feed.h"
#include "learn/phase.h"
#include "report/report.h"

// Score the responses in x, which are those of p or further ones of its phase. Rows that
// rewards.nan_policy or rewards.on_failure drops are removed. more = 1: x holds further ones, all
// of which may be dropped. [step]
rlhf_status rlhf__phase_score(const struct rlhf__phase *p, struct rlhf__experience *x, int more,
                              struct rlhf__error *err);

// Replace groups without spread by responses to further prompts (Yu et al. 2025, dynamic sampling).
// p->x is the first round, sampled and scored. While some of its groups have no spread and the
// plan's resample_rounds allow it: sample as many further groups as are missing, score them, and
// put those with spread in place of groups without. After the last round the remaining groups
// without spread are kept, so that the batch keeps its size. Sets sampling/fresh_rounds, prompts,
// flat_ratio and flat_left; other metrics are those of the first round. Adds to the times of
// rollout and reward. [step]
rlhf_status rlhf__fresh_groups(struct rlhf__phase *p, struct rlhf__error *err);

// Let the judge of the cast, if there is one, score the responses of p->x into p->x.judged. Its
// scores do not count as rewards. Sets judge/mean and judge/std. A score that is not finite is
// RLHF_E_NUMERIC with rewards.nan_policy stop; otherwise the metrics omit it. They also omit a row
// that the judge could not score if rewards.on_failure lets the run continue. [step]
rlhf_status rlhf__judge(struct rlhf__phase *p, struct rlhf__error *err);

#endif
