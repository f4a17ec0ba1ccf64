// phase_run.h: one phase of a run: its rows, their values before training, the updates, and
// held-out rows.
#ifndef RLHF_HOST_PHASE_RUN_H
#define RLHF_HOST_PHASE_RUN_H

#include "feed/feed.h"
#include "learn/phase.h"
#include "report/report.h"

// Fill p->x and learn from it. Everything that can fail for external reasons (a reward, a judge, a
// file) happens before the first step, so that the weights are still those of the phase boundary.
// p->x.drawn is correct after failures too. [step]
rlhf_status rlhf__phase_run(struct rlhf__phase *p, struct rlhf__error *err);

// Part of it: passes over the rows in p->x without gradients: reference, values, log-probs. [step]
rlhf_status rlhf__phase_passes(struct rlhf__phase *p, struct rlhf__error *err);

// If a reward needs them: the reference's values of the rows in x, which are not scored yet. Adds
// to the time of the reference. [step]
rlhf_status rlhf__phase_refer(const struct rlhf__phase *p, struct rlhf__experience *x,
                              struct rlhf__error *err);

// Part of the phase is done with policy and critic: free the buffers that they used for it, so that
// the memory of a phase's parts does not add up. With rows of a file nothing is freed, because a
// phase is one step. [step]
void rlhf__phase_trim(const struct rlhf__phase *p);

// ---- scores ----

// Score the responses in x: those of the phase, or further ones that it sampled. Rows dropped by
// rewards.nan_policy or rewards.on_failure are removed. more = 1: x holds further responses; all of
// them may be dropped, and the phase's metrics stay those of the first ones. [step]
rlhf_status rlhf__phase_score(const struct rlhf__phase *p, struct rlhf__experience *x, int more,
                              struct rlhf__error *err);

// Dynamic sampling (Yu et al. 2025): replace groups without spread by responses to further prompts.
// p->x is the first round, sampled and scored. While some of its groups lack spread and
// resample_rounds of the plan allows it, a round samples as many further groups as are missing,
// scores them, and puts those with spread in place of groups without.
//
// After the last round the remaining groups without spread are kept, so the batch keeps its size.
// Sets sampling/fresh_rounds, prompts, flat_ratio and flat_left; other metrics are those of the
// first round. Adds to the times of rollout and reward. [step]
rlhf_status rlhf__fresh_groups(struct rlhf__phase *p, struct rlhf__error *err);

// Let the judge of the cast, if there is one, score the responses of p->x into p->x.judged. Its
// scores do not count as rewards. Sets judge/mean and judge/std. A score that is not finite is
// RLHF_E_NUMERIC with rewards.nan_policy stop; otherwise the metrics omit it. They also omit a row
// that the judge could not score if rewards.on_failure lets the run continue. [step]
rlhf_status rlhf__judge(struct rlhf__phase *p, struct rlhf__error *err);

#endif
