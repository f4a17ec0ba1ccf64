// probe_thoughts.h: whether a model's own template writes thoughts that are a member of a message
// ("reasoning_content") as its style does. Those that were made before there were such members
// leave them out without a word.
//
// What it is not: which style it is, that is probe.h's. Internal to chat/.
#ifndef RLHF_HOST_CHAT_PROBE_THOUGHTS_H
#define RLHF_HOST_CHAT_PROBE_THOUGHTS_H

#include "chat/jinja_tree.h"
#include "chat/style.h"

// Drops RLHF__STYLE_REASONING from *s where the template, run on conversations with thoughts, says
// something else. vars as for rlhf__probe_style; its messages and add_generation_prompt are set
// here. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__probe_thoughts(const struct rlhf__jinja *, json_t *vars, struct rlhf__style *s,
                                 struct rlhf__error *err);

#endif
