// feed.h: the source of a run's rows: prompts that the policy responds to, texts, or preferences.
// Only the set-up asks which one it is; phases call it through ops.
#ifndef RLHF_HOST_FEED_H
#define RLHF_HOST_FEED_H

#include "base/dirs.h"
#include "config/config.h"
#include "data/lines.h"
#include "data/order.h"
#include "feed/prompt_choice.h"
#include "learn/phase.h"
#include "report/metrics.h"
#include "report/progress.h"
#include "report/report.h"
#include "sample/experience.h"
#include "sample/rollout.h"

// What feeds are created from; borrowed for their lifetime. The functions below say
// which parts of the cast must exist when a feed is opened.
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
    // Put the rows of so many further groups into *x, otherwise as `next`. NULL = rows without
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
    // The cursor, for epochs and the checkpoint. With `choice` it only counts prompts. [any]
    struct rlhf__order *(*order)(struct rlhf__feed *);
    // Create the parts that need loaded models. NULL = nothing to create. [main]
    rlhf_status (*ready)(struct rlhf__feed *, struct rlhf__error *err);
    // Make the checks that are possible only right before the first phase. NULL = none. [step]
    rlhf_status (*check)(struct rlhf__feed *, struct rlhf__error *err);
    // Measure on held-out rows; called after every phase. NULL = not supported. [step]
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
    struct rlhf__prompt_choice *choice;   // NULL: the order of `prompts` decides
    int64_t phases;                       // used unless run.phases is set
    int32_t texts_alone, reserved;        // 1: all rows are texts, none messages
};

void rlhf__feed_destroy(struct rlhf__feed *); // NULL allowed [main]

// The op `largest` for feeds that read their rows from a file. [step]
rlhf_status rlhf__feed_largest(struct rlhf__feed *, struct rlhf__experience *x,
                               struct rlhf__error *err);

// The limit on a row's tokens by data.max_tokens and the policy's context. Errors: RLHF_E_INVALID.
// [any]
rlhf_status rlhf__feed_max_tokens(const struct rlhf__feed_env *, int32_t *out,
                                  struct rlhf__error *err);

// Warn if `rows` are fewer than batch.size, so that the run is `phases` optimiser steps. [main]
void rlhf__feed_few_rows(const struct rlhf__feed_env *, int64_t rows, int64_t phases);

// ---- text_feed.c: {"text"} rows, whose held-out rows measure bits per byte, and {"text", "label"}
// rows, whose held-out rows measure accuracy ----

// Read and check data.path. Tokenising comes later, because the policy may need the labels before
// it can be opened. labels: NULL = rows without labels; with labels->n = 0 the labels are counted
// in the rows, and their numbers become their names. The caller owns *out. Errors: those of
// rlhf__text_source_open. [main]
rlhf_status rlhf__text_feed_open(const struct rlhf__feed_env *, struct rlhf__labels *labels,
                                 struct rlhf__feed **out, struct rlhf__error *err);

// After the policy has been opened: read the held-out rows and tokenise all rows.
// Errors: RLHF_E_INVALID (data.max_tokens is longer than the context) and those of
// rlhf__text_source_tokenise. [main]
rlhf_status rlhf__text_feed_tokenise(struct rlhf__feed *, struct rlhf__error *err);

// ---- preference_feed.c: preference rows, to train a reward model (score head) or a policy ----
//
// Held-out rows measure how often the model agrees. Completions with a label are rows with one
// response; held-out ones measure the mean reward of each label.

struct rlhf__preferences;
struct rlhf__reward_training;

// Read and tokenise data.path and data.eval_path. Needs the plan and the policy, whose tokenizer
// decides how rows begin. The caller owns *out. Errors: those of rlhf__preferences_open. [main]
rlhf_status rlhf__preference_feed_open(const struct rlhf__feed_env *, struct rlhf__feed **out,
                                       struct rlhf__error *err);

// The rows. [any]
const struct rlhf__preferences *rlhf__preference_feed_rows(const struct rlhf__feed *);

// The run trains a reward model: measure with its gain and bias. Borrowed. [main]
void rlhf__preference_feed_trains(struct rlhf__feed *, struct rlhf__reward_training *);

// ---- prompt_feed.c: the policy's responses to the run's prompts; each phase takes a batch ----

// Read the prompts, check that they fit the context with sampling.max_new_tokens, and open the KV
// cache. Needs plan, logp_dist, rules, policy and reference. A batch is batch.size rows in groups
// of plan.group_size. The caller owns *out.
//
// ops->check samples a few short responses and compares three log-probs: of decoding, of the
// training forward pass and, with reference_is_start (the reference is the policy as it starts), of
// the reference. Before the first update all three come from the same function. So any difference
// on a backend with exact rows is RLHF_E_INTERNAL. Errors: RLHF_E_INVALID, and those of
// rlhf__rollout_prompts. [main]
rlhf_status rlhf__prompt_feed_open(const struct rlhf__feed_env *, int reference_is_start,
                                   struct rlhf__feed **out, struct rlhf__error *err);

// Longest prompt + sampling.max_new_tokens, in tokens. [any]
int32_t rlhf__prompt_feed_longest(const struct rlhf__feed *);

// Responses of `model` (the policy or one with its vocabulary) to n prompts, taken from the start
// of the file and repeated as needed. Random numbers come from the named stream, from sequence
// number `first` on. The cursor does not move. *e must be zeroed or finished. [step]
rlhf_status rlhf__prompt_feed_sample(const struct rlhf__feed *, const struct rlhf__model *model,
                                     uint32_t n, const char *stream, uint64_t first,
                                     struct rlhf__rows *e, struct rlhf__error *err);

// ---- held_out_prompts.c: the reward of responses to held-out prompts (data.eval_path) ----
//
// They are sampled, cut and rewarded as in a phase, but not learned from. The other feeds measure
// held-out rows of a file.

// Open the first data.eval_limit rows of data.eval_path by the rules of prompts.*; *out = NULL
// without data.eval_path. Needs the policy. The caller owns *out. Errors: those of
// rlhf__rollout_prompts. [main]
rlhf_status rlhf__held_out_prompts_open(const struct rlhf__feed_env *, struct rlhf__prompts **out,
                                        struct rlhf__error *err);

// Sample one response to each of q.prompts, with the same random numbers every time; q is otherwise
// a phase's request. Sets eval/reward, the mean reward, not normalised or clipped, and
// eval/<name> for every metric <name> of the rewards; logs the mean. Errors: those of rlhf__rollout
// and rlhf__score. [step]
rlhf_status rlhf__held_out_prompts_measure(const struct rlhf__feed_env *,
                                           struct rlhf__rollout_request q,
                                           const struct rlhf__held_out *, struct rlhf__error *err);

#endif
