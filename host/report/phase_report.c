// phase_report.c: see phase_report.h.
#include "report/phase_report.h"

#include "base/clock.h"
#include "learn/plan.h"
#include "model/compute.h"
#include "report/completions.h"

#include <math.h>
#include <sys/resource.h>

static void set(const struct rlhf__phase *p, const char *name, double value) {
    rlhf__metrics_set(p->report->metrics, name, value);
}

static void report_optim(const struct rlhf__phase *p) {
    const struct rlhf__learner *l = p->learner;
    const struct rlhf__count *c = p->count;
    set(p, "lr",
        p->config->optim.lr * rlhf__schedule_factor(&p->config->optim, c->phase, c->horizon));
    set(p, "episode", (double)c->sequences);
    int64_t skipped =
        l->optim->count.skipped + (l->critic_optim ? l->critic_optim->count.skipped : 0);
    set(p, "optim/skipped_steps", (double)skipped);
    if (l->steps > 0) {
        set(p, "optim/grad_norm", l->norm_sum / (double)l->steps);
        set(p, "optim/grad_norm_clipped", l->clipped_sum / (double)l->steps);
    }
    if (l->compared > 0) {
        set(p, "sampling/logp_difference/mean", l->difference_sum / (double)l->compared);
        set(p, "sampling/logp_difference/max", l->difference_max);
    }
}

// Rows that were left out of the backward pass, and the time that this saved, which is unknown if
// no row was timed.
static void report_spared(const struct rlhf__phase *p) {
    const struct rlhf__row_tally *b = &p->learner->tally;
    const int64_t rows = b->rows[RLHF_ROW_NO_GRADIENT] + b->rows[RLHF_ROW_EXCLUDED];
    const double saved = rlhf__row_tally_saved(b);
    if (rows == 0) return;
    set(p, "optim/spared_rows", (double)rows);
    p->report->spared.rows += rows;
    p->report->spared.all += rows + b->rows[RLHF_ROW_TRAINS];
    if (saved < 0) return;
    set(p, "time/spared", saved);
    p->report->spared.seconds += saved;
}

static void report_times(const struct rlhf__phase *p) {
    const struct rlhf__phase_times *x = &p->report->times;
    double now = rlhf__seconds();
    set(p, "time/from_scratch", now - p->report->started);
    set(p, "time/training", now - x->start);
    set(p, "time/update", x->update);
    if (!rlhf__cast_has_rewards(p->cast)) return;
    set(p, "time/rollout", x->rollout);
    set(p, "time/reward", x->reward);
    rlhf__reward_tallies_report(&p->report->rewards, p->config, p->cast->judge != NULL,
                                p->report->metrics);
    if (rlhf__plan_wants_reference(&p->cast->plan)) set(p, "time/reference", x->reference);
    if (x->rollout > 0) {
        set(p, "perf/rollout_tokens_per_s", (double)p->x.sampled / x->rollout);
        set(p, "perf/rollout_model_tokens_per_s", (double)p->x.tokens / x->rollout);
    }
}

// The peak is that of one large matrix product, measured once, after the first phase.
static void report_speed(const struct rlhf__phase *p) {
    const struct rlhf__model_env *env = p->cast->policy->env;
    struct rlhf__report *r = p->report;
    double tokens = (double)p->learner->tokens, seconds = r->times.update;
    if (seconds > 0) set(p, "perf/train_tokens_per_s", tokens / seconds);
    if (r->peak_flops == 0) r->peak_flops = rlhf__compute_peak(env->compute, env->dtype);
    if (r->peak_flops > 0 && seconds > 0)
        set(p, "perf/mfu", p->learner->flops / seconds / r->peak_flops);
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        set(p, "perf/peak_rss_mb", (double)usage.ru_maxrss / 1024); // KiB on Linux
}

// Without a table of samples, a terminal keeps about twenty lines of a run.
static int is_history(const struct rlhf__phase *p) {
    enum { LINES = 20 };
    const struct rlhf__log_config *c = &p->config->log;
    const int64_t phase = p->count->phase + 1, every = (p->count->phases + LINES - 1) / LINES;
    const int tables = rlhf__cast_has_rewards(p->cast) && c->samples > 0 && c->samples_every > 0;
    return !tables && every > 0 && (phase == 1 || phase % every == 0);
}

static struct rlhf__progress_state progress_state(const struct rlhf__phase *p) {
    const struct rlhf__metrics *m = p->report->metrics;
    const struct rlhf__learner *l = p->learner;
    int has_rewards = rlhf__cast_has_rewards(p->cast);
    double reward = 0, kl = NAN, judge = NAN, accuracy = NAN;
    rlhf__metrics_get(m, RLHF_METRIC_KL, &kl);
    rlhf__metrics_get(m, "judge/mean", &judge);
    rlhf__metrics_get(m, RLHF__REWARD_METRIC, &reward);
    if (has_rewards) rlhf__metrics_get(m, "objective/verifiable_correct_rate", &accuracy);
    if (!has_rewards && !rlhf__metrics_get(m, RLHF_METRIC_PAIR_ACCURACY, &accuracy))
        rlhf__metrics_get(m, RLHF_METRIC_LABEL_ACCURACY, &accuracy);
    double loss = l->minibatches ? l->loss_sum / (double)l->minibatches : 0;
    double spent = has_rewards ? p->report->times.rollout : p->report->times.update;
    int64_t tokens = has_rewards ? p->x.sampled : l->tokens;
    const struct rlhf__reward_tally asked = rlhf__reward_tallies_sum(&p->report->rewards);
    return (struct rlhf__progress_state){.phase = p->count->phase + 1,
                                         .phases = p->count->phases,
                                         .label = has_rewards ? "reward" : "loss",
                                         .value = has_rewards ? reward : loss,
                                         .kl = kl,
                                         .judge = judge,
                                         .accuracy = accuracy,
                                         .failures = asked.failures,
                                         .retries = asked.retries,
                                         .tokens_per_s = spent > 0 ? (double)tokens / spent : NAN,
                                         .seconds = rlhf__seconds() - p->report->began,
                                         .first_phase = p->count->first_phase,
                                         .history = is_history(p)};
}

void rlhf__phase_metrics(const struct rlhf__phase *p) {
    report_optim(p);
    report_times(p);
    report_spared(p);
    report_speed(p);
}

rlhf_status rlhf__phase_show(const struct rlhf__phase *p, int is_last, struct rlhf__error *err) {
    RLHF_TRY(rlhf__completions_show(p, is_last, err));
    const struct rlhf__progress_state s = progress_state(p);
    rlhf__progress_phase(p->report->progress, &s);
    return RLHF_OK;
}
