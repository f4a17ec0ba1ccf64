// spread.h: distributions of a run's rows over its phases, from spread.jsonl.
#ifndef RLHF_FORMATS_HISTORY_SPREAD_H
#define RLHF_FORMATS_HISTORY_SPREAD_H

#include "history/run_lines.h"

// {"x": [phases], "of": {"reward": [{"m", "n"} or {"m", "s", "q"}, ...], ...}} of at most 120
// phases, evenly spaced; a distribution that a phase lacks is null, and older versions wrote no
// "s". Distributions of another form than the program writes are left out. *out is a new reference,
// NULL for fewer than two phases. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__spread_read(struct rlhf__run_files *run, json_t **out, struct rlhf__error *err);

#endif
