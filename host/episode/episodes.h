// episodes.h: plays the episodes of a batch. During sampling, tells the decoder how each sequence
// continues after a turn (rlhf__gen_turns). After sampling, gives each row its rewards and the
// reason why its episode ended.
//
// Calls the environment between two steps of the decoder. One call covers all episodes that wait
// for the same function of the environment. An answer may come later; until then the decoder goes
// on with the other episodes. What a row contains does not depend on when answers come.
#ifndef RLHF_HOST_EPISODE_EPISODES_H
#define RLHF_HOST_EPISODE_EPISODES_H

#include "batch/rows.h"
#include "episode/opening.h"
#include "plugin/services.h"
#include "sample/decode.h"
#include "sample/experience.h"

struct rlhf__episodes; // opaque

// What the episodes of a run have in common; borrowed.
struct rlhf__episode_setup {
    const struct rlhf__instance *environment;
    const struct rlhf__model *model;
    struct rlhf__response_rules *rules; // sampling.stop
    const struct rlhf__prompts *prompts;
    const char *field; // prompts.field
    int32_t alone;     // 1: the run has no prompts (RLHF_ENVIRONMENT_TASKS)
    int32_t chat;      // 1: prompts are messages
    int32_t bos;       // 1: the plain form without prompts begins with BOS
    uint64_t seed;     // of the run
    double timeout_s;  // rewards.timeout_s
    int64_t retries;   // episodes.retries
    int32_t drops;     // 1: episodes.on_failure=drop
    int32_t refuses;   // 1: episodes.rewrites=refuse
    int32_t any_start; // 1: episodes.starts=any
    struct rlhf__episode_limits limits;
    struct rlhf__episode_tools tools; // owned; see rlhf__playing_close
};

// Check that the chat template can be used for episodes and, if the environment has tools, for
// tools. Errors: those of rlhf__bridge_check, with the environment's name. [main]
rlhf_status rlhf__episode_check_template(const struct rlhf__episode_setup *,
                                         struct rlhf__error *err);

// A batch of n rows, in groups of adjacent rows that begin with the same task.
struct rlhf__episodes_request {
    const struct rlhf__episode_setup *setup;
    const int64_t *row; // [n] the prompts of the rows
    uint32_t n, group;
    uint64_t first;     // number of row 0 within the run
    const char *stream; // random stream of the episodes' seeds
    int64_t phase;
    rlhf__metric_fn *metric; // receives the environment's metrics; NULL: the run receives them
    void *metric_ctx;
};

// The caller owns *out. Errors: RLHF_E_NOMEM. [step]
rlhf_status rlhf__episodes_open(const struct rlhf__episodes_request *, struct rlhf__episodes **out,
                                struct rlhf__error *err);
// Closes the states of episodes that are still open. NULL allowed. [step]
void rlhf__episodes_close(struct rlhf__episodes *);

// Return what the decoder needs: the functions for turns, and the arrays prompt[n] and
// prompt_len[n]. The arrays are valid until rlhf__episodes_close. The elements of a group's rows
// are set when the group begins. [step]
const struct rlhf__gen_turns *rlhf__episodes_turns(const struct rlhf__episodes *);
const int32_t *const *rlhf__episodes_prompt(const struct rlhf__episodes *);
const int32_t *rlhf__episodes_prompt_len(const struct rlhf__episodes *);

// Call this after sampling. Copies the end, rewards and verdict of each episode to the row with the
// same index. Also reports the episodes' metrics. [step]
void rlhf__episodes_take(const struct rlhf__episodes *, struct rlhf__rows *e);

// Returns 1 if episode i was given up after a failure, so that its row must be left out. [any]
int rlhf__episodes_is_lost(const struct rlhf__episodes *, uint32_t i);

// Returns what was counted in these episodes. [any]
struct rlhf__episode_counts rlhf__episodes_counts(const struct rlhf__episodes *);

#endif
