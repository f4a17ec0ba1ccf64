// iteration.h: the service "rlhf.iteration/1" (rlhf/draft/iteration.h) and its state in a
// checkpoint. An algorithm calls the service at the end of a phase to update the reference or to
// train the reward model. reward_round.h trains the model. batch/replay_pairs.h stores the pairs on
// which the model is trained.
#ifndef RLHF_HOST_KEEP_ITERATION_H
#define RLHF_HOST_KEEP_ITERATION_H

#include "base/folder.h"
#include "batch/replay_pairs.h"
#include "feed/feed.h"
#include "report/report.h"

#include <rlhf/draft/iteration.h>

struct rlhf__reward_model;
struct rlhf__reward_round;
struct rlhf__reward_service;

struct rlhf__iteration {
    rlhf_iteration_service table;
    const struct rlhf__config *config;
    const struct rlhf__cast *cast;
    struct rlhf__report *report;
    struct rlhf__services *services;
    const struct rlhf__experience *x; // of the phase that ends; NULL: calls are rejected
    uint64_t syncs;                   // number of times the policy was copied to the reference
    // 1: the run takes its rows from a record, without a judge or reward model. Calls of the
    // service that need a judge or a reward model then do nothing.
    int32_t recorded;
    struct rlhf__replay replay;         // used with rlhf_iteration.reward_model
    struct rlhf__reward_model *trained; // the reward model that is trained, or NULL; borrowed
    struct rlhf__reward_round *round;   // trains that model; created after it is loaded; owned
};

// Offer the service. All arguments are borrowed, and the struct `*it` must not move in memory.
// Release `*it` with rlhf__iteration_finish. Errors: those of rlhf__services_offer. [main]
rlhf_status rlhf__iteration_init(struct rlhf__iteration *it, const struct rlhf__config *config,
                                 const struct rlhf__cast *cast, struct rlhf__report *report,
                                 struct rlhf__services *services, struct rlhf__error *err);
void rlhf__iteration_finish(struct rlhf__iteration *it); // accepts a zeroed one [main]

// Open the judge (NULL = none). The rewards must already be open, because the reward model that a
// plan trains is the one that the rewards use. Errors: those of plugins; RLHF_E_INVALID if
// - the plan needs a judge, but the run is without one;
// - the rewards do not use exactly one reward model;
// - the judge uses that model too;
// - a group has only one row. [main]
rlhf_status rlhf__iteration_open(struct rlhf__iteration *it, struct rlhf__reward_service *models,
                                 const struct rlhf__plugin *judge,
                                 struct rlhf__instance **out_judge, struct rlhf__error *err);

// If a reward model is to be trained, create its reward round. Call this after the model has been
// loaded. `feed` must be a prompt feed. [main]
rlhf_status rlhf__iteration_ready(struct rlhf__iteration *it, const struct rlhf__feed *feed,
                                  struct rlhf__error *err);

// Let the service answer calls about the responses of x, until rlhf__iteration_end is called.
// [main]
void rlhf__iteration_begin(struct rlhf__iteration *it, const struct rlhf__experience *x);
void rlhf__iteration_end(struct rlhf__iteration *it);

// rlhf__iteration_save writes the state to a checkpoint's directory, and rlhf__iteration_load reads
// it. The files are:
// - state/reference.safetensors, after the reference has been updated;
// - state/replay.bin, state/reward_optimizer.safetensors and reward_model/ (a model directory), if
//   the run trains a reward model;
// - state/iteration.json.
//
// These files exist only if the run updates the reference or trains a reward model. [main]
rlhf_status rlhf__iteration_save(const struct rlhf__iteration *it, const struct rlhf__folder *dir,
                                 struct rlhf__error *err);
rlhf_status rlhf__iteration_load(struct rlhf__iteration *it, const char *dir,
                                 struct rlhf__error *err);

#endif
