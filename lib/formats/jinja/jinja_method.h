// jinja_method.h: the members and methods of values in a chat template: x.name, x['name'] and
// x.name(arguments).
//
// Methods never change a list or an object. Methods that would (append, update) are refused, as in
// the sandbox of transformers.
#ifndef RLHF_FORMATS_JINJA_JINJA_METHOD_H
#define RLHF_FORMATS_JINJA_JINJA_METHOD_H

#include "values/jinja_args.h"

// The value x.name: a method comes before a member of an object. Undefined if it does not exist. An
// undefined x raises an error. [any]
rlhf__value rlhf__jinja_attribute(struct rlhf__jinja_work *, rlhf__value x, rlhf_str name);

// Like rlhf__jinja_attribute, but without the members of objects. [any]
rlhf__value rlhf__jinja_own_attribute(struct rlhf__jinja_work *, rlhf__value x, rlhf_str name);

// The value x[key]: an item comes before a method. [any]
rlhf__value rlhf__jinja_member(struct rlhf__jinja_work *, rlhf__value x, rlhf__value key);

// Returns 1 if x has a method of this name. [any]
int rlhf__jinja_has_method(rlhf__value x, rlhf_str name);

// Call x.name(args). x must have the method. [any]
rlhf__value rlhf__jinja_method(struct rlhf__jinja_work *, rlhf__value x, rlhf_str name,
                               const struct rlhf__jinja_args *args);

// The members of an object as a view. `which` is 0 for pairs (key, value), 1 for keys, 2 for
// values. [any]
rlhf__value rlhf__jinja_view(struct rlhf__jinja_work *, const struct rlhf__jinja_dict *, int which);

#endif
