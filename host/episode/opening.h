// opening.h: turns the texts of an environment into ids: the prompts of episodes, and the replies
// to turns.
#ifndef RLHF_HOST_EPISODE_OPENING_H
#define RLHF_HOST_EPISODE_OPENING_H

#include "data/prompts.h"
#include "episode/episode.h"
#include "episode/limits.h"
#include "episode/tools.h"

// How texts become ids, with counts of what was changed.
struct rlhf__speaking {
    const struct rlhf__tokenizer *tok;
    const struct rlhf__prompts *prompts;
    const char *field; // member of a data row with its messages (prompts.field)
    // 1: the environment states the whole task; the run has no prompts of its own
    int32_t alone;
    int32_t chat;                            // 1: prompts are messages
    int32_t bos;                             // BOS of the plain form without prompts: an id, or -1
    const struct rlhf__episode_tools *tools; // of the environment
    int64_t cut, specials;                   // replies that were cut; special tokens in replies
};

// Set e->read to the ids of the episode's prompt, which consists of prompt number `row` of the run
// and the texts from reset(). Errors: RLHF_E_NOMEM, RLHF_E_INVALID (the prompt is missing), those
// of the template. [step]
rlhf_status rlhf__speak_prompt(struct rlhf__speaking *, const struct rlhf__episode_limits *,
                               struct rlhf__episode *e, int64_t row, struct rlhf__error *err);

// Set e->read to the ids of the reply to a turn. Cuts the texts of the reply if the reply would
// exceed limits->reply ids. If the turn has so many tool calls that even empty answers exceed this
// limit, the reply is longer. Errors: those of rlhf__speak_prompt. [step]
rlhf_status rlhf__speak_reply(struct rlhf__speaking *, const struct rlhf__episode_limits *,
                              struct rlhf__episode *e, struct rlhf__error *err);

#endif
