// jinja_format.h: the method format() of strings in a chat template: '{}: {x:.2f}'.format(a, x=b).
#ifndef RLHF_FORMATS_JINJA_JINJA_FORMAT_H
#define RLHF_FORMATS_JINJA_JINJA_FORMAT_H

#include "values/jinja_args.h"

// text.format(args). If `map` is an object, its members are named arguments. If the text is safe
// HTML, the values are escaped. [any]
rlhf__value rlhf__jinja_format(struct rlhf__jinja_work *, rlhf__value text,
                               const struct rlhf__jinja_args *args, rlhf__value map);

#endif
