// jinja_percent.h: the operator % of strings in a chat template: '%s: %5.2f' % (name, value).
#ifndef RLHF_FORMATS_VALUES_JINJA_PERCENT_H
#define RLHF_FORMATS_VALUES_JINJA_PERCENT_H

#include "values/jinja_value.h"

// text % values. `values` is a tuple, an object for fields such as %(name)s, or a single value. If
// the text is safe HTML, the values are escaped. [any]
rlhf__value rlhf__jinja_percent(struct rlhf__jinja_work *, rlhf__value text, rlhf__value values);

#endif
