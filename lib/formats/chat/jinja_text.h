// jinja_text.h: the methods of strings in a chat template; filters use them too.
//
// It does not handle values of other types. Internal to chat/.
#ifndef RLHF_FORMATS_CHAT_JINJA_TEXT_H
#define RLHF_FORMATS_CHAT_JINJA_TEXT_H

#include "chat/jinja_value.h"

// The arguments of a call. Positional arguments have empty names.
enum { RLHF__JINJA_ARGS_MAX = 12 };
struct rlhf__jinja_args {
    size_t n;
    rlhf__value value[RLHF__JINJA_ARGS_MAX];
    rlhf_str name[RLHF__JINJA_ARGS_MAX];
};

// The argument at position i or with this name; undefined if neither is given. [any]
rlhf__value rlhf__jinja_arg(const struct rlhf__jinja_args *, size_t i, const char *name);

// Call a method of a string. If the name is unknown, sets *known to 0. [any]
rlhf__value rlhf__jinja_string_method(struct rlhf__jinja_work *, rlhf_str method, rlhf_str s,
                                      const struct rlhf__jinja_args *args, int *known);

// Returns s without the white space at its beginning (if `left` is set) and at its end (if `right`
// is set). Invalid bytes are kept. [any]
rlhf_str rlhf__space_trim(rlhf_str s, int left, int right);

#endif
