// bridge.h: the ids between two turns of the policy in an episode: the token that ends the turn,
// what the environment says, and where the assistant speaks again.
//
// The chat template writes them once, as text, around a stand-in for the policy's turn. So the ids
// that the policy sampled are kept, and nothing is tokenised twice. What the environment says is
// spelled out in ordinary tokens: it cannot contain a special token.
//
// It does not know what the policy said; rlhf__bridge_check finds out whether that matters.
#ifndef RLHF_HOST_TEXT_BRIDGE_H
#define RLHF_HOST_TEXT_BRIDGE_H

#include "text/conversation.h"

struct rlhf__bridge {
    // What is said, by users and tools, with the tools of the conversation. A tool's call_id is the
    // one that its call had, if it had one.
    const struct rlhf__messages *said;
    size_t calls;     // of the policy's turn, as the template writes them
    int32_t with_end; // 1: the turn lacks its end token, so it is among the ids
    int32_t reserved;
};

// Append the ids to *out. Errors: RLHF_E_NOMEM; RLHF_E_INVALID if the template refuses the
// messages, or if it cannot be told where a turn ends. [any]
rlhf_status rlhf__bridge_encode(const struct rlhf__tokenizer *, const struct rlhf__bridge *,
                                struct rlhf__ids *out, struct rlhf__error *err);

// Check that the chat template can be used for episodes: that what it writes between turns does not
// depend on what the policy said. With tools 1, this is checked for tool calls and results, too.
// Errors: RLHF_E_INVALID, RLHF_E_NOMEM. [any]
rlhf_status rlhf__bridge_check(const struct rlhf__tokenizer *, int tools, struct rlhf__error *err);

#endif
