// phase_report.c: see phase_report.h.
#include "run/phase_report.h"

#include "base/nearest.h"
#include "run/completions.h"

#include <math.h>
#include <string.h>
#include <sys/resource.h>

static void set(struct rlhf__run *t, const char *name, double value) {
    rlhf__metrics_set(t->report.metrics, name, value);
}

static void report_optim(struct rlhf__run *t) {
    const struct rlhf__learner *l = &t->learner;
    set(t, "lr", t->config->optim.lr * rlhf__run_lr_factor(t));
    set(t, "episode", (double)t->count.sequences);
    int64_t skipped = t->optim->skipped + (t->critic_optim ? t->critic_optim->skipped : 0);
    set(t, "optim/skipped_steps", (double)skipped);
    if (l->steps > 0) {
        set(t, "optim/grad_norm", l->norm_sum / (double)l->steps);
        set(t, "optim/grad_norm_clipped", l->clipped_sum / (double)l->steps);
    }
    if (l->compared > 0) {
        set(t, "sampling/logp_difference/mean", l->difference_sum / (double)l->compared);
        set(t, "sampling/logp_difference/max", l->difference_max);
    }
}

static void report_times(struct rlhf__run *t) {
    const struct rlhf__phase_times *x = &t->report.times;
    double now = rlhf__seconds();
    set(t, "time/from_scratch", now - t->report.started);
    set(t, "time/training", now - x->start);
    set(t, "time/update", x->update);
    if (t->cast.plan.source != RLHF_SOURCE_ROLLOUT) return;
    set(t, "time/rollout", x->rollout);
    set(t, "time/reward", x->reward);
    if (rlhf__plan_compares(&t->cast.plan)) set(t, "time/reference", x->reference);
    if (x->rollout > 0) {
        set(t, "perf/rollout_tokens_per_s", (double)x->rollout_tokens / x->rollout);
        set(t, "perf/rollout_model_tokens_per_s", (double)x->model_tokens / x->rollout);
    }
}

// The peak is that of one large product, measured once, after the first phase.
static void report_speed(struct rlhf__run *t) {
    double tokens = (double)t->learner.tokens, seconds = t->report.times.update;
    if (seconds > 0) set(t, "perf/train_tokens_per_s", tokens / seconds);
    if (t->report.peak_flops == 0)
        t->report.peak_flops =
            rlhf__compute_peak(t->session.compute->table, t->session.models.dtype);
    if (t->report.peak_flops > 0 && seconds > 0)
        set(t, "perf/mfu", t->learner.flops / seconds / t->report.peak_flops);
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        set(t, "perf/peak_rss_mb", (double)usage.ru_maxrss / 1024); // KiB on Linux
}

#define KL_METRIC     "objective/kl"
#define REWARD_METRIC "objective/scores"

// One of the quantities early_stop.* looks at.
static void offer_early_stop(struct rlhf__run *t, int32_t what, const char *metric) {
    char why[160];
    double value;
    if (!rlhf__metrics_get(t->report.metrics, metric, &value) ||
        !rlhf__early_stop_offer(&t->early_stop, what, value, why))
        return;
    t->count.stop = 1;
    rlhf__logf(t->report.log, RLHF_LOG_INFO, "early stop: %s", why);
}

