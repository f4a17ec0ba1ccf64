// run.h: everything that is alive during a training run, and its life: set up from a resolved
// config, run phase by phase, torn down.
//
// Only the set-up, the loop and the checkpoint see a whole run; everything else takes the parts
// that it names.
#ifndef RLHF_HOST_RUN_H
#define RLHF_HOST_RUN_H

#include "base/clock.h"
#include "batch/preference_source.h"
#include "batch/text_source.h"
#include "learn/learner.h"
#include "learn/schedule.h"
#include "model/session.h"
#include "run/best.h"
#include "run/boundary.h"
#include "run/cast.h"
#include "run/count.h"
#include "run/early_stop.h"
#include "run/iteration.h"
#include "run/plan.h"
#include "run/report.h"
#include "run/request.h"
#include "run/reward_training.h"
#include "run/saving.h"

struct rlhf__rollout_source;

struct rlhf__run {
    const struct rlhf__run_request *req;
    const struct rlhf__config *config;
    struct rlhf__loading loading; // of rows and prompts
    struct rlhf__session session;
    struct rlhf__cast cast;
    struct rlhf__count count;
    struct rlhf__report report;
    struct rlhf__learner learner;
    struct rlhf__optim *optim, *critic_optim;

    struct rlhf__text_source source;               // supervised
    struct rlhf__dataset *held_out;                // data.eval_path, or NULL
    struct rlhf__preference_source preferences;    // algorithms that learn from preferences
    struct rlhf__preferences *held_out_pairs;      // data.eval_path of those, or NULL
    struct rlhf__reward_training *reward_training; // NULL: no reward model is trained on them
    int32_t max_tokens;                            // of a supervised row
    int32_t bad_input; // 1: a phase showed that the config asks for what there is not
    struct rlhf__rollout_source *rollout; // rollout algorithms
    struct rlhf__early_stop early_stop;
    struct rlhf__best best;
    struct rlhf__boundary boundary; // the last one
    struct rlhf__saving saving;
    struct rlhf__iteration iteration; // judge, reference moves, reward-model training
};

// Open compute, models, plugins and data as the config says and, with req->resume, put everything
// where the newest checkpoint left it. Nothing is written. Caller frees with rlhf__run_destroy.
// [main]
rlhf_status rlhf__run_create(const struct rlhf__run_request *req, struct rlhf__run **out,
                             struct rlhf__error *err);
void rlhf__run_destroy(struct rlhf__run *); // NULL allowed [main]

// Run the remaining phases. Ends early on early stopping or a signal (the phase at hand is finished
// first, unless a plugin leaves it with RLHF_E_CANCELLED); always ends with a checkpoint when a
// phase was done. An error leaves the checkpoint of the last phase boundary too, as saving.h says.
// [main]
rlhf_status rlhf__run_phases(struct rlhf__run *, struct rlhf__error *err);

// One phase of each kind: rows, updates, metrics; not the bookkeeping around it. [main]
rlhf_status rlhf__phase_supervised(struct rlhf__run *, struct rlhf__error *err);
rlhf_status rlhf__phase_rollout(struct rlhf__run *, struct rlhf__error *err);

// The cursor of the rows of a supervised run. [any]
struct rlhf__order *rlhf__supervised_order(struct rlhf__run *);

// The algorithm's end of a phase. [step]
rlhf_status rlhf__algo_phase_end(const struct rlhf__run *, struct rlhf__error *err);

// Learning-rate factor of the current phase. [any]
double rlhf__run_lr_factor(const struct rlhf__run *);

#endif
