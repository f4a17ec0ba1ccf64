// feed.h: the source of a run's rows: prompts that the policy responds to, texts, or preferences.
// Only the set-up asks which one it is; phases call it through ops.
#ifndef RLHF_HOST_FEED_H
#define RLHF_HOST_FEED_H

#include "base/dirs.h"
#include "config/config.h"
#include "data/lines.h"
#include "data/order.h"
#include "learn/cast.h"
#include "report/metrics.h"
#include "report/progress.h"
#include "report/reward_tallies.h"
#include "sample/experience.h"

// What feeds are created from; borrowed for their lifetime. The header of each feed says which
// parts of the cast must exist when it is opened.
struct rlhf__feed_env {
    const struct rlhf__config *config;
    const struct rlhf__cast *cast;
    const struct rlhf__dirs *dirs;
    struct rlhf__log *log;
    struct rlhf__progress *progress;
    const struct rlhf__loading *loading;
};

// A measurement on held-out rows at the end of a phase.
struct rlhf__held_out {
    int64_t phase; // phases done, this one included
    int32_t due;   // 1: measure held-out rows after this phase
    int32_t reserved;
    struct rlhf__metrics *metrics;        // receives eval/* and other measures
    struct rlhf__reward_tallies *tallies; // of the rewards that score held-out responses
};

#define RLHF__DEFAULT_PHASES 100 // when the rows never end and run.phases is not set

struct rlhf__feed;

struct rlhf__feed_ops {
    // Put the next rows into a zeroed *x; `first` is the number of their first sequence in the run,
    // `version` the number of optimiser steps that the policy has taken. [step]
    rlhf_status (*next)(struct rlhf__feed *, uint64_t first, int64_t version,
                        struct rlhf__experience *x, struct rlhf__error *err);
    // Put the rows of so many further groups into *x, otherwise as `next`. NULL = rows have no
    // groups. [step]
    rlhf_status (*more)(struct rlhf__feed *, uint32_t groups, uint64_t first, int64_t version,
                        struct rlhf__experience *x, struct rlhf__error *err);
    // Put rows as large as the largest of the next phases into *x, which the caller has zeroed:
    // the most tokens, and responses of full length. Models are on the memory plan; the cursor does
    // not move. [step]
    rlhf_status (*largest)(struct rlhf__feed *, struct rlhf__experience *x,
                           struct rlhf__error *err);
    // Make the calls that need memory while such rows are made, on the memory plan. NULL = none
    // does. [step]
    rlhf_status (*estimate)(struct rlhf__feed *, const struct rlhf__experience *x,
                            struct rlhf__error *err);
    // The cursor, for epochs and the checkpoint. [any]
    struct rlhf__order *(*order)(struct rlhf__feed *);
    // Create the parts that need loaded models. NULL = there are none. [main]
    rlhf_status (*ready)(struct rlhf__feed *, struct rlhf__error *err);
    // Make the checks that are possible only right before the first phase. NULL = none. [step]
    rlhf_status (*check)(struct rlhf__feed *, struct rlhf__error *err);
    // Measure on held-out rows; called after every phase. NULL = there are no held-out rows. [step]
    rlhf_status (*evaluate)(struct rlhf__feed *, const struct rlhf__held_out *,
                            struct rlhf__error *err);
    // Called before the models are closed. [main]
    void (*destroy)(struct rlhf__feed *);
};

// The first member of every feed.
struct rlhf__feed {
    const struct rlhf__feed_ops *ops;
    const struct rlhf__feed_env *env;
    const struct rlhf__prompts *prompts;  // that the rows respond to; NULL: the rows come from a
                                          // file
    const struct rlhf__prompts *held_out; // that evaluate samples for; NULL: none
    int64_t phases;                       // used unless run.phases is set
    int32_t texts_alone, reserved;        // 1: no row has messages
};

void rlhf__feed_destroy(struct rlhf__feed *); // NULL allowed [main]

// The op `largest` for feeds that read their rows from a file. [step]
rlhf_status rlhf__feed_largest(struct rlhf__feed *, struct rlhf__experience *x,
                               struct rlhf__error *err);

// The limit on a row's tokens by data.max_tokens and the policy's context. Errors: RLHF_E_INVALID.
// [any]
rlhf_status rlhf__feed_max_tokens(const struct rlhf__feed_env *, int32_t *out,
                                  struct rlhf__error *err);

#endif
