// jinja_operator.h: the operators of a chat template: arithmetic, comparisons, items and slices.
//
// "and", "or", "not" and conditions are in jinja_eval.c.
#ifndef RLHF_FORMATS_VALUES_JINJA_OPERATOR_H
#define RLHF_FORMATS_VALUES_JINJA_OPERATOR_H

#include "values/jinja_number.h"

// The operator with this spelling; 0 = unknown.
int32_t rlhf__jinja_op_find(const char *text);

// The functions below are all [any].
rlhf__value rlhf__jinja_binary(struct rlhf__jinja_work *, int32_t op, rlhf__value a, rlhf__value b);
// -v or +v.
rlhf__value rlhf__jinja_signed(struct rlhf__jinja_work *, rlhf__value v, int minus);
// The item of a list, string or object; undefined if it does not exist.
rlhf__value rlhf__jinja_item(struct rlhf__jinja_work *, rlhf__value of, rlhf__value key);
// `from`, `to` and `by` are undefined if the slice omits them.
rlhf__value rlhf__jinja_slice(struct rlhf__jinja_work *, rlhf__value of, rlhf__value from,
                              rlhf__value to, rlhf__value by);
// Returns -1 if `a` is less than `b`, 0 if they are equal, and 1 if `a` is greater. Raises an error
// for types that Python cannot compare.
int rlhf__jinja_order(struct rlhf__jinja_work *, rlhf__value a, rlhf__value b);

#endif
