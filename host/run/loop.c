// loop.c: rlhf__run_phases (run.h), which is the loop over the phases. Contains the work that all
// algorithms have in common.
#include "base/signals.h"
#include "feed/recorded.h"
#include "keep/chain_log.h"
#include "keep/run_dir.h"
#include "learn/plan.h"
#include "report/closing.h"
#include "report/next_steps.h"
#include "report/phase_report.h"
#include "run/actor.h"
#include "run/ahead_phase.h"
#include "run/chained.h"
#include "run/phase_end.h"
#include "run/phase_run.h"
#include "run/records.h"
#include "run/run.h"
#include "run/run_sinks.h"
#include "run/saving.h"
#include "sample/actors.h"
#include "team/agree.h"

#include <stdio.h>

// Show the whole terminal, if log.progress asks for it.
static void fill_terminal(struct rlhf__run *r) {
    const struct rlhf__config *c = r->config;
    const rlhf_compute *table = r->session.compute->table;
    struct rlhf__buf title = RLHF__BUF_INIT;
    rlhf__buf_printf(&title, "%s   %s", r->req->dir->name, c->algo.plugin);
    for (size_t k = 0; k < c->n_reward; k++)
        rlhf__buf_printf(&title, "  %s", c->reward[k].plugin);
    rlhf__buf_printf(&title, "   policy %.1f M   %s %s",
                     (double)r->cast.policy->info.n_params / 1e6, table->name, table->detail);
    rlhf__progress_fill(r->report.progress, rlhf__buf_text(&title));
    rlhf__buf_finish(&title);
}

// Open the report of a process other than rank 0. Rank 0 writes the files. The other processes open
// no files, keep their metrics in memory, and log only their own warnings.
static rlhf_status open_silent(struct rlhf__run *r, struct rlhf__error *err) {
    const int32_t level = r->config->log.level;
    r->report.log->level = level > RLHF_LOG_WARN ? level : RLHF_LOG_WARN;
    return rlhf__records_open_silent(r, err);
}

static rlhf_status open_reports(struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__manifest code = rlhf__run_manifest(r);
    struct rlhf__run_dir *dir = r->req->dir;
    if (!rlhf__run_writes(r)) return open_silent(r, err);
    int resumed = r->req->resume != NULL;
    int64_t keep = resumed ? r->count.phase : -1;
    RLHF_TRY(resumed ? rlhf__run_dir_store(dir, r->config, err)
                     : rlhf__run_dir_make(dir, r->config, r->report.log, err));
    RLHF_TRY(rlhf__manifest_write(&code, dir->root, resumed, err));
    RLHF_TRY(rlhf__records_open(r, dir->root, keep, err));
    // A crash may have prevented the checkpoint's line in the chain.
    if (keep >= 0) RLHF_TRY(rlhf__chain_log_checkpoint(r->chain, keep, NULL, err));
    RLHF_TRY(rlhf__records_open_rollouts(r, keep, err));
    rlhf__events_begin(r->report.events, keep, keep > 0 && r->best.phase == keep, r->count.phases,
                       r->req->env->argv);
    const struct rlhf__progress_state start = {
        .phase = r->count.phase, .phases = r->count.phases, .first_phase = r->count.phase};
    fill_terminal(r);
    rlhf__progress_phase(r->report.progress, &start);
    rlhf__run_sinks_begin(r);
    return RLHF_OK;
}

// End a phase: counts it, checks that the run reports every metric that the settings name, writes
// the phase's metrics, and records the phase boundary.
static rlhf_status end_phase(struct rlhf__run *r, const struct rlhf__phase *p,
                             struct rlhf__error *err) {
    r->count.phase++;
    rlhf__best_see(&r->best, &r->config->checkpoint, r->report.metrics);
    rlhf_status known = rlhf__early_stop_measured(&r->early_stop, &r->best, p, err);
    r->bad_input = known != RLHF_OK;
    RLHF_TRY(rlhf__chained_phase(r, p, err));
    rlhf_status st =
        rlhf__metrics_flush(r->report.metrics, r->count.phase, known == RLHF_OK ? err : NULL);
    r->session.services.phase = -1;
    if (known == RLHF_OK && st == RLHF_OK) return rlhf__saving_note(r, err);
    return known == RLHF_OK ? st : known;
}

