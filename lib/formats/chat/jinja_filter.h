// jinja_filter.h: the filters of a chat template, `v | name(arguments)`, and the methods of values,
// `v.name(arguments)`.
//
// Filters and methods never change a value. Methods that would change one (append, update) are
// refused, as in the sandbox of transformers. Internal to chat/.
#ifndef RLHF_FORMATS_CHAT_JINJA_FILTER_H
#define RLHF_FORMATS_CHAT_JINJA_FILTER_H

#include "chat/jinja_text.h"

// The filter of this name; 0 = unknown. [any]
int32_t rlhf__jinja_filter_find(rlhf_str name);

// Apply filter `which` to v. `name` is only used in messages. [any]
rlhf__value rlhf__jinja_filter(struct rlhf__jinja_work *, int32_t which, rlhf_str name,
                               rlhf__value v, const struct rlhf__jinja_args *args);

// Call v.name(args). [any]
rlhf__value rlhf__jinja_method(struct rlhf__jinja_work *, rlhf_str name, rlhf__value v,
                               const struct rlhf__jinja_args *args);

// Returns 1 if dictionaries have a method of this name, such as items(). The method takes
// precedence over a member of that name. [any]
int rlhf__jinja_has_method(rlhf_str name);

#endif
