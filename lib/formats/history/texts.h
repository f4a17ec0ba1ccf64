// texts.h: the texts of the first, the middle and the last sampled phase of a run, side by side,
// from samples.jsonl.
#ifndef RLHF_FORMATS_HISTORY_TEXTS_H
#define RLHF_FORMATS_HISTORY_TEXTS_H

#include "history/run_lines.h"

// Read a list of sets: {"title", "rule", "heads": [texts], "rows": [[cell, ...], ...]}. A row has a
// cell or null for each head. A cell has "prompt", "reward" (a number or null) and one of
//   "tokens", "logp", "ref", "value"  the response by token; "ref" and "value" may be null
//   "text"                            the whole response
// A cell may also have "ratio" (the log-ratio of policy to reference), "label", "length", "rewards"
// and "cut" (1: a text was shortened). A cell of an episode also has "end", which says how the
// episode ended, and "turns", a list of {"by", "tokens", "paid"}. "by" is "policy" or
// "environment", "tokens" is how many tokens of the response this turn has, and "paid" is the
// turn's reward or null.
// For a run that samples responses, one set has the held-out prompts, and one has the rows that
// the run learned from. For other runs, a set has rows of the data. *out is a new reference to a
// list, which may be empty. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__texts_read(struct rlhf__run_files *run, json_t **out, struct rlhf__error *err);

#endif
