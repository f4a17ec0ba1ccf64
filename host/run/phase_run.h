// phase_run.h: one phase of a run: it gets rows, computes their values, makes the updates, and
// evaluates held-out rows.
#ifndef RLHF_HOST_PHASE_RUN_H
#define RLHF_HOST_PHASE_RUN_H

#include "feed/feed.h"
#include "learn/phase.h"
#include "report/report.h"

// Fill p->x and train on it. Everything that can fail for external reasons (a reward, a judge, a
// file) happens before the first step, while the weights are still those of the phase boundary.
// p->x.drawn is correct even after a failure. [step]
rlhf_status rlhf__phase_run(struct rlhf__phase *p, struct rlhf__error *err);

// One part of a phase: run the passes without gradients over the rows in p->x: reference, values,
// log-probs. [step]
rlhf_status rlhf__phase_passes(struct rlhf__phase *p, struct rlhf__error *err);

// If a reward needs the reference's log-probs, run the reference on the rows in x, which have not
// been scored. The time counts as the reference's. [step]
rlhf_status rlhf__phase_refer(const struct rlhf__phase *p, struct rlhf__experience *x,
                              struct rlhf__error *err);

// Call when a part of the phase no longer uses policy and critic. Frees their buffers, so that the
// memory of a phase's parts does not add up. Does nothing for rows of a file, because such a phase
// is a single step. [step]
void rlhf__phase_trim(const struct rlhf__phase *p);

// ---- scores ----

// Score the responses in x and remove rows that rewards.nan_policy or rewards.on_failure drops.
// With more = 1, x holds additional responses of the phase: all of them may be dropped, and the
// phase's metrics do not change. [step]
rlhf_status rlhf__phase_score(const struct rlhf__phase *p, struct rlhf__experience *x, int more,
                              struct rlhf__error *err);

// Dynamic sampling (Yu et al. 2025): groups whose rewards have no spread are replaced by groups of
// responses to further prompts. p->x is the first round, sampled and scored. Further rounds run
// while groups without spread remain and the plan's resample_rounds allows it. Each round samples
// and scores as many groups as are to be replaced. Its groups with spread replace groups without
// spread.
//
// Groups without spread that remain after the last round are kept, so the batch keeps its size.
// Sets sampling/fresh_rounds, prompts, flat_ratio and flat_left; other metrics are those of the
// first round. The time counts as rollout and reward. [step]
rlhf_status rlhf__fresh_groups(struct rlhf__phase *p, struct rlhf__error *err);

// If the cast has a judge, let it score the responses of p->x into p->x.judged. Its scores are not
// rewards. Sets judge/mean and judge/std. A score that is not finite is RLHF_E_NUMERIC if
// rewards.nan_policy is stop; otherwise the metrics leave it out. They also leave out rows that the
// judge could not score, if rewards.on_failure lets the run continue. [step]
rlhf_status rlhf__judge(struct rlhf__phase *p, struct rlhf__error *err);

#endif
