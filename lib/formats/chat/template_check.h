// template_check.h: refuses a conversation of which a chat template would leave out a part.
//
// Transformers leaves such parts out without a word. Internal to chat/.
#ifndef RLHF_FORMATS_CHAT_TEMPLATE_CHECK_H
#define RLHF_FORMATS_CHAT_TEMPLATE_CHECK_H

#include "chat/template.h"

// Check that the text of a conversation has its tools, calls, results, thoughts and developer
// messages, that a list of parts is not written as code, and that the row's variables are
// read. If the short conversations of rlhf__template_learn did not show that the template writes a
// part, the conversation itself is rendered with and without it. `name` is the template's, for
// messages. Errors: RLHF_E_INVALID, RLHF_E_NOMEM. [any]
rlhf_status rlhf__template_check(const struct rlhf__template *, const char *name,
                                 const struct rlhf__messages *, int generate,
                                 struct rlhf__error *err);

#endif