// Apply the rules to the phase. With run.stop_on=collapse, end the run after the phase in which the
// policy has collapsed or is far from the reference.
static rlhf_status see_findings(struct rlhf__run *r, const struct rlhf__phase *p,
                                struct rlhf__error *err) {
    struct rlhf__run_history *h = &r->history;
    RLHF_TRY(rlhf__check_learning(p, &r->count, err));
    RLHF_TRY(rlhf__run_history_add(h, r->report.metrics, r->count.phase + 1, err));
    RLHF_TRY(rlhf__run_history_warn(h, p, err));
    if (!h->lost || r->config->run.stop_on != RLHF__STOP_ON_COLLAPSE) return RLHF_OK;
    r->collapsed = 1;
    r->count.stop = 1;
    rlhf__logf(r->report.log, RLHF_LOG_WARN,
               "run.stop_on=collapse: the run ends after phase %lld with exit status %d; its last "
               "checkpoint is of the policy that %s",
               (long long)r->count.phase + 1, RLHF__EXIT_COLLAPSED, h->lost);
    return RLHF_OK;
}

static rlhf_status report_phase(struct rlhf__run *r, const struct rlhf__phase *p,
                                struct rlhf__error *err) {
    rlhf__phase_metrics(p);
    RLHF_TRY(see_findings(r, p, err));
    r->count.stop |= rlhf__early_stop_phase(&r->early_stop, p);
    return rlhf__phase_show(p, r->count.stop, err);
}

// In phase 1 there is nothing to keep, so a signal ends the phase early. Several processes finish
// it, because they must all end at the same place.
static void abandon_early(struct rlhf__run *r) {
    const int early = r->count.phase == 0 && !rlhf__run_learners(r);
    r->learner.abandons = r->feed_env.abandons = early ? r->req->env->cancelled : NULL;
}

// Run one phase, from clearing the totals to writing the metrics.
static rlhf_status run_phase(struct rlhf__run *r, struct rlhf__error *err) {
    struct rlhf__phase p = {.config = r->config,
                            .cast = &r->cast,
                            .count = &r->count,
                            .feed = r->feed,
                            .learner = &r->learner,
                            .report = &r->report,
                            .recorded = r->req->recorded,
                            .trusts = r->req->trusts,
                            .texts_alone = r->feed->texts_alone};
    rlhf__learner_begin(&r->learner);
    r->learner.phase = r->count.phase;
    abandon_early(r);
    r->report.times = (struct rlhf__phase_times){.start = rlhf__seconds()};
    r->session.services.phase = r->count.phase + 1;
    rlhf_status st = rlhf__phase_run(&p, err);
    r->count.sequences += p.x.drawn;
    rlhf__iteration_begin(&r->iteration, &p.x);
    if (st == RLHF_OK) st = rlhf__phase_end(&p, err);
    rlhf__iteration_end(&r->iteration);
    if (st == RLHF_OK) st = rlhf__ahead_phase_end(&p, err);
    if (st == RLHF_OK) st = report_phase(r, &p, err);
    if (st == RLHF_OK) st = end_phase(r, &p, err);
    rlhf__signals_phase(0, -1, 0);
    rlhf__reward_tallies_close(&r->report.rewards);
    rlhf__experience_finish(&p.x);
    return st;
}

// Before the first phase, measure the rewards of held-out responses and write them as row 0 of the
// metrics.
static rlhf_status look_first(struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__held_out h = {.due = 1,
                                     .metrics = r->report.metrics,
                                     .samples = r->report.samples,
                                     .tallies = &r->report.rewards};
    const int responds = rlhf__cast_has_rewards(&r->cast) && r->config->data.eval_path[0];
    if (r->count.phase > 0 || !responds) return RLHF_OK;
    RLHF_TRY(r->feed->ops->evaluate(r->feed, &h, err));
    RLHF_TRY(rlhf__run_history_add(&r->history, r->report.metrics, 0, err));
    RLHF_TRY(rlhf__chained_phase(r, NULL, err));
    RLHF_TRY(rlhf__metrics_flush(r->report.metrics, 0, err));
    rlhf__run_sinks_report(r);
    return RLHF_OK;
}

static void say_spared(const struct rlhf__run *r) {
    const struct rlhf__spared *s = &r->report.spared;
    if (s->rows == 0) return;
    rlhf__logf(r->report.log, RLHF_LOG_INFO,
               "%lld of %lld rows of updates had nothing to teach and were left out "
               "of the backward pass: about %.1f s saved",
               (long long)s->rows, (long long)s->all, s->seconds);
}

