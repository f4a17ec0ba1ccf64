// act.h: the activation functions (enum rlhf_act) and their derivatives, as numbers.
#ifndef RLHF_KERNELS_REFERENCE_ACT_H
#define RLHF_KERNELS_REFERENCE_ACT_H

#include "context.h"

// f(x) and f'(x) of activation `kind`.
double rlhf__ref_act_value(int32_t kind, double x);
double rlhf__ref_act_slope(int32_t kind, double x);

// Returns RLHF_E_UNSUPPORTED unless `kind` is an enum rlhf_act, or 0 if `none` is set.
rlhf_status rlhf__ref_check_act(struct rlhf__ref *r, const char *op, int32_t kind, int none);

#endif
