// row_act.h: checks the activation of a call.
#ifndef RLHF_KERNELS_CPU_ROW_ROW_ACT_H
#define RLHF_KERNELS_CPU_ROW_ROW_ACT_H

#include "machine/context.h"

// Returns RLHF_E_UNSUPPORTED unless `kind` is an enum rlhf_act, or 0 if `none` is set. [step]
rlhf_status rlhf__cpu_check_act(struct rlhf__cpu *cpu, const char *op, int32_t kind, int none);

#endif
