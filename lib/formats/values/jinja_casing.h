// jinja_casing.h: strings of a chat template in upper and lower case and as titles, and questions
// about all characters of a string, as Python's methods answer them.
#ifndef RLHF_FORMATS_VALUES_JINJA_CASING_H
#define RLHF_FORMATS_VALUES_JINJA_CASING_H

#include "values/jinja_value.h"

// The methods upper, lower, title, capitalize, casefold and swapcase. [any]
rlhf__value rlhf__jinja_cased(struct rlhf__jinja_work *, rlhf_str method, rlhf_str s);

// The filter `title`, which has another idea of a word than the method. [any]
rlhf__value rlhf__jinja_title(struct rlhf__jinja_work *, rlhf_str s);

// The methods isdigit, islower and so on. Returns 0 or 1. [any]
int rlhf__jinja_is_all(struct rlhf__jinja_work *, rlhf_str method, rlhf_str s);

#endif
