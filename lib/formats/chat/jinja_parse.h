// jinja_parse.h: a chat template as a tree: the statements and expressions of Jinja that chat
// templates are written with. A tag that is not known is refused here, a filter, test or function
// where it is met (jinja_run.h), since most templates have branches for tools that nobody enters.
//
// What it is not: it computes nothing; internal to chat/.
#ifndef RLHF_HOST_CHAT_JINJA_PARSE_H
#define RLHF_HOST_CHAT_JINJA_PARSE_H

#include "chat/jinja_tree.h"

// Zero-initialise; release with rlhf__jinja_finish. Errors: RLHF_E_UNSUPPORTED ("line 3: the tag
// 'macro' is not known"), RLHF_E_NOMEM. [any]
rlhf_status rlhf__jinja_parse(const char *text, size_t n, struct rlhf__jinja *out,
                              struct rlhf__error *err);

#endif
