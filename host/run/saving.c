// saving.c: see saving.h.
#include "run/saving.h"

#include "base/digests.h"
#include "base/file.h"
#include "base/json.h"
#include "base/signals.h"
#include "config/command_text.h"
#include "config/resume.h"
#include "feed/ahead.h"
#include "keep/chain_log.h"
#include "keep/checkpoint.h"
#include "keep/checkpoint_dir.h"
#include "keep/checkpoint_size.h"
#include "keep/reward_round.h"
#include "keep/run_dir.h"
#include "learn/optim_state.h"
#include "learn/same_weights.h"
#include "run/records.h"
#include "run/run.h"
#include "run/run_state.h"
#include "team/agree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- one checkpoint ----

static rlhf_status add_best(const struct rlhf__run *r, json_t *state, struct rlhf__error *err) {
    json_t *best = rlhf__best_save(&r->best, &r->config->checkpoint);
    if (!best || json_object_set_new(state, "best", best) == 0) return RLHF_OK;
    return RLHF__NOMEM(err, "out of memory for run.json");
}

static struct rlhf__kept kept(struct rlhf__run *r, struct rlhf__digests *digests) {
    return (struct rlhf__kept){.config = r->config,
                               .cast = &r->cast,
                               .optim = r->optim,
                               .critic_optim = r->critic_optim,
                               .reward_training = r->reward_training,
                               .iteration = &r->iteration,
                               .feed = r->feed,
                               .digests = digests,
                               .resumed = r->req->resume != NULL};
}

static rlhf_status write_files(struct rlhf__run *r, const struct rlhf__folder *all,
                               const char *fresh, struct rlhf__digests *digests,
                               struct rlhf__error *err) {
    const struct rlhf__kept k = kept(r, digests);
    RLHF_TRY(add_best(r, r->boundary.run, err));
    return rlhf__checkpoint_write(&k, &r->boundary.plugins, r->boundary.run, all, fresh, err);
}

// The state of a checkpoint records whether the checkpoint is the best so far. Only planned
// checkpoints can be the best, because every run of this configuration writes them. If a checkpoint
// that was written because of the clock, a signal or a failure could be the best, the state would
// depend on when a run was stopped.
static void choose_best(struct rlhf__run *r) {
    const struct rlhf__checkpoint_config *c = &r->config->checkpoint;
    int planned = (c->every > 0 && r->count.phase % c->every == 0) ||
                  r->count.phase >= r->count.phases || r->count.stop;
    if (planned && !rlhf__best_offer(&r->best, c, r->count.phase))
        rlhf__logf(
            r->report.log, RLHF_LOG_WARN,
            "checkpoint.best: the metric '%s' has no value in phase %lld, so this checkpoint "
            "cannot be the best",
            c->best, (long long)r->count.phase);
}

// Set the link every time: a crash may have prevented it from being set earlier.
static rlhf_status point_best(const struct rlhf__run *r, const struct rlhf__folder *all,
                              struct rlhf__error *err) {
    if (!r->config->checkpoint.best[0] || r->best.phase <= 0) return RLHF_OK;
    return rlhf__checkpoint_dir_best(all, r->best.phase, err);
}

// Fit the gain and bias that a reward model's checkpoint gets to the present weights.
static rlhf_status calibrate(const struct rlhf__run *r, struct rlhf__error *err) {
    if (!r->reward_training) return RLHF_OK;
    return rlhf__reward_training_calibrate(r->reward_training, r->count.phase, err);
}

