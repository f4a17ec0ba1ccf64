// jinja_spec.h: writes a value as a format specification of Python says: sign, base, precision,
// grouping, padding. Both '{:>8.2f}'.format(x) and '%8.2f' % x use it.
#ifndef RLHF_FORMATS_VALUES_JINJA_SPEC_H
#define RLHF_FORMATS_VALUES_JINJA_SPEC_H

#include "values/jinja_value.h"

struct rlhf__jinja_spec {
    rlhf_str fill;            // one character; empty = a space, or 0 if `zero` is set
    char align, sign, group;  // 0 = not given
    char type;                // 0 = not given
    int32_t alternate, zero;  // "#" and "0"
    int64_t width, precision; // -1 = not given
    int64_t digits;           // the least number of digits of an integer
};

// Reads "<fill><align><sign>#0<width><group>.<precision><type>". Raises an error if the text has
// another form. [any]
int rlhf__jinja_spec_read(struct rlhf__jinja_work *, rlhf_str text, struct rlhf__jinja_spec *out);

// format(v, spec). [any]
rlhf__value rlhf__jinja_spec_apply(struct rlhf__jinja_work *, rlhf__value v,
                                   const struct rlhf__jinja_spec *);

// The text padded to a width, which `align` (one of < > ^) places in it. [any]
rlhf__value rlhf__jinja_spec_padded(struct rlhf__jinja_work *, rlhf_str text, rlhf_str fill,
                                    char align, int64_t width);

// The first n characters of s. [any]
rlhf_str rlhf__jinja_spec_cut(struct rlhf__jinja_work *, rlhf_str s, int64_t n);

#endif
