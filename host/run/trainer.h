// trainer.h: everything that is alive during a training run, and its life: set up from a resolved
// config, run phase by phase, torn down.
//
// The numbers are made elsewhere: learner.h (updates), rollout.h and scoring.h (experience),
// text_source.h (supervised rows), checkpoint.h (files).
#ifndef RLHF_HOST_TRAINER_H
#define RLHF_HOST_TRAINER_H

#include "base/clock.h"
#include "batch/preference_source.h"
#include "batch/text_source.h"
#include "learn/learner.h"
#include "learn/schedule.h"
#include "model/session.h"
#include "report/metrics.h"
#include "report/progress.h"
#include "report/samples.h"
#include "run/best.h"
#include "run/boundary.h"
#include "run/early_stop.h"
#include "run/iteration.h"
#include "run/request.h"
#include "run/reward_training.h"
#include "run/rollout_log.h"
#include "run/saving.h"

// Wall-clock seconds of the current phase by part.
struct rlhf__phase_times {
    double start, rollout, reward, reference, update;
    int64_t rollout_tokens; // response tokens that were sampled
    int64_t model_tokens;   // that went through the model for it; a shared prompt counts once
};

// Samples of the phase at hand; their texts lie in bytes.
struct rlhf__shown {
    struct rlhf__sample *rows; // [n]
    char *bytes;
    size_t n;
};

struct rlhf__rollout_source;

struct rlhf__trainer {
    const struct rlhf__run_request *req;
    const struct rlhf__config *config;
    struct rlhf__log *log;

    struct rlhf__loading loading; // of rows and prompts
    struct rlhf__session session;
    struct rlhf__model *policy, *reference;
    struct rlhf__model *critic; // NULL: the value head is the policy's
    struct rlhf__instance *algo;
    struct rlhf__instance **rewards; // [config->n_reward]
    rlhf_plan plan;
    struct rlhf__learner learner;
    struct rlhf__optim *optim, *critic_optim;

    struct rlhf__text_source source;               // supervised
    struct rlhf__dataset *held_out;                // data.eval_path, or NULL
    struct rlhf__preference_source preferences;    // algorithms that learn from preferences
    struct rlhf__preferences *held_out_pairs;      // data.eval_path of those, or NULL
    struct rlhf__reward_training *reward_training; // NULL: no reward model is trained on them
    int32_t max_tokens;                            // of a supervised row
    int32_t reserved0;
    struct rlhf__rollout_source *rollout; // rollout algorithms
    struct rlhf__response_rules *rules;   // of their responses
    struct rlhf__early_stop early_stop;
    struct rlhf__best best;
    struct rlhf__boundary boundary; // the last one
    struct rlhf__saving saving;
    struct rlhf__iteration iteration; // judge, reference moves, reward-model training

    struct rlhf__metrics *metrics;
    struct rlhf__samples *samples;
    struct rlhf__shown shown;
    struct rlhf__rollout_log *rollout_log; // NULL unless log.rollouts
    struct rlhf__progress *progress;
    struct rlhf__phase_times times;
    double started;      // clock at the start of the process
    double began;        // clock when the phases of this process began: what an ETA goes by
    double peak_flops;   // measured after the first phase; 0 = not yet
    int64_t phase;       // phases done
    int64_t first_phase; // phases done before this process
    int64_t phases, horizon;
    int64_t episodes;  // sequences seen
    int32_t stop;      // 1: early stopping said so
    int32_t bad_input; // 1: a phase showed that the config asks for what there is not
};

// Open compute, models, plugins and data as the config says and, with req->resume, put everything
// where the newest checkpoint left it. Nothing is written. Caller frees with rlhf__trainer_destroy.
// [main]
rlhf_status rlhf__trainer_create(const struct rlhf__run_request *req, struct rlhf__trainer **out,
                                 struct rlhf__error *err);
void rlhf__trainer_destroy(struct rlhf__trainer *); // NULL allowed [main]

// Run the remaining phases. Ends early on early stopping or a signal (the phase at hand is finished
// first, unless a plugin leaves it with RLHF_E_CANCELLED); always ends with a checkpoint when a
// phase was done. An error leaves the checkpoint of the last phase boundary too, as saving.h says.
// [main]
rlhf_status rlhf__trainer_run(struct rlhf__trainer *, struct rlhf__error *err);

// One phase of each kind: rows, updates, metrics; not the bookkeeping around it. [main]
rlhf_status rlhf__phase_supervised(struct rlhf__trainer *, struct rlhf__error *err);
rlhf_status rlhf__phase_rollout(struct rlhf__trainer *, struct rlhf__error *err);

// The cursor of the rows of a supervised run. [any]
struct rlhf__order *rlhf__supervised_order(struct rlhf__trainer *);

// The algorithm's end of a minibatch and of a phase. [step]
rlhf_status rlhf__algo_minibatch_end(const struct rlhf__trainer *, int32_t *stop,
                                     struct rlhf__error *err);
rlhf_status rlhf__algo_phase_end(const struct rlhf__trainer *, struct rlhf__error *err);

// 1 when the algorithm wants to know what the reference says of the responses. [any]
int rlhf__trainer_compares(const struct rlhf__trainer *);

// Learning-rate factor of the current phase. [any]
double rlhf__trainer_lr_factor(const struct rlhf__trainer *);

#endif
