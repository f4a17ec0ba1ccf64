// run.h: the state of a training run. A run is set up from a resolved config (setup/setup.h), runs
// phase by phase, and is torn down.
//
// Only the set-up, the loop and the checkpoint code use the whole struct. All other code takes only
// the parts that it needs.
#ifndef RLHF_HOST_RUN_RUN_H
#define RLHF_HOST_RUN_RUN_H

#include "base/clock.h"
#include "base/env.h"
#include "base/folder.h"
#include "feed/feed.h"
#include "feed/reward_training.h"
#include "keep/boundary.h"
#include "keep/iteration.h"
#include "keep/manifest.h"
#include "learn/phase.h"
#include "learn/plan.h"
#include "model/session.h"
#include "plugin/load.h"
#include "report/report.h"
#include "report/run_history.h"
#include "run/early_stop.h"
#include "service/text_services.h"
#include "team/split.h"
#include "team/team.h"

struct rlhf__chain_log;
struct rlhf__memory_need;
struct rlhf__recorded;
struct rlhf__run_dir;

// A validated request for a training run: the config is resolved and the plugins are open.
struct rlhf__run_request {
    const struct rlhf__env *env;
    struct rlhf__config *config;   // the set-up replaces a backend "auto" by the one that it found
    struct rlhf__plugins *plugins; // for opening models
    const struct rlhf__plugin *algo;
    const struct rlhf__plugin **rewards;    // [config->n_reward]
    const struct rlhf__plugin *judge;       // NULL = none
    const struct rlhf__plugin *environment; // NULL = none
    const struct rlhf__plugin **sinks;      // those of the config, then own ones, then NULL
    const char *resume;                     // run directory to resume, NULL = a new run
    struct rlhf__run_dir *dir;              // keep/run_dir.h
    int32_t dry_run;                        // 1: set everything up, run no phase, write nothing
    int32_t allow_changed_plugins;          // 1: resume even if the code has changed
    int32_t allow_changed_inputs;           // 1: resume even if rows or frozen models have changed
    struct rlhf__memory_need *need;         // receives the memory that the run needs; may be NULL
    // The record from which phases read responses and scores, or NULL: responses are sampled and
    // scored. With a record, rewards, the judge, the environment and sinks are opened only if
    // `trusts` is set.
    struct rlhf__recorded *recorded;
    // Used only with a record. 0: responses and scores come from the record. Otherwise responses
    // are sampled, the record supplies only the scores or answers that the bits name (enum
    // rlhf__trust), and plugins supply the others.
    int32_t trusts;
    struct rlhf__team *team;   // the processes that work on this run; NULL = only this one
    struct rlhf__split *split; // which processes only sample; NULL = none
    const struct rlhf__collective *collective; // connects the processes; NULL = none
};

// The run's checkpoints on disk.
struct rlhf__saved {
    int64_t phase;     // phases that the run's newest checkpoint contains; -1 = no checkpoint yet
    int64_t attempted; // the phase of the last attempt to write a checkpoint
    double at;         // time of that attempt, or else of the start
};

// How long a phase takes, as estimated from the calls of the compute table that it makes, with
// responses of full length. Does not include time outside of models: in rewards, environments and
// files. All 0: not estimated.
struct rlhf__phase_seconds {
    double sampling;
    double passes;  // forward passes of the reference, named models, critic and policy
    double scoring; // in models that rewards open
    double update;
    double tokens;   // of a response
    double held_out; // of one measurement of held-out rows; 0: there are none
    // The part of their time that the threads got while speeds were measured, if other programs
    // used the processors; 0: they did not.
    double share;
};