static void report_progress(struct rlhf__run *t) {
    int rollout = t->cast.plan.source == RLHF_SOURCE_ROLLOUT;
    double reward = 0, kl = NAN, judge = NAN, accuracy = NAN;
    rlhf__metrics_get(t->report.metrics, KL_METRIC, &kl);
    rlhf__metrics_get(t->report.metrics, "judge/mean", &judge);
    rlhf__metrics_get(t->report.metrics, REWARD_METRIC, &reward);
    if (!rollout && !rlhf__metrics_get(t->report.metrics, "reward_model/accuracy", &accuracy))
        rlhf__metrics_get(t->report.metrics, "classify/accuracy", &accuracy);
    double loss = t->learner.minibatches ? t->learner.loss_sum / (double)t->learner.minibatches : 0;
    struct rlhf__progress_state s = {.phase = t->count.phase + 1,
                                     .phases = t->count.phases,
                                     .label = rollout ? "reward" : "loss",
                                     .value = rollout ? reward : loss,
                                     .kl = kl,
                                     .judge = judge,
                                     .accuracy = accuracy,
                                     .seconds = rlhf__seconds() - t->report.began,
                                     .first_phase = t->count.first_phase};
    double spent = rollout ? t->report.times.rollout : t->report.times.update;
    int64_t tokens = rollout ? t->report.times.rollout_tokens : t->learner.tokens;
    s.tokens_per_s = spent > 0 ? (double)tokens / spent : NAN;
    rlhf__progress_phase(t->report.progress, &s);
}

rlhf_status rlhf__phase_report(struct rlhf__run *t, struct rlhf__error *err) {
    report_optim(t);
    report_times(t);
    report_speed(t);
    if (t->cast.plan.source == RLHF_SOURCE_ROLLOUT) {
        offer_early_stop(t, RLHF__EARLY_STOP_KL, KL_METRIC);
        offer_early_stop(t, RLHF__EARLY_STOP_REWARD, REWARD_METRIC);
    }
    rlhf_status st = rlhf__completions_show(t, err);
    if (st == RLHF_OK) report_progress(t);
    return st;
}

// ---- metrics that settings look at ----

static void offer_name(void *arg, const char *name) { rlhf__nearest_offer(arg, name); }

static rlhf_status no_best(struct rlhf__run *t, struct rlhf__error *err) {
    const char *best = t->config->checkpoint.best;
    char hint[300];
    struct rlhf__nearest near = {best, NULL, 0};
    rlhf__metrics_names(t->report.metrics, offer_name, &near);
    return rlhf__fail(err, RLHF_E_INVALID,
                      "checkpoint.best: phase %lld reports no metric \"%.200s\"%s; "
                      "metrics.jsonl has the names",
                      (long long)t->count.phase, best,
                      rlhf__nearest_hint(&near, hint, sizeof hint));
}

// Every name is known after the first phase of a process, but for what only some phases measure:
// held-out rows, and what an outer loop reports at its own pace.
static int wants_best(const struct rlhf__run *t) {
    const uint32_t outer = RLHF_PLAN_MOVES_REFERENCE | RLHF_PLAN_REWARD_MODEL;
    const char *best = t->config->checkpoint.best;
    return *best && t->best.phase == 0 && t->count.phase == t->count.first_phase + 1 &&
           !(t->cast.plan.flags & outer) && strncmp(best, "eval/", 5) != 0;
}

static rlhf_status no_early_stop(const struct rlhf__run *t, const char *setting, const char *metric,
                                 struct rlhf__error *err) {
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s: phase %lld reports no metric \"%s\", so it would never end the run; 0 "
                      "switches it off",
                      setting, (long long)t->count.phase, metric);
}

static rlhf_status look(struct rlhf__run *t, struct rlhf__error *err) {
    const struct rlhf__early_stop *s = &t->early_stop;
    double value;
    if (wants_best(t) && !rlhf__metrics_get(t->report.metrics, t->config->checkpoint.best, &value))
        return no_best(t, err);
    if (rlhf__early_stop_looks_at(s->config, RLHF__EARLY_STOP_KL) && s->kl.seen == 0)
        return no_early_stop(t, "early_stop.kl", KL_METRIC, err);
    if (rlhf__early_stop_looks_at(s->config, RLHF__EARLY_STOP_REWARD) && s->reward.seen == 0)
        return no_early_stop(t, "early_stop.reward", REWARD_METRIC, err);
    return RLHF_OK;
}

rlhf_status rlhf__phase_measured(struct rlhf__run *t, struct rlhf__error *err) {
    rlhf_status st = look(t, err);
    t->bad_input = st != RLHF_OK;
    return st;
}
