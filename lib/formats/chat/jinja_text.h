// jinja_text.h: the methods of strings in a chat template; filters use them too.
//
// It knows no other values. Internal to chat/.
#ifndef RLHF_HOST_CHAT_JINJA_TEXT_H
#define RLHF_HOST_CHAT_JINJA_TEXT_H

#include "chat/jinja_value.h"

// Arguments of a call. Positional arguments have empty names.
enum { RLHF__JINJA_ARGS_MAX = 12 };
struct rlhf__jinja_args {
    size_t n;
    rlhf__value value[RLHF__JINJA_ARGS_MAX];
    rlhf_str name[RLHF__JINJA_ARGS_MAX];
};

// The argument at position i or with this name; undefined if neither is given. [any]
rlhf__value rlhf__jinja_arg(const struct rlhf__jinja_args *, size_t i, const char *name);

// Call a method of a string. *known = 0: unknown name. [any]
rlhf__value rlhf__jinja_string_method(struct rlhf__jinja_work *, rlhf_str method, rlhf_str s,
                                      const struct rlhf__jinja_args *args, int *known);

// s without the white space at its beginning (with left) and at its end (with right). Invalid bytes
// are kept. [any]
rlhf_str rlhf__space_trim(rlhf_str s, int left, int right);

#endif
