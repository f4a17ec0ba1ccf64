// spread.h: distributions of a run's rows over its phases, from spread.jsonl.
#ifndef RLHF_FORMATS_HISTORY_SPREAD_H
#define RLHF_FORMATS_HISTORY_SPREAD_H

#include "history/run_lines.h"

// {"x": [phases], "of": {"reward": [{"m", "q" or "n"}, ...], ...}} of at most 120 phases, evenly
// spaced; a distribution is null where a phase has none. Only distributions that are as the program
// writes them are taken. *out is a new reference, NULL if fewer than two phases have any. Errors:
// RLHF_E_NOMEM. [any]
rlhf_status rlhf__spread_read(struct rlhf__run_files *run, json_t **out, struct rlhf__error *err);

#endif
