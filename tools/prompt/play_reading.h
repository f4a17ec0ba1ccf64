// play_reading.h: computes the ids that a policy would read in an episode, in the same way as
// training does.
#ifndef RLHF_TOOLS_PROMPT_PLAY_READING_H
#define RLHF_TOOLS_PROMPT_PLAY_READING_H

#include "base/env.h"
#include "episode/opening.h"

// Zero-initialize; release with rlhf__play_reading_finish. tok is NULL without a policy.
struct rlhf__play_reading {
    struct rlhf__tokenizer *tok;
    struct rlhf__prompts *prompts; // the one prompt
    struct rlhf__speaking by;
    struct rlhf__episode_limits limits;
    struct rlhf__episode_tools tools; // of the environment, also without a policy
};

struct rlhf__play_policy {
    const struct rlhf__env *env;
    const struct rlhf__instance *environment;
    const char *dir; // --policy
    const struct rlhf__chat_choice *chat;
    const char *prompts; // --prompts; NULL: none
    int64_t row;         // of the prompts
    int64_t turns;
    const struct rlhf__loading *loading;
};

// Open the policy's tokenizer, and the prompt of the episode. Errors: RLHF_E_INVALID, those of
// reading the files. [main]
rlhf_status rlhf__play_reading_open(struct rlhf__play_reading *, const struct rlhf__play_policy *,
                                    struct rlhf__error *err);
void rlhf__play_reading_finish(struct rlhf__play_reading *); // accepts a zeroed one [main]

// Set e->read to the ids that the policy reads next: the ids of the prompt or, after a turn, the
// ids of the reply to the turn. Errors: those of rlhf__speak_prompt and rlhf__speak_reply. [main]
rlhf_status rlhf__play_read(struct rlhf__play_reading *, struct rlhf__episode *e,
                            struct rlhf__error *err);

#endif
