// template_vars.h: the variables that a chat template reads, as far as its text tells.
//
// Internal to chat/.
#ifndef RLHF_FORMATS_CHAT_TEMPLATE_VARS_H
#define RLHF_FORMATS_CHAT_TEMPLATE_VARS_H

#include "chat/template.h"

// 1 if the template reads a variable (or calls a function) of this name that it does not always set
// itself. [any]
int rlhf__template_reads(const struct rlhf__template *, const char *name);

// Refuse variables that are not the user's to set, and those that neither template reads; `more`
// may be NULL. The message lists the variables that the template reads. Errors: RLHF_E_INVALID.
// [any]
rlhf_status rlhf__template_check_vars(const struct rlhf__template *,
                                      const struct rlhf__template *more, const json_t *vars,
                                      struct rlhf__error *err);

// Append Jinja statements that set each of the variables unless the caller of the template passes
// it. They end with a line end, after which the text of a template begins. [any]
void rlhf__template_put_defaults(const json_t *vars, struct rlhf__buf *out);

#endif
