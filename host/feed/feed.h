// feed.h: the source of a run's rows: texts, preferences, or prompts to which the policy responds.
// Only the code that sets up a run knows which kind the feed is. Phases call the feed through
// `ops`. A new kind needs its own file, an entry in setup/setup_rows.c, which opens the models that
// its rows need, and its limits in learn/plan.c, setup/setup.c and setup/effect_rules.c.
#ifndef RLHF_HOST_FEED_FEED_H
#define RLHF_HOST_FEED_FEED_H

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

#include <signal.h>

// Everything that is needed to create feeds; borrowed for the feeds' lifetime. Each function that
// opens a feed says which parts of the cast must already exist.
struct rlhf__feed_env {
    const struct rlhf__config *config;
    const struct rlhf__cast *cast;
    const struct rlhf__dirs *dirs;
    struct rlhf__log *log;
    struct rlhf__progress *progress;
    const struct rlhf__loading *loading;
    const struct rlhf__plugin *environment; // the run's, even if it is not open; NULL = none
    // A record that has the environment's answers, positioned at the current phase. If NULL, the
    // answers come from the environment, if the run has one.
    const struct rlhf__recorded *answers;
    // A flag that ends the sampling of the current phase; NULL: the phase is finished.
    const volatile sig_atomic_t *abandons;
};

// The request to measure held-out rows at the end of a phase.
struct rlhf__held_out {
    int64_t phase;                        // phases done, including this one
    int32_t due;                          // 1: measure held-out rows after this phase
    struct rlhf__metrics *metrics;        // receives eval/* and other metrics
    struct rlhf__samples *samples;        // receives some held-out responses; NULL: none
    struct rlhf__reward_tallies *tallies; // of the rewards that score held-out responses
};

#define RLHF__ESTIMATED_ROWS 256 // held-out rows of a file on which a measurement is estimated
#define RLHF__DEFAULT_PHASES 100 // if the rows never end and run.phases is not set

struct rlhf__ahead;
struct rlhf__episode_setup;
struct rlhf__feed;
struct rlhf__recorded;
struct rlhf__actor_order;
struct rlhf__sampled;

// The calls that estimate how long a measurement of held-out rows takes.
struct rlhf__held_out_estimate {
    double share; // the part of the rows that the calls covered; 0: there are no held-out rows
    uint32_t responses; // that a measurement samples; the calls sampled two tokens of each
};

struct rlhf__feed_ops {
    // Put the next rows into *x, which is zeroed. `first` is the number of the first of these rows
    // within the run. `version` is the number of optimizer steps that the policy has taken. [step]
    rlhf_status (*next)(struct rlhf__feed *, uint64_t first, int64_t version,
                        struct rlhf__experience *x, struct rlhf__error *err);
    // Like `next`, but put the rows of further groups into *x; `groups` is their number. This op is
    // NULL if rows have no groups. [step]
    rlhf_status (*more)(struct rlhf__feed *, uint32_t groups, uint64_t first, int64_t version,
                        struct rlhf__experience *x, struct rlhf__error *err);
    // For the memory estimate, fill *x, which the caller has zeroed, with the largest rows that the
    // next phases can have. These are the longest prompts with responses of full length. The models
    // compute nothing, because they are on a memory plan (estimate/memory_plan.h). Does not move
    // the cursor. [step]
    rlhf_status (*largest)(struct rlhf__feed *, struct rlhf__experience *x,
                           struct rlhf__error *err);
    // Make the allocations that would be made if the rows of x were sampled. Nothing is computed,
    // because the models are on a memory plan. This op is NULL if sampling allocates nothing.
    // [step]
    rlhf_status (*estimate)(struct rlhf__feed *, const struct rlhf__experience *x,
                            struct rlhf__error *err);
    // Returns the cursor. Epochs are counted from it, and checkpoints store it. If `choice` is set,
    // the algorithm chooses the prompts, and the cursor only counts prompts. [any]
    struct rlhf__order *(*order)(struct rlhf__feed *);
    // Create the parts that need loaded models. NULL = nothing to create. [main]
    rlhf_status (*ready)(struct rlhf__feed *, struct rlhf__error *err);
    // Make the checks that are possible only just before the first phase. NULL = none. [step]
    rlhf_status (*check)(struct rlhf__feed *, struct rlhf__error *err);
    // Measure held-out rows. Called after every phase. NULL: the feed does not measure held-out
    // rows. [step]
    rlhf_status (*evaluate)(struct rlhf__feed *, const struct rlhf__held_out *,
                            struct rlhf__error *err);
    // Make the calls that measuring some of the held-out rows would make. Nothing is computed,
    // because the models are on a memory plan. NULL: the feed does not measure held-out rows.
    // [step]
    rlhf_status (*estimate_held_out)(struct rlhf__feed *, struct rlhf__held_out_estimate *,
                                     struct rlhf__error *err);
    // Must be called before the models are closed. [main]
    void (*destroy)(struct rlhf__feed *);
};