// Sets `*written` to 1 before the first file of the checkpoint is written. `digests` receives the
// digests of the large files.
static rlhf_status save_in(struct rlhf__run *r, const struct rlhf__folder *all,
                           struct rlhf__digests *digests, int *written, struct rlhf__error *err) {
    char fresh[64];
    snprintf(fresh, sizeof fresh, RLHF__CHECKPOINT_WRITING "%06lld", (long long)r->count.phase);
    if (rlhf__checkpoint_dir_is_latest(all, r->count.phase)) return RLHF_OK; // already written
    choose_best(r);
    rlhf_status st = rlhf__metrics_sync(r->report.metrics, err);
    if (st == RLHF_OK) st = rlhf__samples_sync(r->report.samples, err);
    if (st == RLHF_OK) st = rlhf__spread_sync(r->report.spread, err);
    if (st == RLHF_OK) st = rlhf__events_sync(r->report.events, err);
    if (st == RLHF_OK && r->chain) st = rlhf__chain_log_sync(r->chain, err);
    if (st == RLHF_OK && r->report.rollout_log)
        st = rlhf__rollout_log_sync(r->report.rollout_log, err);
    if (st == RLHF_OK) st = rlhf__checkpoint_fits(r->config, &r->cast, all, err);
    *written = st == RLHF_OK;
    if (st == RLHF_OK) st = write_files(r, all, fresh, digests, err);
    if (st == RLHF_OK)
        st = rlhf__checkpoint_dir_commit(all, fresh, r->count.phase, r->report.log, err);
    if (st != RLHF_OK) rlhf__folder_remove(all, fresh, NULL);
    if (st == RLHF_OK) st = point_best(r, all, err);
    if (st == RLHF_OK)
        rlhf__events_checkpoint(r->report.events, r->count.phase, r->best.phase == r->count.phase);
    if (st == RLHF_OK && r->chain)
        st = rlhf__chain_log_checkpoint(r->chain, r->count.phase, digests, err);
    // Keep the previous checkpoint until the next one is written, because a process that found it
    // through `latest` may be reading it.
    const int64_t keep = r->config->checkpoint.keep;
    if (st == RLHF_OK)
        rlhf__checkpoint_dir_prune(all, r->count.phase, keep == 1 ? 2 : keep, r->report.log);
    if (st == RLHF_OK && r->count.phase < r->count.phases && !r->count.stop)
        rlhf__checkpoint_foresee(r->config, &r->cast, all, r->report.log);
    return st;
}

// Write a checkpoint of r->boundary. r->count.phase and the weights must be those of this boundary.
// Then point `latest` at the checkpoint, choose checkpoints/best, and remove old checkpoints beyond
// checkpoint.keep. Does nothing if `latest` already points at this phase's checkpoint. After
// RLHF_E_IO (disk full) the earlier state remains.
static rlhf_status save_checkpoint(struct rlhf__run *r, struct rlhf__error *err) {
    struct rlhf__folder *all = NULL;
    struct rlhf__error unsaid;
    const struct rlhf__kept k = kept(r, NULL);
    struct rlhf__digests *digests = NULL;
    int written = 0;
    rlhf_status st = calibrate(r, err);
    if (!rlhf__run_writes(r)) {
        choose_best(r);
        const rlhf_status given = rlhf__checkpoint_give(&k, st == RLHF_OK ? err : &unsaid);
        return st == RLHF_OK ? given : st;
    }
    if (st == RLHF_OK) st = rlhf__folder_make(r->req->dir->root, "checkpoints", NULL, &all, err);
    // Without digests, which is no error, the chain reads the files again.
    if (st == RLHF_OK && r->chain) digests = rlhf__digests_open();
    if (st == RLHF_OK) st = save_in(r, all, digests, &written, err);
    rlhf__digests_close(digests);
    rlhf__folder_close(all);
    if (!written) rlhf__checkpoint_give(&k, &unsaid);
    if (st == RLHF_OK) return RLHF_OK;
    return rlhf__error_context(err, "the checkpoint of phase %lld was not written",
                               (long long)r->count.phase);
}

// Remove the checkpoints beyond checkpoint.keep. (save_checkpoint keeps at least two.)
static void prune(const struct rlhf__run *r) {
    struct rlhf__folder *all = NULL;
    if (!rlhf__run_writes(r)) return;
    if (rlhf__folder_open(r->req->dir->root, "checkpoints", &all, NULL) != RLHF_OK) return;
    rlhf__checkpoint_dir_prune(all, r->count.phase, r->config->checkpoint.keep, r->report.log);
    rlhf__folder_close(all);
}

rlhf_status rlhf__saving_mend(const struct rlhf__run *r, struct rlhf__error *err) {
    struct rlhf__folder *all = NULL;
    if (!rlhf__run_writes(r)) return RLHF_OK;
    rlhf_status st = rlhf__folder_open(r->req->dir->root, "checkpoints", &all, err);
    if (st == RLHF_OK) st = point_best(r, all, err);
    if (st == RLHF_OK && r->count.phase < r->count.phases)
        st = rlhf__checkpoint_dir_set_aside(all, r->count.phase, r->report.log, err);
    rlhf__folder_close(all);
    if (st == RLHF_OK && r->count.phase >= r->count.phases) prune(r);
    return st;
}

rlhf_status rlhf__saving_load(struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__kept k = kept(r, NULL);
    const char *dir = r->req->dir->checkpoint;
    RLHF_TRY(rlhf__checkpoint_read(&k, dir, err));
    return rlhf__run_state_load(r, dir, err);
}

// ---- phase boundaries ----

