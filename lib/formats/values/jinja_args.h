// jinja_args.h: the arguments of a call in a chat template, and how they meet the names of a
// function's parameters. An argument that no parameter takes is an error.
#ifndef RLHF_FORMATS_VALUES_JINJA_ARGS_H
#define RLHF_FORMATS_VALUES_JINJA_ARGS_H

#include "values/jinja_value.h"

// The arguments of a call. Positional arguments have empty names.
enum { RLHF__JINJA_ARGS_MAX = 16 };
struct rlhf__jinja_args {
    size_t n;
    rlhf__value value[RLHF__JINJA_ARGS_MAX];
    rlhf_str name[RLHF__JINJA_ARGS_MAX];
};

enum { RLHF__JINJA_PARAMS_MAX = 6 };

// Give each parameter its argument. `names` lists the parameters, separated by spaces: "old new
// count=". A parameter that ends in "=" may be left out; out[i] is then undefined. The name
// of a parameter "_" or "_=" cannot be written in a call. `what` and `of` are for messages: "the
// filter" and "replace". Returns 0 and raises an error if a parameter without "=" lacks its
// argument, or if an argument does not belong to a parameter. [any]
int rlhf__jinja_bind(struct rlhf__jinja_work *, const char *what, rlhf_str of, const char *names,
                     const struct rlhf__jinja_args *, rlhf__value out[RLHF__JINJA_PARAMS_MAX]);

// The two arguments that "%.*s" needs to print a name, cut to 40 bytes.
#define RLHF__JINJA_NAME(s) (int)((s).len < 40 ? (s).len : 40), (s).ptr

#endif