// The first member of every feed.
struct rlhf__feed {
    const struct rlhf__feed_ops *ops;
    const struct rlhf__feed_env *env;
    // the prompts that rows respond to; NULL: rows come from a file
    const struct rlhf__prompts *prompts;
    const struct rlhf__prompts *held_out; // the prompts that `evaluate` uses; NULL: none
    struct rlhf__prompt_choice *choice;   // NULL: prompts are used in their order
    struct rlhf__ahead *ahead;            // owned; NULL: without rollout.ahead
    int64_t phases;                       // number of phases unless run.phases is set
    int32_t texts_alone;                  // 1: every row is a text; 0: some rows are messages
    // Set by the op `largest` for rows of a file: the mean number of tokens of a phase, divided by
    // that of the largest phase. 0: not known.
    double typical;
};

void rlhf__feed_close(struct rlhf__feed *); // NULL allowed [main]

// The op `largest` for feeds that read their rows from a file. [step]
rlhf_status rlhf__feed_largest(struct rlhf__feed *, struct rlhf__experience *x,
                               struct rlhf__error *err);

// Set *out to the limit on a row's tokens. If data.max_tokens is 0, the limit is the policy's
// context, otherwise data.max_tokens. Errors: RLHF_E_INVALID if data.max_tokens is greater than the
// context. [any]
rlhf_status rlhf__feed_max_tokens(const struct rlhf__feed_env *, int32_t *out,
                                  struct rlhf__error *err);

// If `rows`, the number of rows, is smaller than batch.size, warn that the run will have few
// optimizer steps; `phases` is their number. [main]
void rlhf__feed_few_rows(const struct rlhf__feed_env *, int64_t rows, int64_t phases);

// ---- text_feed.c: {"text"} rows, and {"text", "label"} rows for a classifier ----
//
// On held-out rows this feed measures bits per byte, or accuracy if there are labels.

// Read and check the rows of data.path. The rows are tokenized later, because the policy may need
// the labels before it can be opened. The caller owns *out. `labels` is NULL for rows without
// labels. If labels->n is 0, the function sets it to the number of labels in the rows, and names
// them LABEL_0, LABEL_1, ... Errors: those of rlhf__text_source_open. [main]
rlhf_status rlhf__text_feed_open(const struct rlhf__feed_env *, struct rlhf__labels *labels,
                                 struct rlhf__feed **out, struct rlhf__error *err);

// Read the held-out rows and tokenize all rows. The policy must be open. Errors: RLHF_E_INVALID
// (data.max_tokens is greater than the context) and those of rlhf__text_source_tokenize. [main]
rlhf_status rlhf__text_feed_tokenize(struct rlhf__feed *, struct rlhf__error *err);

// ---- preference_feed.c: preference rows, to train a reward model (score head) or a policy ----
//
// On held-out pairs, this feed measures how often the model agrees with the preference. On held-out
// completions with a label, which are rows with one response, it measures the mean reward for each
// label.

struct rlhf__preferences;
struct rlhf__reward_training;

// Read and tokenize data.path and data.eval_path. Needs the plan, and the policy, whose tokenizer
// decides how rows begin. The caller owns *out. Errors: those of rlhf__preferences_open. [main]
rlhf_status rlhf__preference_feed_open(const struct rlhf__feed_env *, struct rlhf__feed **out,
                                       struct rlhf__error *err);

// Returns the rows. [any]
const struct rlhf__preferences *rlhf__preference_feed_rows(const struct rlhf__feed *);

// Tell the feed that the run trains a reward model, so that the feed measures rewards with the
// head's gain and bias. The reward training is borrowed. [main]
void rlhf__preference_feed_trains(struct rlhf__feed *, struct rlhf__reward_training *);

// ---- prompt_feed.c: responses of the policy to the run's prompts, a batch in each phase ----

