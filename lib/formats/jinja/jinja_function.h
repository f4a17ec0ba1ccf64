// jinja_function.h: the functions of a chat template that are no macros: range(), namespace() and
// so on, and the objects that cycler() and joiner() make.
#ifndef RLHF_FORMATS_JINJA_JINJA_FUNCTION_H
#define RLHF_FORMATS_JINJA_JINJA_FUNCTION_H

#include "values/jinja_args.h"

// The number of the function with this name; 0 = no function. [any]
int32_t rlhf__jinja_function_find(rlhf_str name);

// Call a function, a joiner, or fail. [any]
rlhf__value rlhf__jinja_function(struct rlhf__jinja_work *, int32_t which,
                                 const struct rlhf__jinja_args *);

// dict(...): a dictionary, or a namespace, of other dictionaries, pairs and named arguments. [any]
rlhf__value rlhf__jinja_object(struct rlhf__jinja_work *, int32_t type,
                               const struct rlhf__jinja_args *);

// Call a joiner. [any]
rlhf__value rlhf__jinja_joiner(struct rlhf__jinja_work *, rlhf__value joiner,
                               const struct rlhf__jinja_args *);

// A method or an attribute of a cycler. [any]
rlhf__value rlhf__jinja_cycler(struct rlhf__jinja_work *, rlhf__value cycler, rlhf_str name);

#endif
