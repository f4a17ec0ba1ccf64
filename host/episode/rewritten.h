// rewritten.h: finds turns of the policy that the chat template renders differently after later
// turns have been added. Some templates drop the thoughts of earlier turns, or trim the text of
// these turns. A row cannot take over the new rendering, because it keeps the tokens that the
// policy sampled. Turns that are rendered differently are counted, or refused.
//
// The spelling of tool calls does not matter here, because calls are compared by name and
// arguments.
#ifndef RLHF_HOST_EPISODE_REWRITTEN_H
#define RLHF_HOST_EPISODE_REWRITTEN_H

#include "episode/tools.h"

// Zero-initialize except for the first three members.
struct rlhf__rewriting {
    const struct rlhf__chat *chat; // NULL: without a template nothing is rewritten
    const struct rlhf__episode_tools *tools;
    int32_t refuses;         // 1: a rewritten turn is an error (episodes.rewrites=refuse)
    int64_t past, rewritten; // out: turns that were followed by a reply; those rewritten
};

// Store the turn that was just answered, for rlhf__rewritten_count. A turn without an answer need
// not be stored, because no later turn follows it. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__rewritten_note(const struct rlhf__rewriting *, struct rlhf__episode *e,
                                 struct rlhf__error *err);

// Count the rewritten turns of an episode that is over. If the template cannot render the
// conversation, counts no turns. Errors: RLHF_E_NOMEM; with `refuses`, also RLHF_E_INVALID if a
// turn is rewritten or the template cannot render the conversation. [any]
rlhf_status rlhf__rewritten_count(struct rlhf__rewriting *, const struct rlhf__episode *e,
                                  struct rlhf__error *err);

#endif
