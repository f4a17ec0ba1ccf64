// jinja_expression.h: the expressions of a chat template, as nodes.
//
// What it is not: statements, which are jinja_parse.c's; internal to chat/.
#ifndef RLHF_HOST_CHAT_JINJA_EXPRESSION_H
#define RLHF_HOST_CHAT_JINJA_EXPRESSION_H

#include "chat/jinja_parser.h"

// The expression that comes, *out = its node. Errors: RLHF_E_UNSUPPORTED, RLHF_E_NOMEM. [any]
rlhf_status rlhf__jinja_expression(struct rlhf__jinja_parser *p, int32_t *out);
// The same without a condition: "a if b" ends in front of the "if"; is_or 0: in front of an "or".
rlhf_status rlhf__jinja_logic(struct rlhf__jinja_parser *p, int is_or, int32_t *out);

#endif
