// run_sinks.c: see run_sinks.h.
#include "run/run_sinks.h"

#include "base/file.h"
#include "keep/run_dir.h"
#include "report/jsonl.h"

#include <stdio.h>

void rlhf__run_sinks_begin(const struct rlhf__run *r) {
    struct rlhf__buf config = RLHF__BUF_INIT;
    struct rlhf__error unprinted;
    char held[64], dir[RLHF__PATH_CAP];
    if (r->config->n_sink == 0 || !rlhf__run_writes(r)) return;
    // Resolve the directory by its descriptor, because a plugin may have changed the working
    // directory.
    snprintf(held, sizeof held, "/proc/self/fd/%d", r->req->dir->root->fd);
    if (!rlhf__path_real(held, dir)) rlhf__path_put(dir, "%s", r->req->dir->name);
    if (rlhf__config_print(r->config, &config, &unprinted) != RLHF_OK) rlhf__buf_clear(&config);
    const int resumed = r->req->resume != NULL;
    // Checkpoints do not store times, but metrics.jsonl does, for the completed phases.
    const double elapsed =
        resumed ? rlhf__jsonl_sum(r->req->dir->root, "metrics.jsonl", "time/training") : 0;
    const rlhf_sink_run run = {.size = sizeof run,
                               .resumed = (uint32_t)resumed,
                               .phase = r->count.phase,
                               .phases = r->count.phases,
                               .dir = dir,
                               .name = rlhf__path_base(dir),
                               .config = config.len ? rlhf__buf_text(&config) : "{}"};
    rlhf__sinks_begin(r->report.sinks, &run, elapsed);
    rlhf__buf_free(&config);
}

rlhf_status rlhf__run_sinks_phase(const struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__sample_choice *s = &r->report.chosen;
    const int writes = rlhf__run_writes(r);
    if (writes) rlhf__sinks_take(r->report.sinks, r->report.metrics);
    RLHF_TRY(rlhf__metrics_flush(r->report.metrics, r->count.phase, err));
    if (!writes) return RLHF_OK;
    rlhf__sinks_phase(r->report.sinks, r->count.phase, r->optim->count.step, s->rows,
                      s->written ? s->n : 0);
    return RLHF_OK;
}

// Returns how the run ended. If the run was stopped, why[cap] receives the reason.
static enum rlhf_run_end how_it_ended(const struct rlhf__run *r, rlhf_status st, char *why,
                                      size_t cap) {
    const int cancelled = r->req->env->cancelled && *r->req->env->cancelled;
    if (st != RLHF_OK && !(st == RLHF_E_CANCELLED && cancelled)) return RLHF_RUN_FAILED;
    if (r->count.phase >= r->count.phases) return RLHF_RUN_DONE;
    if (cancelled)
        snprintf(why, cap, "the user stopped it");
    else if (r->collapsed)
        snprintf(why, cap, "the policy %s (run.stop_on)", r->history.lost);
    else if (r->count.stop)
        snprintf(why, cap, "a limit of early_stop is reached");
    else
        snprintf(why, cap, "run.stop_after is %lld", (long long)r->config->run.stop_after);
    return RLHF_RUN_STOPPED;
}

void rlhf__run_sinks_end(const struct rlhf__run *r, rlhf_status st, const struct rlhf__error *err) {
    static const char *const status[] = {
        [RLHF_RUN_DONE] = "done", [RLHF_RUN_STOPPED] = "stopped", [RLHF_RUN_FAILED] = "failed"};
    char why[64] = "";
    const enum rlhf_run_end how = how_it_ended(r, st, why, sizeof why);
    const char *reason = how == RLHF_RUN_FAILED ? err->text : why;
    if (!rlhf__run_writes(r)) return;
    rlhf__sinks_end(r->report.sinks, how, reason);
    rlhf__events_end(r->report.events, r->count.phase, status[how], reason);
}
