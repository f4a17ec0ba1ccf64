// run.h: everything that is alive during a training run, and its life: set up from a resolved
// config, run phase by phase, torn down.
//
// Only the set-up, the loop and the checkpoint see a whole run; everything else takes the parts
// that it names.
#ifndef RLHF_HOST_RUN_H
#define RLHF_HOST_RUN_H

#include "base/clock.h"
#include "base/env.h"
#include "feed/feed.h"
#include "feed/reward_training.h"
#include "keep/best.h"
#include "keep/boundary.h"
#include "keep/manifest.h"
#include "learn/phase.h"
#include "learn/plan.h"
#include "model/session.h"
#include "outer/iteration.h"
#include "plugin/load.h"
#include "report/findings.h"
#include "report/report.h"
#include "run/early_stop.h"

struct rlhf__memory_need;
struct rlhf__run_dir;

// A training run that is asked for, fully validated: config resolved, plugins open.
struct rlhf__run_request {
    const struct rlhf__env *env;
    struct rlhf__config *config;   // setting up writes the backend that "auto" found into it
    struct rlhf__plugins *plugins; // open models through it
    const struct rlhf__plugin *algo;
    const struct rlhf__plugin **rewards; // [config->n_reward]
    const struct rlhf__plugin *judge;    // NULL = none
    const char *resume;                  // run directory to go on with, NULL = a new run
    struct rlhf__run_dir *dir;           // keep/run_dir.h
    int32_t dry_run;                     // 1: set everything up, run no phase, write nothing
    int32_t allow_changed_plugins;       // 1: resume with other code than made the run
    int32_t allow_changed_inputs;        // 1: resume with other rows and frozen models
    int32_t reserved;
    struct rlhf__memory_need *need; // filled with the memory that the run takes; NULL = not wanted
};

// What is kept of the run on disk.
struct rlhf__saved {
    int64_t phase; // phases done in the newest checkpoint of this run, -1 = there is none
    int64_t tried; // the same of the newest attempt
    double at;     // clock of that attempt, or of the start
};

struct rlhf__run {
    const struct rlhf__run_request *req;
    const struct rlhf__config *config;
    struct rlhf__loading loading; // of rows and prompts
    struct rlhf__session session;
    struct rlhf__cast cast;
    struct rlhf__count count;
    struct rlhf__report report;
    struct rlhf__feed *feed;
    struct rlhf__feed_env feed_env;
    struct rlhf__reward_training *reward_training; // NULL: no reward model is trained on rows
    struct rlhf__learner learner;
    struct rlhf__optim *optim, *critic_optim; // critic_optim NULL without a critic of its own
    struct rlhf__early_stop early_stop;
    struct rlhf__findings findings;
    struct rlhf__best best;
    struct rlhf__boundary boundary; // the last one
    struct rlhf__saved saved;
    struct rlhf__iteration iteration; // moves of the reference, reward-model training
    json_t *inputs;         // files it reads besides its checkpoints, listed by keep/inputs.h
    int32_t bad_input;      // 1: a phase showed that the config asks for what there is not
    int32_t collapsed;      // 1: the policy has collapsed, which ends the run (run.stop_on)
    char said_compute[256]; // what was said of the backend last
    // Counted what models allocate before they were loaded; NULL without a check of memory.
    struct rlhf__memory_plan *memory_plan;
};

// Open compute, models, plugins and data as the config says and, with req->resume, put everything
// where the newest checkpoint left it. Nothing is written. Caller frees with rlhf__run_destroy.
// [main]
rlhf_status rlhf__run_create(const struct rlhf__run_request *req, struct rlhf__run **out,
                             struct rlhf__error *err);
void rlhf__run_destroy(struct rlhf__run *); // NULL allowed [main]

// If the failure st is that a device of its own ran out of memory, append to the message which
// settings take less. Returns st. [main]
rlhf_status rlhf__run_advise(const struct rlhf__run *, rlhf_status st, struct rlhf__error *err);

// Log how the backend describes itself if that has changed: it learns the shapes that it multiplies
// during the run. [main]
void rlhf__run_say_compute(struct rlhf__run *);

// What manifest.json says of the run. Borrowed. [main]
struct rlhf__manifest rlhf__run_manifest(const struct rlhf__run *);

// The exit status of a run that run.stop_on=collapse has ended.
enum { RLHF__EXIT_COLLAPSED = 3 };

// Run the remaining phases. Ends early on early stopping or a signal (the phase at hand is finished
// first, unless a plugin leaves it with RLHF_E_CANCELLED); always ends with a checkpoint when a
// phase was done. An error leaves the checkpoint of the last phase boundary too, as saving.h says.
// [main]
rlhf_status rlhf__run_phases(struct rlhf__run *, struct rlhf__error *err);

#endif
