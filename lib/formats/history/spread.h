// spread.h: distributions of a run's rows over its phases, from spread.jsonl.
#ifndef RLHF_FORMATS_HISTORY_SPREAD_H
#define RLHF_FORMATS_HISTORY_SPREAD_H

#include "history/run_lines.h"

// Read at most 120 phases, evenly spaced: {"x": [phases], "of": {"reward": [{"m", "n"} or {"m",
// "s", "q"}, ...], ...}}. If a phase lacks a distribution, its entry is null. Older versions wrote
// no "s". Distributions in an unknown form are left out. *out is a new reference, or NULL for fewer
// than two phases. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__spread_read(struct rlhf__run_files *run, json_t **out, struct rlhf__error *err);

#endif
