// iteration.h: the service "rlhf.draft.iteration/0" (rlhf/draft/iteration.h), which an algorithm
// calls at the end of a phase to update the reference or train the reward model, and its state in a
// checkpoint. reward_round.h trains the reward model; batch/replay.h stores the pairs.
#ifndef RLHF_HOST_ITERATION_H
#define RLHF_HOST_ITERATION_H

#include "base/folder.h"
#include "batch/replay.h"
#include "feed/feed.h"
#include "report/report.h"

#include <rlhf/draft/iteration.h>

struct rlhf__reward_model;
struct rlhf__reward_round;
struct rlhf__reward_service;

struct rlhf__iteration {
    rlhf_iteration_service table; // first member
    const struct rlhf__config *config;
    const struct rlhf__cast *cast;
    struct rlhf__report *report;
    struct rlhf__services *services;
    const struct rlhf__experience *x;   // of the phase that ends; NULL: the service refuses calls
    uint64_t syncs;                     // number of times the policy was copied to the reference
    struct rlhf__replay replay;         // with rlhf_iteration.reward_model
    struct rlhf__reward_model *trained; // the reward model that is trained, or NULL; borrowed
    struct rlhf__reward_round *round;   // trains it, once it is loaded; owned
};

// Offer the service. All arguments are borrowed; *it must not move in memory; release with
// rlhf__iteration_finish. Errors: those of rlhf__services_offer. [main]
rlhf_status rlhf__iteration_init(struct rlhf__iteration *it, const struct rlhf__config *config,
                                 const struct rlhf__cast *cast, struct rlhf__report *report,
                                 struct rlhf__services *services, struct rlhf__error *err);
void rlhf__iteration_finish(struct rlhf__iteration *it); // accepts a zeroed one [main]

// Open the judge (NULL = none). If the plan trains a reward model, find it: the one that the run's
// rewards, which are already open, use. Errors of plugins, and RLHF_E_INVALID in these cases: the
// plan needs a judge and the run lacks one; the rewards do not use exactly one reward model; the
// judge uses that model too; groups have one row. [main]
rlhf_status rlhf__iteration_open(struct rlhf__iteration *it, struct rlhf__reward_service *models,
                                 const struct rlhf__plugin *judge,
                                 struct rlhf__instance **out_judge, struct rlhf__error *err);

// Create the round that trains that model, if there is one, after it has been loaded; feed must be
// a prompt feed. [main]
rlhf_status rlhf__iteration_ready(struct rlhf__iteration *it, const struct rlhf__feed *feed,
                                  struct rlhf__error *err);

// Let the service answer calls about the responses of x, until rlhf__iteration_end. [main]
void rlhf__iteration_begin(struct rlhf__iteration *it, const struct rlhf__experience *x);
void rlhf__iteration_end(struct rlhf__iteration *it);

// Save to the directory of a checkpoint, or load from it: state/iteration.json,
// state/reference.safetensors (once the reference has been updated) and, for a run that trains a
// reward model, state/replay.bin, state/reward_optimizer.safetensors and reward_model/, a model
// directory. Other runs save nothing here. [main]
rlhf_status rlhf__iteration_save(const struct rlhf__iteration *it, const struct rlhf__folder *dir,
                                 struct rlhf__error *err);
rlhf_status rlhf__iteration_load(struct rlhf__iteration *it, const char *dir,
                                 struct rlhf__error *err);

#endif
