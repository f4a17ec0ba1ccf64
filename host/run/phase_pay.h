// phase_pay.h: what responses of a phase are paid: by the rewards, in rounds where groups without
// spread are replaced, and what the judge says of them.
#ifndef RLHF_HOST_PHASE_PAY_H
#define RLHF_HOST_PHASE_PAY_H

#include "feed/feed.h"
#include "learn/phase.h"
#include "report/report.h"

// Pay the responses in x, which are p's or further ones of its phase; rows that rewards.nan_policy
// or rewards.on_failure drops are removed. more 1: x is further ones, and all of them may be
// dropped. [step]
rlhf_status rlhf__phase_pay(const struct rlhf__phase *p, struct rlhf__experience *x, int more,
                            struct rlhf__error *err);

// Replace groups without spread by responses to further prompts (Yu et al. 2025, dynamic sampling).
// p->x is the first round, drawn and paid. As long as some of its groups have no spread and the
// plan's fresh_rounds allow: draw as many further groups as are missing, pay them, and append those
// with spread in place of groups without. Groups that have no spread after the last round stay, so
// that the batch keeps its size. Sets sampling/fresh_rounds, prompts, flat_ratio and flat_left;
// other metrics are those of the first round. Adds to the times of rollout and reward. [step]
rlhf_status rlhf__fresh_groups(struct rlhf__phase *p, struct rlhf__error *err);

// Let the judge of the cast, if there is one, score the responses of p->x into p->x.judged. It pays
// nothing. Sets judge/mean and judge/std. A score that is not finite is RLHF_E_NUMERIC with
// rewards.nan_policy stop, else it is left out of the metrics, as is a row that the judge could not
// score where rewards.on_failure lets the run continue. [step]
rlhf_status rlhf__judge(struct rlhf__phase *p, struct rlhf__error *err);

#endif
