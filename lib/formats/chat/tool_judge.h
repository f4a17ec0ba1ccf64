// tool_judge.h: judges the tool calls that were read from a turn. Internal to chat/.
#ifndef RLHF_FORMATS_CHAT_TOOL_JUDGE_H
#define RLHF_FORMATS_CHAT_TOOL_JUDGE_H

#include "chat/tool_calls.h"

// Returns the declared tool of this name, and sets *inner to its {"name", "parameters"} object. If
// no tool of this name is declared, returns NULL and sets *inner to NULL. [any]
const json_t *rlhf__tool_named(const json_t *tools, const json_t *name, const json_t **inner);

// Returns the number of marks in a turn that only the environment or the template should write.
// `text` is NUL-ended. [any]
int32_t rlhf__tool_forged(const char *text);

// Set the faults of the calls, by the list of declared tools (NULL = none is declared). [any]
void rlhf__tool_judge(struct rlhf__tool_calls *, const json_t *tools);

#endif