// Returns RLHF_E_NUMERIC if all steps were skipped, also before a resume.
static rlhf_status judge_skipped(const struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__optim_count *c = &r->learner.optim->count;
    if (c->skipped > 0 && c->step == 0)
        return rlhf__fail(
            err, RLHF_E_NUMERIC,
            "all %lld updates were skipped, because the loss or a gradient was not finite: the "
            "run has taught nothing",
            (long long)c->skipped);
    return RLHF_OK;
}

// Returns 1 if a signal has asked this run to stop. If several processes train, returns 1 only
// after all of them have agreed to stop.
static int is_cancelled(const struct rlhf__run *r) {
    const struct rlhf__team *t = rlhf__run_learners(r);
    if (t) return t->cancelled != 0;
    return r->req->env->cancelled && *r->req->env->cancelled;
}

// Returns the number of phases after which this process ends. With run.stop_after, this number can
// be smaller than the number of phases of the run.
static int64_t last_phase(const struct rlhf__run *r) {
    const int64_t after = r->config->run.stop_after;
    const int64_t last = r->count.phase + after;
    return after > 0 && last < r->count.phases ? last : r->count.phases;
}

static int goes_on(const struct rlhf__run *r, int64_t last) {
    return r->count.phase < last && !r->count.stop && !is_cancelled(r);
}

// Run the phases of this process, then write the checkpoint. A signal ends the loop after the
// current phase, and is not a failure.
static rlhf_status run_all(struct rlhf__run *r, struct rlhf__error *err) {
    const int64_t last = last_phase(r);
    r->report.began = rlhf__seconds();
    rlhf__saving_begin(r);
    rlhf_status st = rlhf__saving_note(r, err);
    rlhf__run_say_compute(r);
    if (st == RLHF_OK) st = look_first(r, err);
    while (st == RLHF_OK && goes_on(r, last)) {
        st = run_phase(r, err);
        rlhf__run_say_compute(r);
        st = rlhf__saving_meet(r, st, err);
        if (st == RLHF_OK) st = rlhf__saving_phase(r, err);
        if (st == RLHF_OK && goes_on(r, last)) rlhf__run_sinks_report(r);
    }
    if (st == RLHF_OK) st = rlhf__saving_end(r, err);
    if (st == RLHF_OK) rlhf__run_sinks_report(r); // the last phase, after its checkpoint
    return rlhf__team_agree(rlhf__run_learners(r), RLHF__BARRIER_SAVE, NULL, st, err);
}

// Log commands for the next steps. If the model gives scores instead of text, the command measures
// the model on a file of held-out rows.
static void say_next_steps(const struct rlhf__run *r) {
    const struct rlhf__data_config *d = &r->config->data;
    const int scores = (r->cast.plan.heads & RLHF_HEAD_SCORE) != 0;
    const struct rlhf__plugin_config *environment = &r->config->environment;
    const struct rlhf__model *policy = r->cast.policy;
    const int samples = rlhf__cast_samples(&r->cast);
    const struct rlhf__next_steps s = {
        .log = r->report.log,
        .dir = r->req->dir->name,
        .environment = environment->plugin ? environment : NULL,
        .data = !scores           ? NULL
                : d->eval_path[0] ? d->eval_path
                                  : "HELD-OUT.jsonl",
        .samples = &r->report.chosen,
        .templated =
            !r->feed->texts_alone && rlhf__chat_known(rlhf__tokenizer_chat(policy->tok)) != NULL,
        .ignore_eos = samples && !rlhf__response_stops_at_eos(&r->config->sampling, policy),
        .max_new = samples ? r->config->sampling.max_new_tokens : 0,
        .n_ctx = policy->info.n_ctx};
    rlhf__next_steps_say(&s);
}

static void say_end(const struct rlhf__run *r) {
    const int stopped = is_cancelled(r);
    const struct rlhf__closing c = {&r->history, r->report.log};
    const char *policy = r->history.lost;
    rlhf__progress_end(r->report.progress);
    say_spared(r);
    rlhf__ahead_say(r->feed, r->report.log);
    rlhf__logf(r->report.log, RLHF_LOG_INFO, "%s after %lld of %lld phase%s%s%s: %s",
               stopped || r->collapsed ? "stopped" : "done", (long long)r->count.phase,
               (long long)r->count.phases, r->count.phases == 1 ? "" : "s",
               policy ? ", and the policy " : "", policy ? policy : "", r->req->dir->name);
    rlhf__closing_say(&c);
    if (stopped || (r->config->run.stop_after > 0 && !r->count.stop)) rlhf__saving_say_next(r);
    if (r->count.phase > 0) say_next_steps(r);
}

