// tools.h: lists an environment's tools in the prompt, finds the tool calls in a turn of the
// policy, and answers wrong calls in place of the environment.
//
// A tool call is wrong if it cannot be read, names no declared tool or lacks a required argument.
// If a turn has a wrong call, the host answers each call of that turn with {"error": "..."}, and
// does not ask the environment.
#ifndef RLHF_HOST_EPISODE_TOOLS_H
#define RLHF_HOST_EPISODE_TOOLS_H

#include "chat/tool_form.h"
#include "config/schema.h"
#include "episode/episode.h"
#include "plugin/services.h"
#include "tokenizer/conversation.h"

// All 0 for an environment without tools. Release with rlhf__episode_tools_finish.
struct rlhf__episode_tools {
    json_t *list;   // as the environment declares them; NULL = none
    int32_t form;   // of calls: enum rlhf__tool_form
    int32_t listed; // 1: the chat template lists them in prompts
    int32_t marked; // 1: results are a user's text, each between <result> and </result>
};

// Ask the environment for its list of tools, and choose the form of tool calls: the form in the
// settings, else the chat template's form, else XML. `chat` is NULL if prompts are not messages.
// Errors: RLHF_E_INVALID (the list is invalid; the template has no place for tools). [main]
rlhf_status rlhf__episode_tools_open(const struct rlhf__instance *environment,
                                     const struct rlhf__episodes_config *,
                                     const struct rlhf__chat *chat, struct rlhf__episode_tools *out,
                                     struct rlhf__error *err);
void rlhf__episode_tools_finish(struct rlhf__episode_tools *); // [any]

// Set *out to the number of tokens that the list of tools adds to a prompt. Errors: those of the
// template. [main]
rlhf_status rlhf__episode_tools_tokens(const struct rlhf__episode_tools *,
                                       const struct rlhf__tokenizer *, int32_t *out,
                                       struct rlhf__error *err);

// Find the tool calls in a turn, store them in e->calls, and count them. The text `turn` includes
// special tokens, except the one that ended the turn. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__episode_tools_read(const struct rlhf__episode_tools *, struct rlhf__episode *e,
                                     rlhf_str turn, struct rlhf__error *err);

// Call this for a turn that has a wrong tool call. The host answers each tool call of the turn, and
// these answers become the reply to the turn. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__episode_tools_refuse(struct rlhf__episode *e, struct rlhf__error *err);

#endif
