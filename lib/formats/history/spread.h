// spread.h: distributions of a run's rows over its phases, from spread.jsonl.
#ifndef RLHF_FORMATS_HISTORY_SPREAD_H
#define RLHF_FORMATS_HISTORY_SPREAD_H

#include "history/run_lines.h"

// Set *out to the distributions of at most 120 evenly spaced phases: {"x": [phases], "of":
// {"reward": [d, d, ...], ...}}. A distribution d has the members of spread.jsonl: {"m", "n"} or
// {"m", "s", "q"}. d is null if the phase lacks the distribution, or
// if its form is unknown. *out is a new reference, or NULL if fewer than two phases have
// distributions. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__spread_read(struct rlhf__run_files *run, json_t **out, struct rlhf__error *err);

#endif
