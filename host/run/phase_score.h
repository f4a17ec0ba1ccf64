// phase_score.h: scores the rows of a phase. Calls the rewards, replaces groups without spread by
// further groups, and calls the judge.
#ifndef RLHF_HOST_RUN_PHASE_SCORE_H
#define RLHF_HOST_RUN_PHASE_SCORE_H

#include "feed/feed.h"
#include "learn/phase.h"
#include "report/report.h"

// Score the responses in x and remove the rows that rewards.nan_policy or rewards.on_failure drops.
// If `more` is 1, x holds additional responses of the phase. In that case all rows may be dropped,
// and the phase's metrics do not change. [step]
rlhf_status rlhf__phase_score(const struct rlhf__phase *p, struct rlhf__experience *x, int more,
                              struct rlhf__error *err);

// Dynamic sampling (Yu et al. 2025): groups whose rewards have no spread are replaced by groups of
// responses to further prompts. p->x is the first round, which has been sampled and scored. Further
// rounds run while groups without spread remain and the plan's resample_rounds allows it. Each
// round samples and scores one new group for each group to replace. Only new groups with spread are
// used.
//
// Groups without spread that remain after the last round are kept, so the batch keeps its size.
// Sets sampling/{fresh_rounds,prompts,flat_ratio,flat_left}; other metrics are those of the first
// round. The time of the further rounds is added to the times of rollout and reward. [step]
rlhf_status rlhf__fresh_groups(struct rlhf__phase *p, struct rlhf__error *err);

// If the cast has a judge, let it score the responses of p->x. The judge's scores are not rewards;
// they are written to p->x.judged. Sets judge/mean and judge/std. If a score is not finite and
// rewards.nan_policy is `stop`, returns RLHF_E_NUMERIC. With another nan_policy, the metrics leave
// out such scores. They also leave out rows that the judge could not score, if rewards.on_failure
// lets the run continue. [step]
rlhf_status rlhf__judge(struct rlhf__phase *p, struct rlhf__error *err);

#endif
