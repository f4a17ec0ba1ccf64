// jinja_numeral.h: reads numbers from text, as Python's int() and float() do.
#ifndef RLHF_FORMATS_VALUES_JINJA_NUMERAL_H
#define RLHF_FORMATS_VALUES_JINJA_NUMERAL_H

#include "values/jinja_value.h"

// int(text, base); undefined if the text is something else. [any]
rlhf__value rlhf__numeral_int(struct rlhf__jinja_work *, rlhf_str text, int64_t base);

// float(text); undefined if the text is something else. [any]
rlhf__value rlhf__numeral_float(struct rlhf__jinja_work *, rlhf_str text);

#endif
