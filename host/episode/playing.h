// playing.h: creates an environment's instance, sets up its episodes for a model and prompts, and
// samples the episodes as batches of rows.
#ifndef RLHF_HOST_EPISODE_PLAYING_H
#define RLHF_HOST_EPISODE_PLAYING_H

#include "episode/episodes.h"
#include "sample/rollout.h"

// Create the environment with its options. `section` is the config section of the options, for
// messages. Errors: those of the plugin. [main]
rlhf_status rlhf__playing_instance_open(const struct rlhf__plugin *, struct rlhf__services *,
                                        const struct rlhf__plugin_config *, const char *section,
                                        struct rlhf__instance **out, struct rlhf__error *err);

// Check that a model can compute rows of several turns. `file` is the environment's file, for the
// message. Errors: RLHF_E_UNSUPPORTED. [main]
rlhf_status rlhf__playing_check_model(const char *file, const struct rlhf__model *,
                                      struct rlhf__error *err);

// Returns 1 if the config names no prompts and `environment` (may be NULL) states its tasks itself.
// [any]
int rlhf__playing_alone(const struct rlhf__plugin *environment,
                        const struct rlhf__prompts_config *);

// For a run for which rlhf__playing_alone returns 1, open a single prompt. The only token of this
// prompt takes no part in episodes. [main]
rlhf_status rlhf__playing_no_prompts(const struct rlhf__tokenizer *, struct rlhf__prompts **out,
                                     struct rlhf__error *err);

// The inputs of rlhf__playing_open. All members are borrowed.
struct rlhf__playing {
    const struct rlhf__config *config;
    const struct rlhf__instance *environment;
    const struct rlhf__model *policy;
    struct rlhf__response_rules *rules;
    const struct rlhf__prompts *prompts;
    int32_t alone;
    int32_t held_out; // 1: the prompts only measure the policy
    uint64_t seed;
};

// Check the prompts and their rows, the tools, the limits and the chat template, and set *out.
// Release *out with rlhf__playing_close. Errors: RLHF_E_INVALID; those of the plugin. [main]
rlhf_status rlhf__playing_open(const struct rlhf__playing *, struct rlhf__episode_setup *out,
                               struct rlhf__error *err);
void rlhf__playing_close(struct rlhf__episode_setup *); // accepts a zeroed struct [main]

// Sample the episodes of a batch as rows. q describes everything about sampling except the turns.
// *tokens (may be NULL) grows by the number of tokens that the model computed. [step]
rlhf_status rlhf__playing_sample(const struct rlhf__episodes_request *,
                                 struct rlhf__rollout_request q, struct rlhf__rows *e,
                                 int64_t *tokens, struct rlhf__episode_counts *counts,
                                 struct rlhf__error *err);

// Like rlhf__playing_sample, but *e also has the rows of episodes that were given up after a
// failure. lost[i] is 1 if row i is such a row. The caller must leave these rows out. [step]
rlhf_status rlhf__playing_all(const struct rlhf__episodes_request *, struct rlhf__rollout_request q,
                              struct rlhf__rows *e, uint8_t *lost, int64_t *tokens,
                              struct rlhf__episode_counts *counts, struct rlhf__error *err);

// Leave out the rows of lost episodes. Errors: RLHF_E_IO (no row is left); RLHF_E_NOMEM. [step]
rlhf_status rlhf__playing_leave_out(const struct rlhf__episodes_request *, const uint8_t *lost,
                                    struct rlhf__rows *e, struct rlhf__error *err);

#endif
