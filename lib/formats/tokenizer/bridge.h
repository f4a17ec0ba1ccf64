// bridge.h: the ids between two turns of the policy in an episode: the token that ends the first
// turn, the messages of the environment, and the beginning of the assistant's next turn.
//
// The chat template renders the messages around a stand-in for the policy's turn, and only the ids
// after the stand-in are used. So the sampled ids do not change, and no text is tokenized twice.
// The environment's text is encoded in ordinary tokens only, so it cannot contain a special token.
//
// The text of the policy is not used here. rlhf__bridge_check finds out whether that text would
// matter.
#ifndef RLHF_FORMATS_TOKENIZER_BRIDGE_H
#define RLHF_FORMATS_TOKENIZER_BRIDGE_H

#include "tokenizer/conversation.h"

struct rlhf__bridge {
    // The messages that follow the policy's turn, from users and tools, and the list of tools that
    // the conversation offers. A tool message has the call_id of the call that it answers, if that
    // call had an id.
    const struct rlhf__messages *said;
    size_t calls;     // number of calls in the policy's turn, as the template writes them
    int32_t with_end; // 1: the policy's turn lacks its end token, so the ids begin with one
};

// Append the ids to *out. Errors: RLHF_E_NOMEM; RLHF_E_INVALID if the template refuses the
// messages, or if we cannot determine where the template ends a turn. [any]
rlhf_status rlhf__bridge_encode(const struct rlhf__tokenizer *, const struct rlhf__bridge *,
                                struct rlhf__ids *out, struct rlhf__error *err);

// Check that the chat template can be used for episodes. For this, its text between two turns must
// not depend on the text of the policy, and the token that ends a turn must be in the vocabulary.
// If `tools` is 1, tool calls and their results are checked too. Errors: RLHF_E_INVALID,
// RLHF_E_NOMEM. [any]
rlhf_status rlhf__bridge_check(const struct rlhf__tokenizer *, int tools, struct rlhf__error *err);

#endif
