// feed.h: where the rows of a run come from, whatever they are: prompts that the policy responds
// to, texts, preferences. Which it is, the set-up alone asks; phases call through ops.
#ifndef RLHF_HOST_FEED_H
#define RLHF_HOST_FEED_H

#include "base/dirs.h"
#include "config/config.h"
#include "data/loading.h"
#include "data/order.h"
#include "learn/cast.h"
#include "report/metrics.h"
#include "report/progress.h"
#include "report/reward_accounts.h"
#include "sample/experience.h"

// What feeds are made with; borrowed for as long as they live, also by what has it whole. What of
// the cast a feed needs must be there when it is made, as its header says.
struct rlhf__feed_env {
    const struct rlhf__config *config;
    const struct rlhf__cast *cast;
    const struct rlhf__dirs *dirs;
    struct rlhf__log *log;
    struct rlhf__progress *progress;
    const struct rlhf__loading *loading;
};

// A look at what is held out, at a phase's end.
struct rlhf__held_out {
    int64_t phase; // phases done, this one included
    int32_t due;   // 1: its turn has come
    int32_t reserved;
    struct rlhf__metrics *metrics;          // eval/* and what else is measured
    struct rlhf__reward_accounts *accounts; // of the rewards that pay held-out responses
};

#define RLHF__DEFAULT_PHASES 100 // of rows that do not end, where nobody names a number

struct rlhf__feed;

struct rlhf__feed_ops {
    // The next rows into a zeroed *x; `first` is the number of their first sequence in the run,
    // `version` how many optimiser steps the policy has behind it. [step]
    rlhf_status (*next)(struct rlhf__feed *, uint64_t first, int64_t version,
                        struct rlhf__experience *x, struct rlhf__error *err);
    // Some rows more, of so many further groups; the rest as for `next`. NULL = there are no
    // groups. [step]
    rlhf_status (*more)(struct rlhf__feed *, uint32_t groups, uint64_t first, int64_t version,
                        struct rlhf__experience *x, struct rlhf__error *err);
    // Rows as large as those of a phase, as far as they are known before it: of rows to come the
    // most tokens; responses are as long as they may be. Models are on paper, the cursor stays. *x
    // is zeroed before. [step]
    rlhf_status (*largest)(struct rlhf__feed *, struct rlhf__experience *x,
                           struct rlhf__error *err);
    // Do on paper what makes such rows and takes memory. NULL = nothing does. [step]
    rlhf_status (*rehearse)(struct rlhf__feed *, const struct rlhf__experience *x,
                            struct rlhf__error *err);
    // The cursor, for epochs and the checkpoint. [any]
    struct rlhf__order *(*order)(struct rlhf__feed *);
    // The models are loaded: make what needs them. NULL = nothing. [main]
    rlhf_status (*ready)(struct rlhf__feed *, struct rlhf__error *err);
    // Before the first phase: what can be checked only now. NULL = nothing. [step]
    rlhf_status (*check)(struct rlhf__feed *, struct rlhf__error *err);
    // Measure on held-out rows; called after every phase. NULL = nothing is held out. [step]
    rlhf_status (*evaluate)(struct rlhf__feed *, const struct rlhf__held_out *,
                            struct rlhf__error *err);
    // Before the models are closed. [main]
    void (*destroy)(struct rlhf__feed *);
};

// The first member of every feed.
struct rlhf__feed {
    const struct rlhf__feed_ops *ops;
    const struct rlhf__feed_env *env;
    const struct rlhf__prompts *prompts;  // that the rows respond to; NULL: rows of a file
    const struct rlhf__prompts *held_out; // that evaluate draws for; NULL: none
    int64_t phases;                       // where run.phases names no number
};

void rlhf__feed_destroy(struct rlhf__feed *); // NULL allowed [main]

// `largest` of feeds whose rows are there: those of the next phases. [step]
rlhf_status rlhf__feed_largest(struct rlhf__feed *, struct rlhf__experience *x,
                               struct rlhf__error *err);

// Longest row of a file as data.max_tokens and the policy's context say. Errors: RLHF_E_INVALID.
// [any]
rlhf_status rlhf__feed_max_tokens(const struct rlhf__feed_env *, int32_t *out,
                                  struct rlhf__error *err);

#endif