// Read the prompts, and check that the context has room for each prompt and sampling.max_new_tokens
// more tokens. The members `plan`, `logp_dist`, `rules`, `policy` and `reference` of the cast must
// be set. A batch has batch.size rows in groups of plan.group_size. The caller owns *out. Errors:
// RLHF_E_INVALID, and those of rlhf__rollout_prompts.
//
// `reference_is_start` is 1 if the reference equals the policy at the start of the run. The feed's
// ops->check passes it to rlhf__start_check. [main]
rlhf_status rlhf__prompt_feed_open(const struct rlhf__feed_env *, int reference_is_start,
                                   struct rlhf__feed **out, struct rlhf__error *err);

// Returns 1 if log-probs are normalized over the tokens that top-k, top-p or min-p kept while
// sampling. [any]
int rlhf__prompt_feed_keeps_support(const struct rlhf__feed *);

// Returns the length limit of a row in tokens: the longest prompt plus sampling.max_new_tokens.
// With an environment, returns the limit of an episode's length. [any]
int32_t rlhf__prompt_feed_longest(const struct rlhf__feed *);

// Sample responses of `model` to n prompts, which are taken from the start of the file and repeated
// as needed. `model` is the policy, or a model with the policy's vocabulary. `stream` names the
// random stream; the sequence numbers begin with `first`. The function does not move the cursor.
// Before the call, *e must be zeroed or released (rlhf__rows_finish). [step]
rlhf_status rlhf__prompt_feed_sample(const struct rlhf__feed *, const struct rlhf__model *model,
                                     uint32_t n, const char *stream, uint64_t first,
                                     struct rlhf__rows *e, struct rlhf__error *err);

// With feed->ahead, begin to sample the batch of the next phase; `phase` is its number. `first` and
// `version` are as in ops->next. Moves the cursor. [step]
rlhf_status rlhf__prompt_feed_ahead(struct rlhf__feed *, int64_t phase, uint64_t first,
                                    int64_t version, struct rlhf__error *err);

// On an actor, sample the actor's part of the batch. Errors: those of rlhf__rollout;
// RLHF_E_INTERNAL. [step]
rlhf_status rlhf__prompt_feed_act(struct rlhf__feed *, const struct rlhf__actor_order *,
                                  struct rlhf__sampled *out, struct rlhf__error *err);

// Read the batch in flight from the checkpoint in `dir`. Errors: those of rlhf__ahead_load. [main]
rlhf_status rlhf__prompt_feed_ahead_load(struct rlhf__feed *, const char *dir,
                                         struct rlhf__error *err);

// Like the op `estimate`, but for the rows of the next phase, which are sampled while the policy
// trains. The KV cache is therefore open during training. Returns it in `*cache`; the caller closes
// it together with the sampler's model. Does nothing if actors sample the rows. [step]
rlhf_status rlhf__prompt_feed_estimate_ahead(struct rlhf__feed *, const struct rlhf__experience *x,
                                             rlhf_gen **cache, struct rlhf__error *err);

// ---- held_out_prompts.c: the reward of responses to held-out prompts (data.eval_path) ----
//
// The responses to held-out prompts are sampled, cut and rewarded as in a phase, but not trained
// on. (The other feeds measure held-out rows of a file.)

// Open the first rows of data.eval_path; data.eval_limit is their maximum number. The settings
// prompts.* apply to these rows. *out is NULL if data.eval_path is not set. Needs the policy. The
// caller owns *out. Errors: those of rlhf__rollout_prompts. [main]
rlhf_status rlhf__held_out_prompts_open(const struct rlhf__feed_env *, struct rlhf__prompts **out,
                                        struct rlhf__error *err);

// Sample one response to each of q.prompts, with the same random numbers every time. All other
// members of q are as in a phase's request. If `episodes` is not NULL, samples episodes instead of
// single responses, and also reports the episodes' metrics. Sets eval/reward to the mean reward
// without normalization and clipping, and logs this mean. Also sets eval/<name> for every metric
// <name> of the rewards. Errors: those of rlhf__rollout and rlhf__score. [step]
rlhf_status rlhf__held_out_prompts_measure(const struct rlhf__feed_env *,
                                           struct rlhf__rollout_request q,
                                           const struct rlhf__episode_setup *episodes,
                                           const struct rlhf__held_out *, struct rlhf__error *err);

#endif