struct rlhf__run {
    const struct rlhf__run_request *req;
    const struct rlhf__config *config;
    struct rlhf__loading loading; // of rows and prompts
    struct rlhf__bad_rows bad_rows;
    struct rlhf__session session;
    struct rlhf__text_services *served; // the models that plugins open
    struct rlhf__cast cast;
    struct rlhf__count count;
    struct rlhf__report report;
    struct rlhf__feed *feed;
    struct rlhf__feed_env feed_env;
    struct rlhf__reward_training *reward_training; // NULL: the run does not train a reward model
    struct rlhf__learner learner;
    struct rlhf__optim *optim, *critic_optim; // critic_optim is NULL without a separate critic
    struct rlhf__early_stop early_stop;
    struct rlhf__run_history history;
    struct rlhf__best best;
    struct rlhf__boundary boundary; // the last phase boundary
    struct rlhf__saved saved;
    struct rlhf__iteration iteration; // updates of the reference, reward-model training
    struct rlhf__collective device;   // connects the GPUs of the learners; zeroed: none
    struct rlhf__actors *actors;      // on learners and actors of a split run (sample/actors.h)
    struct rlhf__chain_log *chain;    // keep/chain_log.h; NULL: this process does not write it
    json_t *inputs;                   // the list of the run's inputs (keep/manifest.h)
    int32_t bad_input; // 1: a phase showed that the config names something that does not exist
    int32_t collapsed; // 1: run.stop_on ends the run
    // Number of this machine's GPUs, if the machine's processes are assigned to them in turn. 0:
    // each process uses compute.gpu.
    uint32_t gpus;
    int64_t ahead_threads;  // CPU threads that sample ahead of training; 0: as the backend chooses
    char said_compute[256]; // the last description of the backend that was logged
    // The memory plan on which the models' memory was counted before they were loaded. NULL if
    // memory is not checked.
    struct rlhf__memory_plan *memory_plan;
    struct rlhf__phase_seconds seconds;
};

// Returns 1 if this process (rank 0) writes the files and messages of the run. [any]
static inline int rlhf__run_writes(const struct rlhf__run *r) {
    return rlhf__team_rank(r->req->team) == 0;
}

// Returns the processes that train. Returns NULL on an actor, or if only one process trains. [any]
static inline struct rlhf__team *rlhf__run_learners(const struct rlhf__run *r) {
    return r->req->split ? rlhf__split_team(r->req->split) : r->req->team;
}

// Returns 1 if rewards score the run's responses, and 0 if scores come from a record. [any]
static inline int rlhf__run_scores(const struct rlhf__run *r) {
    return !r->req->recorded || r->req->trusts == RLHF__TRUST_ANSWERS;
}

// Returns 1 if the environment runs, and 0 if its answers come from a record. [any]
static inline int rlhf__run_plays(const struct rlhf__run *r) {
    return !r->req->recorded || r->req->trusts == RLHF__TRUST_SCORES;
}

// Returns 1 if this process only samples responses. [any]
static inline int rlhf__run_acts(const struct rlhf__run *r) {
    return rlhf__split_acts(r->req->split);
}

// Disconnect the GPUs of the learners, if they are connected (r->device). [main]
void rlhf__run_device_end(struct rlhf__run *);

// Close the files that the run writes to in every phase (records.h). May be called twice. [main]
void rlhf__run_close_records(struct rlhf__run *);

// Close everything that rlhf__run_open (setup/setup.h) opened. NULL allowed. [main]
void rlhf__run_close(struct rlhf__run *);

// If st reports that a GPU ran out of memory, append to the message the settings that reduce memory
// use. Returns st. [main]
rlhf_status rlhf__run_advise(const struct rlhf__run *, rlhf_status st, struct rlhf__error *err);

// Log the backend's description if it has changed. The description changes when GEMMs of new shapes
// occur during the run. [main]
void rlhf__run_say_compute(struct rlhf__run *);

// Returns the contents of manifest.json. Borrowed. [main]
struct rlhf__manifest rlhf__run_manifest(const struct rlhf__run *);

// The exit status of a run that run.stop_on=collapse ended.
enum { RLHF__EXIT_COLLAPSED = 3 };

// ---- loop.c ----

// Run the remaining phases. On an actor, sample the responses that the learners ask for. Early
// stopping or a signal ends the run after the current phase. (After a signal, a plugin can also end
// the current phase early, with RLHF_E_CANCELLED.) At the end, a checkpoint is written if any phase
// was completed. After an error, the last phase boundary is saved as described in saving.h. [main]
rlhf_status rlhf__run_phases(struct rlhf__run *, struct rlhf__error *err);

// Which phases to run once more, and which checkpoints to write.
struct rlhf__again_wish {
    int64_t phases; // how many; 0: write only manifest.json and the beginning of chain.jsonl
    int32_t start;  // 1: also write a checkpoint of the beginning of the first phase
    // Returns 1 if the checkpoint after this phase is wanted.
    int (*keep)(void *arg, int64_t phase);
    void *arg;
};

// Run only some of the next phases, and write their files to the folder `out`: manifest.json,
// metrics.jsonl, chain.jsonl, rollouts.jsonl (if responses are sampled), and each wanted checkpoint
// in a directory that is named after its phase. The run directory is not changed. [main]
rlhf_status rlhf__run_again(struct rlhf__run *, const struct rlhf__folder *out,
                            const struct rlhf__again_wish *, struct rlhf__error *err);

#endif
