// jinja_escape.h: strings that are safe as HTML, as jinja2's filters `safe` and `escape` make them.
// If a safe string meets another string, that string is escaped.
#ifndef RLHF_FORMATS_VALUES_JINJA_ESCAPE_H
#define RLHF_FORMATS_VALUES_JINJA_ESCAPE_H

#include "values/jinja_value.h"

// str(v) with the characters & < > ' and " escaped; a safe string is not changed. The result is
// safe. [any]
rlhf__value rlhf__jinja_escaped(struct rlhf__jinja_work *, rlhf__value v);

// Marks strings as safe or not safe: v itself, or the items of the list v. [any]
rlhf__value rlhf__jinja_marked(rlhf__value v, int safe);

// a + b, as safe HTML if one of them is. [any]
rlhf__value rlhf__jinja_added(struct rlhf__jinja_work *, rlhf__value a, rlhf__value b);

#endif
