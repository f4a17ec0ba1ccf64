// phase.h: the models and plugins of a run, its progress, and the inputs of one phase.
// run/phase_run.h runs a phase. run/loop.c does everything around it, including the algorithm's
// phase_end().
#ifndef RLHF_HOST_LEARN_PHASE_H
#define RLHF_HOST_LEARN_PHASE_H

#include "learn/learner.h"
#include "learn/plan.h"
#include "model/model.h"
#include "sample/experience.h"

#include <rlhf/algo.h>
#include <rlhf/draft/iteration.h>

struct rlhf__response_rules;

// The models and plugins. The set-up creates them; they do not change afterwards. The run owns all
// of them.
struct rlhf__cast {
    struct rlhf__model *policy;
    struct rlhf__model *reference; // NULL: the plan needs no reference
    struct rlhf__model *critic;    // NULL: the policy has the value head
    // [plan.n_named] the models that the plan names. Some entries may be the same model, or the
    // reference.
    struct rlhf__model *named[RLHF_NAMED_MAX];
    struct rlhf__instance *algo;
    struct rlhf__instance **rewards;    // [n_rewards]
    size_t n_rewards;                   // 0: rows of a file, or responses without rewards
    struct rlhf__instance *judge;       // NULL = none
    struct rlhf__instance *environment; // NULL = none is open
    struct rlhf__response_rules *rules; // for responses; NULL if none are sampled
    rlhf_plan plan;
    rlhf_iteration iteration; // the algorithm's extension; all 0 without one
    rlhf_dist logp_dist;      // the distribution of log-probs in training
    // 1: the run's environment gives rewards (RLHF_ENVIRONMENT_PAYS), even if its answers come from
    // a record
    int32_t paid;
    // 1: a reward or the judge needs the reference's log-probs (RLHF_REWARD_LOGP_REF)
    int32_t rewards_refer;
    // 1: a reward or the judge needs the log-probs from sampling, also of held-out responses
    int32_t rewards_sampled;
    struct rlhf__share share; // how minibatches are divided, and which part this process has
};

// Returns 1 if the rows of this run are responses that it samples; 0 if they are rows of a file.
// [any]
static inline int rlhf__cast_samples(const struct rlhf__cast *c) {
    return c->plan.source == RLHF_SOURCE_ROLLOUT;
}

// Returns 1 if rewards, or an environment, score the run's responses. [any]
static inline int rlhf__cast_has_rewards(const struct rlhf__cast *c) {
    return c->n_rewards > 0 || c->paid;
}

// Returns 1 if the run needs the reference's log-probs of its rows. [any]
static inline int rlhf__cast_wants_reference(const struct rlhf__cast *c) {
    return rlhf__plan_wants_reference(&c->plan) || c->rewards_refer;
}

// Returns the model that the KL head compares with, or NULL if the plan lacks such a head. [any]
static inline struct rlhf__model *rlhf__cast_kl_model(const struct rlhf__cast *c) {
    if (!(c->plan.heads & RLHF_HEAD_KL)) return NULL;
    return c->plan.divergence_from ? c->named[rlhf__plan_named(&c->plan, c->plan.divergence_from)]
                                   : c->reference;
}

// Returns 1 if this named model is also the reference or an earlier named model. [any]
static inline int rlhf__cast_is_shared(const struct rlhf__cast *c, uint32_t i) {
    for (uint32_t k = 0; k < i; k++)
        if (c->named[k] == c->named[i]) return 1;
    return c->named[i] == c->reference;
}

struct rlhf__feed;
struct rlhf__recorded;
struct rlhf__report;

// What comes from a record while responses are sampled again.
enum rlhf__trust {
    RLHF__TRUST_SCORES = 1, // the scores of rewards
    RLHF__TRUST_ANSWERS = 2 // the environment's texts, rewards and ends
};

// The run's counters. They change only in the run's loop and when a checkpoint is loaded. `phase`
// is also the number of the current phase, counted from 0; plugins receive this number. Messages
// and files count from 1, so they use phase + 1.
struct rlhf__count {
    int64_t phase;       // phases done
    int64_t first_phase; // phases done before this process
    int64_t phases;      // of the whole run
    int64_t horizon;     // phases that the learning-rate schedule spans, at least `phases`
    int64_t sequences;   // sequences so far, which is also the next one's number
    int64_t flat_phases; // phases in which all responses to each prompt had the same reward
    // If the policy's adapter has not changed since the start of the run, the number of phases so
    // far. Otherwise, or without an adapter, 0.
    int64_t still_phases;
    int32_t stop; // 1: early stopping ends the run after this phase
};

// The parts of a run that a phase uses, and the rows of the phase.
struct rlhf__phase {
    const struct rlhf__config *config;
    const struct rlhf__cast *cast;
    // not yet increased: count->phase is this phase's number, from 0
    const struct rlhf__count *count;
    struct rlhf__feed *feed;
    struct rlhf__learner *learner;
    struct rlhf__report *report;
    const struct rlhf__recorded *recorded; // responses and scores; NULL: they are sampled
    // Bits of enum rlhf__trust; 0: responses come from the record, too
    int32_t trusts;
    int32_t texts_alone; // 1: every row of the feed is a text; 0: some rows are messages
    int32_t has_adapter;
    double adapter_norm;       // how far the adapter moved (model/adapter.h)
    struct rlhf__experience x; // the phase's rows; zeroed before the phase, released by the caller
};

// Returns 1 if the phase computes scores, and 0 if they come from a record. [any]
static inline int rlhf__phase_scores(const struct rlhf__phase *p) {
    return !p->recorded || p->trusts == RLHF__TRUST_ANSWERS;
}

#endif
