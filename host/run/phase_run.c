// phase_run.c: see phase_run.h.
#include "run/phase_run.h"

#include "base/clock.h"
#include "base/signals.h"
#include "feed/recorded_rows.h"
#include "learn/optim.h"
#include "learn/plan.h"
#include "report/phase_report.h"
#include "run/ahead_phase.h"
#include "run/phase_passes.h"
#include "run/phase_score.h"
#include "run/phase_update.h"

// Give the signal handler an estimate of the phase's remaining time, based on earlier phases.
static void tell_signals(const struct rlhf__phase *p) {
    const struct rlhf__report *r = p->report;
    const double done = (double)(p->count->phase - p->count->first_phase);
    rlhf__signals_phase(p->count->phase + 1, done > 0 ? (r->times.start - r->began) / done : -1,
                        p->learner->abandons != NULL);
}

// Take the phase's rows and scores from a record.
static rlhf_status collect_recorded(struct rlhf__phase *p, struct rlhf__error *err) {
    p->x.phase = p->count->phase;
    // With rollout.ahead, some rows may have been sampled with the weights of the previous phase.
    // The record does not say which rows, so the version of their weights is unknown (-1).
    const int64_t version =
        p->config->rollout.ahead && p->count->phase > 0 ? -1 : p->learner->optim->count.step;
    const int supports = rlhf__prompt_feed_keeps_support(p->feed);
    RLHF_TRY(rlhf__recorded_take(p->recorded, p->feed, supports, version, &p->x, err));
    RLHF_TRY(rlhf__phase_score(p, &p->x, 0, err)); // does not score; only makes the texts
    RLHF_TRY(rlhf__completions_measure(p, err));
    return rlhf__phase_pass_reference(p, err);
}

// Returns 1 if the next batch can begin before the rewards are called, because the phase already
// has all its prompts. Returns 0 if the scores decide about further prompts (dynamic sampling, or
// an algorithm that chooses prompts), or if there is a record.
static int has_all_prompts(const struct rlhf__phase *p) {
    return !p->recorded && p->cast->plan.resample_rounds == 0 && !p->feed->choice;
}

// Set the metric "epoch" from this phase's prompts, before the next batch moves the cursor.
static rlhf_status begin_next(const struct rlhf__phase *p, struct rlhf__error *err) {
    rlhf__metrics_set(p->report->metrics, "epoch", rlhf__order_epoch(p->feed->ops->order(p->feed)));
    return rlhf__ahead_phase_begin(p, err);
}

static rlhf_status collect(struct rlhf__phase *p, struct rlhf__error *err) {
    if (p->recorded && !p->trusts && rlhf__cast_samples(p->cast)) return collect_recorded(p, err);
    struct rlhf__phase_times *times = &p->report->times;
    double from = rlhf__seconds();
    p->x.phase = p->count->phase;
    rlhf_status st = p->feed->ops->next(p->feed, (uint64_t)p->count->sequences,
                                        p->learner->optim->count.step, &p->x, err);
    times->rollout = p->x.seconds > 0 ? p->x.seconds : rlhf__seconds() - from;
    if (st == RLHF_OK && has_all_prompts(p)) st = begin_next(p, err);
    if (st == RLHF_OK) st = rlhf__phase_refer(p, &p->x, err);
    double referred = rlhf__seconds();
    if (st == RLHF_OK) st = rlhf__phase_score(p, &p->x, 0, err);
    if (st == RLHF_OK && (p->trusts & RLHF__TRUST_SCORES))
        st = rlhf__recorded_score(p->recorded, p->feed, &p->x, err);
    if (st == RLHF_OK && rlhf__cast_samples(p->cast)) st = rlhf__completions_measure(p, err);
    times->reward = rlhf__seconds() - referred;
    if (st == RLHF_OK) st = rlhf__fresh_groups(p, err);
    double complete = rlhf__seconds();
    if (st == RLHF_OK) st = rlhf__phase_pass_reference(p, err);
    times->reference += rlhf__seconds() - complete;
    return st;
}

// Set the metrics of the rows that are known before training.
static rlhf_status describe(struct rlhf__phase *p, struct rlhf__error *err) {
    const struct rlhf__rows *e = &p->x.rows;
    struct rlhf__metrics *m = p->report->metrics;
    if (!rlhf__cast_samples(p->cast)) {
        rlhf__metrics_set(m, "val/sequence_lengths", (double)e->total / (double)e->n);
        return rlhf__phase_samples(p, p->feed->prompts, err);
    }
    RLHF_TRY(rlhf__phase_samples(p, p->feed->prompts, err));
    return rlhf__judge(p, err);
}

// Evaluate held-out rows every data.eval_every phases and after the last phase.
static rlhf_status evaluate(struct rlhf__phase *p, struct rlhf__error *err) {
    int64_t every = p->config->data.eval_every, done = p->count->phase + 1;
    int due = (every > 0 && done % every == 0) || done == p->count->phases;
    // In this case, evaluation would call the rewards.
    if (p->recorded && rlhf__cast_samples(p->cast)) return RLHF_OK;
    const struct rlhf__held_out h = {.phase = done,
                                     .due = due,
                                     .metrics = p->report->metrics,
                                     .samples = p->report->samples,
                                     .tallies = &p->report->rewards};
    return p->feed->ops->evaluate ? p->feed->ops->evaluate(p->feed, &h, err) : RLHF_OK;
}

rlhf_status rlhf__phase_run(struct rlhf__phase *p, struct rlhf__error *err) {
    struct rlhf__phase_times *times = &p->report->times;
    tell_signals(p);
    RLHF_TRY(collect(p, err));
    if (rlhf__cast_samples(p->cast)) rlhf__phase_first_rewards(p);
    if (!has_all_prompts(p)) RLHF_TRY(begin_next(p, err));
    rlhf__ahead_phase_rows(p);
    double from = rlhf__seconds();
    RLHF_TRY(rlhf__phase_pass_policy(p, err));
    rlhf__phase_trim(p);
    double passed = rlhf__seconds();
    RLHF_TRY(describe(p, err));
    double described = rlhf__seconds();
    rlhf__progress_note(p->report->progress, "update");
    RLHF_TRY(rlhf__phase_update(p, err));
    times->reward += described - passed;
    times->update = passed - from + rlhf__seconds() - described;
    return evaluate(p, err);
}
