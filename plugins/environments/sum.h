// sum.h: computes expressions of whole numbers, such as "12*(3+4)".
#ifndef RLHF_PLUGINS_ENVIRONMENTS_SUMS_SUM_H
#define RLHF_PLUGINS_ENVIRONMENTS_SUMS_SUM_H

#include <rlhf/base.h>

// The largest absolute value allowed for a number or an intermediate result.
#define RLHF__SUM_MOST INT64_C(1000000000000000)

// Compute an expression with + - * / and brackets. Spaces are ignored. A quotient must be a whole
// number. Returns NULL and sets *value, or returns an error message. [any]
const char *rlhf__sum(rlhf_str expression, int64_t *value);

#endif
