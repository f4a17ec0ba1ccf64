// phase_range.h: reads a range of phases from a flag: 7, or 2..5.
#ifndef RLHF_TOOLS_VERIFY_PHASE_RANGE_H
#define RLHF_TOOLS_VERIFY_PHASE_RANGE_H

#include "base/error.h"

#include <stdint.h>

// Read `text`, the value of `flag`, for a run with `phases` phases. If `text` is NULL, the range is
// all phases. Errors: RLHF_E_INVALID. [any]
rlhf_status rlhf__phase_range(const char *flag, const char *text, int64_t phases, int64_t *first,
                              int64_t *last, struct rlhf__error *err);

#endif
