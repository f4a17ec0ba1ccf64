// loop.c: the phases of a run, rlhf__run_phases of run.h: everything around a phase that is
// the same for all algorithms.
#include "run/checkpoint.h"
#include "run/manifest.h"
#include "run/phase_report.h"
#include "run/run.h"
#include "run/run_dir.h"

rlhf_status rlhf__algo_phase_end(const struct rlhf__run *t, struct rlhf__error *err) {
    const rlhf_algo_ops *ops = &t->cast.algo->plugin->ops.algo;
    if (!ops->phase_end) return RLHF_OK;
    struct rlhf__call call = rlhf__call_begin(t->cast.algo, "phase_end()");
    return rlhf__call_end(&call, ops->phase_end(t->cast.algo->self, (uint64_t)t->count.phase), err);
}

// Phases that a resume leaves are cut from an earlier file also where this process writes none.
static rlhf_status open_rollouts(struct rlhf__run *t, int64_t keep, struct rlhf__error *err) {
    const struct rlhf__folder *run = t->req->dir->root;
    int writes = t->config->log.rollouts;
    if (!writes && (keep < 0 || !rlhf__folder_has(run, "rollouts.jsonl"))) return RLHF_OK;
    rlhf_status st = rlhf__rollout_log_open(run, keep, t->report.log, &t->report.rollout_log, err);
    if (st != RLHF_OK || writes) return st;
    rlhf__rollout_log_close(t->report.rollout_log);
    t->report.rollout_log = NULL;
    return RLHF_OK;
}

static rlhf_status open_reports(struct rlhf__run *t, struct rlhf__error *err) {
    const struct rlhf__log_config *log = &t->config->log;
    const struct rlhf__run_dir *dir = t->req->dir;
    int64_t keep = t->req->resume ? t->count.phase : -1;
    rlhf_status st = t->req->resume ? rlhf__run_dir_store(t, err) : rlhf__run_dir_make(t, err);
    if (st == RLHF_OK) st = rlhf__manifest_write(t, err);
    if (st == RLHF_OK)
        st = rlhf__metrics_open(dir->root, log, keep, t->report.log, &t->report.metrics, err);
    if (st == RLHF_OK)
        st = rlhf__samples_open(dir->root, keep, t->report.log, &t->report.samples, err);
    if (st == RLHF_OK) st = open_rollouts(t, keep, err);
    t->session.services.metric = rlhf__metrics_sink;
    t->session.services.metric_ctx = t->report.metrics;
    if (st != RLHF_OK) return st;
    const struct rlhf__progress_state start = {
        .phase = t->count.phase, .phases = t->count.phases, .first_phase = t->count.phase};
    rlhf__progress_phase(t->report.progress, &start);
    return RLHF_OK;
}

// One phase, from clean totals to a written row of metrics.
static rlhf_status run_phase(struct rlhf__run *t, struct rlhf__error *err) {
    struct rlhf__learner *l = &t->learner;
    l->loss_sum = l->norm_sum = l->clipped_sum = 0;
    l->minibatches = l->steps = l->tokens = 0;
    l->compared = 0;
    l->flops = 0;
    l->difference_sum = l->difference_max = 0;
    t->report.times = (struct rlhf__phase_times){.start = rlhf__seconds()};
    t->session.services.phase = t->count.phase + 1;
    rlhf_status st = t->cast.plan.source == RLHF_SOURCE_ROLLOUT ? rlhf__phase_rollout(t, err)
                                                                : rlhf__phase_supervised(t, err);
    rlhf__iteration_begin(&t->iteration);
    if (st == RLHF_OK) st = rlhf__algo_phase_end(t, err);
    rlhf__iteration_end(&t->iteration);
    if (st == RLHF_OK) st = rlhf__phase_report(t, err);
    if (st != RLHF_OK) return st;
    t->count.phase++;
    rlhf__best_see(&t->best, &t->config->checkpoint, t->report.metrics);
    rlhf_status known = rlhf__phase_measured(t, err);
    st = rlhf__metrics_flush(t->report.metrics, t->count.phase, known == RLHF_OK ? err : NULL);
    t->session.services.phase = -1;
    if (known == RLHF_OK && st == RLHF_OK) return rlhf__boundary_note(&t->boundary, t, err);
    return known == RLHF_OK ? st : known;
}

static int is_cancelled(const struct rlhf__run *t) {
    return t->req->env->cancelled && *t->req->env->cancelled;
}

rlhf_status rlhf__run_phases(struct rlhf__run *t, struct rlhf__error *err) {
    const struct rlhf__config *c = t->config;
    if (t->req->resume) RLHF_TRY(rlhf__checkpoint_mend(t, err));
    if (t->count.phase >= t->count.phases) {
        rlhf__logf(t->report.log, RLHF_LOG_WARN,
                   "nothing to do: %lld phases are done and run.phases is %lld; --set "
                   "run.phases=N goes on: %s",
                   (long long)t->count.phase, (long long)t->count.phases, t->req->dir->name);
        return RLHF_OK;
    }
    if (is_cancelled(t)) // while things were loaded: there is nothing to keep, so nothing is made
        return rlhf__fail(err, RLHF_E_CANCELLED, "stopped before the first phase");
    rlhf_status st = open_reports(t, err);
    if (st != RLHF_OK) return st;
    int64_t last = t->count.phases;
    if (c->run.stop_after > 0 && t->count.phase + c->run.stop_after < last)
        last = t->count.phase + c->run.stop_after;
    t->report.began = rlhf__seconds();
    rlhf__saving_begin(t);
    st = rlhf__boundary_note(&t->boundary, t, err);
    while (st == RLHF_OK && t->count.phase < last && !t->count.stop && !is_cancelled(t)) {
        st = run_phase(t, err);
        if (st == RLHF_OK) st = rlhf__saving_phase(t, err);
    }
    if (st == RLHF_OK) st = rlhf__saving_end(t, err);
    if (st != RLHF_OK) rlhf__saving_rescue(t);
    if (st != RLHF_OK && (st != RLHF_E_CANCELLED || !is_cancelled(t))) return st;
    rlhf__progress_end(t->report.progress);
    rlhf__logf(t->report.log, RLHF_LOG_INFO, "%s after %lld of %lld phases: %s",
               is_cancelled(t) ? "stopped" : "done", (long long)t->count.phase,
               (long long)t->count.phases, t->req->dir->name);
    return RLHF_OK;
}