static rlhf_status run_phases(struct rlhf__run *r, struct rlhf__error *err) {
    if (r->req->resume) RLHF_TRY(rlhf__saving_mend(r, err));
    if (r->count.phase >= r->count.phases) {
        rlhf__logf(r->report.log, RLHF_LOG_WARN,
                   "nothing to do: %lld phase%s done and run.phases is %lld; --set "
                   "run.phases=N goes on: %s",
                   (long long)r->count.phase, r->count.phase == 1 ? " is" : "s are",
                   (long long)r->count.phases, r->req->dir->name);
        if (!rlhf__run_sinks_wait(r)) return RLHF_OK;
        rlhf__saving_begin(r);
        rlhf__run_sinks_begin(r);
        rlhf__run_sinks_end(r, RLHF_OK, err);
        return RLHF_OK;
    }
    if (is_cancelled(r)) // a signal came during set-up: there is nothing to save
        return rlhf__fail(err, RLHF_E_CANCELLED, "stopped before the first phase");
    RLHF_TRY(open_reports(r, err));
    const rlhf_status st = run_all(r, err);
    rlhf__run_advise(r, st, err); // must run before a later failure overwrites the last error
    if (st == RLHF_E_CANCELLED && is_cancelled(r))
        rlhf__logf(r->report.log, RLHF_LOG_INFO, "phase %lld is not finished%s: %s",
                   (long long)r->count.phase + 1,
                   r->count.phase > 0 ? " and will be done again" : "", err->text);
    if (st != RLHF_OK) rlhf__saving_rescue(r);
    rlhf__reward_tallies_say(&r->report.rewards, r->config, r->report.log);
    rlhf__run_sinks_end(r, st, err);
    // After a signal, a plugin may end the phase early with RLHF_E_CANCELLED. Without a signal,
    // RLHF_E_CANCELLED is a failure.
    if (st != RLHF_OK && !(st == RLHF_E_CANCELLED && is_cancelled(r))) return st;
    say_end(r);
    return judge_skipped(r, err);
}

rlhf_status rlhf__run_phases(struct rlhf__run *r, struct rlhf__error *err) {
    if (rlhf__run_acts(r)) return rlhf__actor_run(r, err);
    const rlhf_status st = run_phases(r, err);
    // After a failed run, do not end the actors here: all ranks, including the actors, learn of the
    // failure at their next barrier.
    return st == RLHF_OK && r->actors ? rlhf__actors_end(r->actors, err) : st;
}

// ---- phases that are run again ----

static rlhf_status open_again(struct rlhf__run *r, const struct rlhf__folder *out,
                              struct rlhf__error *err) {
    const struct rlhf__manifest code = rlhf__run_manifest(r);
    RLHF_TRY(rlhf__manifest_write(&code, out, 0, err));
    RLHF_TRY(rlhf__records_open(r, out, -1, err));
    if (!rlhf__cast_samples(&r->cast)) return RLHF_OK;
    return rlhf__rollout_log_open(out, -1, r->report.log, &r->report.rollout_log, err);
}

static rlhf_status copy(struct rlhf__run *r, const struct rlhf__folder *out,
                        struct rlhf__error *err) {
    char name[32];
    snprintf(name, sizeof name, "%06lld", (long long)r->count.phase);
    return rlhf__saving_copy(r, out, name, err);
}

// Position the record at the next phase.
static rlhf_status seek(const struct rlhf__run *r, struct rlhf__error *err) {
    int found = 0;
    if (!r->req->trusts) return RLHF_OK;
    return rlhf__recorded_seek(r->req->recorded, r->count.phase + 1, &found, err);
}

rlhf_status rlhf__run_again(struct rlhf__run *r, const struct rlhf__folder *out,
                            const struct rlhf__again_wish *wish, struct rlhf__error *err) {
    RLHF_TRY(open_again(r, out, err));
    r->report.began = rlhf__seconds();
    if (wish->phases == 0) return RLHF_OK;
    RLHF_TRY(rlhf__saving_note(r, err));
    if (wish->start) RLHF_TRY(copy(r, out, err));
    if (!r->req->recorded) RLHF_TRY(look_first(r, err));
    for (int64_t i = 0; i < wish->phases; i++) {
        if (is_cancelled(r))
            return rlhf__fail(err, RLHF_E_CANCELLED, "stopped before phase %lld",
                              (long long)r->count.phase + 1);
        RLHF_TRY(seek(r, err));
        RLHF_TRY(rlhf__run_advise(r, run_phase(r, err), err));
        if (wish->keep(wish->arg, r->count.phase)) RLHF_TRY(copy(r, out, err));
    }
    return RLHF_OK;
}