// Append the command that resumes the run, with or without a launcher. It includes the settings
// that a run directory cannot provide, and leaves out those that need a launcher.
static void put_command(const struct rlhf__run *r, struct rlhf__buf *out) {
    const struct rlhf__config_request nothing = {.dirs = r->req->env->dirs};
    const struct rlhf__resume_code code = {r->req->rewards, r->req->judge, r->req->environment,
                                           r->req->sinks};
    rlhf__command_begin(out, "");
    rlhf__command_flag(out, "--resume", r->req->dir->name);
    rlhf__resume_words(&nothing, r->config, &code, out);
    if (r->config->parallel.actors > 0) rlhf__command_set(out, "parallel.actors", "0");
    if (strcmp(r->config->parallel.backend, "auto") != 0)
        rlhf__command_set(out, "parallel.backend", "auto");
}

static void say_command(const struct rlhf__run *r, const char *text) {
    struct rlhf__buf say = RLHF__BUF_INIT;
    put_command(r, &say);
    rlhf__log_command(r->report.log, text, rlhf__buf_text(&say));
    rlhf__buf_finish(&say);
}

// Set the message that SIGTERM and a second signal print during the next phases.
static void note_kept(const struct rlhf__run *r) {
    struct rlhf__buf say = RLHF__BUF_INIT;
    if (r->saved.phase <= 0) {
        rlhf__signals_kept(NULL);
        return;
    }
    rlhf__buf_printf(&say,
                     "phase %lld and those before it are kept; go on: ", (long long)r->saved.phase);
    put_command(r, &say);
    rlhf__signals_kept(rlhf__buf_text(&say));
    rlhf__buf_finish(&say);
}

void rlhf__saving_begin(struct rlhf__run *r) {
    int64_t phase = r->req->resume ? r->count.phase : -1;
    r->saved = (struct rlhf__saved){phase, phase, rlhf__seconds()};
    note_kept(r);
}

static struct rlhf__changing changing(struct rlhf__run *r) {
    const struct rlhf__cast *c = &r->cast;
    const struct rlhf__reward_round *round = r->iteration.round;
    int moves = c->iteration.moves_reference;
    return (struct rlhf__changing){
        .compute = r->session.compute->table,
        .kernels = r->session.compute->kernels.instance,
        .model = {c->policy, c->critic, moves ? c->reference : NULL,
                  round ? round->rm->model : NULL},
        .optim = {r->optim, r->critic_optim, round ? round->optim : NULL},
        .iteration = &r->iteration};
}

rlhf_status rlhf__saving_note(struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__boundary_now now = {.phase = r->count.phase,
                                           .best = r->best,
                                           .run = rlhf__run_state_json(r),
                                           .cast = &r->cast,
                                           .what = changing(r),
                                           .undo_mib = r->config->checkpoint.undo_mib};
    rlhf_status st = r->feed->ahead ? rlhf__ahead_prepare(r->feed->ahead, err) : RLHF_OK;
    if (st != RLHF_OK) json_decref(now.run);
    if (st == RLHF_OK) st = rlhf__boundary_note(&r->boundary, &now, err);
    if (st != RLHF_OK) return st;
    if (r->feed->choice) rlhf__prompt_choice_note(r->feed->choice);
    if (r->feed->ahead) rlhf__ahead_note(r->feed->ahead);
    return RLHF_OK;
}

// Restore everything that a checkpoint stores to its state at the last phase boundary.
static rlhf_status restore(struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__changing what = changing(r);
    RLHF_TRY(rlhf__boundary_restore(&r->boundary, &what, r->config->checkpoint.undo_mib, err));
    r->count.phase = r->boundary.phase;
    r->best = r->boundary.best;
    r->count.stop = 0; // the phase that set `stop` is abandoned
    return RLHF_OK;
}

static rlhf_status save(struct rlhf__run *r, struct rlhf__error *err) {
    struct rlhf__saved *s = &r->saved;
    s->attempted = r->count.phase;
    rlhf_status st = save_checkpoint(r, err);
    s->at = rlhf__seconds();
    if (st != RLHF_OK) return st;
    s->phase = r->count.phase;
    note_kept(r);
    return RLHF_OK;
}

// Returns 1 if SIGUSR1 has asked for a checkpoint since the last call.
static int asked(const struct rlhf__run *r) {
    volatile sig_atomic_t *flag = r->req->env->checkpoint;
    if (!flag || !*flag) return 0;
    *flag = 0;
    return 1;
}

// Returns 1 if it is time for a checkpoint or if a checkpoint was asked for. Sets `*now` to 1 if a
// checkpoint was asked for, otherwise to 0.
static int is_time(const struct rlhf__run *r, int *now) {
    const int64_t every_s = r->config->checkpoint.every_s;
    *now = asked(r);
    return *now || (every_s > 0 && rlhf__seconds() - r->saved.at >= (double)every_s);
}

// Clocks and signals differ between processes, so rank 0 decides whether it is time for a
// checkpoint.
rlhf_status rlhf__saving_meet(struct rlhf__run *r, rlhf_status st, struct rlhf__error *err) {
    int now = 0;
    struct rlhf__team *team = rlhf__run_learners(r);
    const struct rlhf__wish wish = {.save = team ? is_time(r, &now) + now : 0,
                                    .same = r->count.phase};
    return rlhf__team_agree(team, RLHF__BARRIER_PHASE, &wish, st, err);
}

// Compare the weights of all processes. If the weights differ, this phase is not saved, and the
// previous checkpoint stays the newest one.
static rlhf_status compare_weights(struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__changing what = changing(r);
    if (r->config->parallel.check_every == 0) return RLHF_OK;
    const rlhf_status st =
        rlhf__same_weights(rlhf__run_learners(r), (const struct rlhf__model *const *)what.model,
                           RLHF__ROLLBACK_MODELS, r->count.phase, err);
    if (st != RLHF_OK) r->saved.attempted = r->count.phase;
    return st;
}

rlhf_status rlhf__saving_phase(struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__checkpoint_config *c = &r->config->checkpoint;
    const struct rlhf__team *team = rlhf__run_learners(r);
    int now = team && team->saves == 2;
    const int due =
        (team ? team->saves : is_time(r, &now)) || (c->every > 0 && r->count.phase % c->every == 0);
    const int64_t check = r->config->parallel.check_every;
    rlhf_status st = RLHF_OK;
    if (due || (check > 0 && r->count.phase % check == 0)) st = compare_weights(r, err);
    if (st == RLHF_OK && due) st = save(r, err);
    if (st == RLHF_OK && now)
        rlhf__logf(r->report.log, RLHF_LOG_INFO, "checkpoint written: %s/checkpoints/%06lld",
                   r->req->dir->name, (long long)r->count.phase);
    return st;
}

rlhf_status rlhf__saving_end(struct rlhf__run *r, struct rlhf__error *err) {
    if (r->saved.phase != r->count.phase) {
        RLHF_TRY(compare_weights(r, err));
        RLHF_TRY(save(r, err));
    }
    prune(r);
    return RLHF_OK;
}

rlhf_status rlhf__saving_copy(struct rlhf__run *r, const struct rlhf__folder *in, const char *name,
                              struct rlhf__error *err) {
    RLHF_TRY(calibrate(r, err));
    return write_files(r, in, name, NULL, err);
}

void rlhf__saving_say_next(const struct rlhf__run *r) {
    if (r->saved.phase > 0 && r->count.phase < r->count.phases) say_command(r, "go on:");
}

static void say_kept(const struct rlhf__run *r, int64_t phases) {
    char text[80];
    snprintf(text, sizeof text, "%lld phase%s kept; go on:", (long long)phases,
             phases == 1 ? " is" : "s are");
    say_command(r, text);
}

void rlhf__saving_rescue(struct rlhf__run *r) {
    const struct rlhf__saved *s = &r->saved;
    struct rlhf__error err = {0, ""};
    int64_t boundary = r->boundary.phase;
    r->session.services.phase = -1;
    rlhf__progress_end(r->report.progress);
    if (boundary > 0 && s->attempted != boundary) {
        rlhf_status st = restore(r, &err);
        if (st == RLHF_OK) st = rlhf__records_go_back(r, boundary, &err);
        // Each process restores a part of the moments, so all of them must succeed.
        st = rlhf__team_all_ok(rlhf__run_learners(r), st, &err);
        if (st == RLHF_OK) st = save(r, &err);
        if (st != RLHF_OK)
            rlhf__logf(r->report.log, RLHF_LOG_WARN, "phase %lld cannot be gone back to: %s",
                       (long long)boundary, err.text);
    }
    r->count.phase = s->phase > 0 ? s->phase : 0;
    const volatile sig_atomic_t *cancelled = r->req->env->cancelled;
    // rlhf__saving_say_next will log the command
    if (s->phase > 0 && cancelled && *cancelled) return;
    if (s->phase > 0)
        say_kept(r, s->phase);
    else if (boundary > 0)
        rlhf__logf(r->report.log, RLHF_LOG_WARN, "nothing is kept of %lld phase%s",
                   (long long)boundary, boundary == 1 ? "" : "s");
    else
        rlhf__logf(r->report.log, RLHF_LOG_WARN,
                   "nothing is kept: %s has no checkpoint to resume from", r->req->dir->name);
}
