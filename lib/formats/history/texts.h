// texts.h: the texts of a run's first, middle and last sampled phase, side by side, from
// samples.jsonl.
#ifndef RLHF_FORMATS_HISTORY_TEXTS_H
#define RLHF_FORMATS_HISTORY_TEXTS_H

#include "history/run_lines.h"

// A list of sets, each {"title", "rule", "heads": [texts], "rows": [[cell, ...], ...]}; a row has a
// cell for each head, or null. A cell has "prompt", "reward" (a number or null) and
//   "tokens", "logp", "ref", "value"  the response by token; ref and value may be null; or
//   "text"                            the whole response.
// "ratio" is its log-ratio to the reference; "label", "length", "rewards" and "cut" (1: only the
// beginning is there) may be missing. For a run that samples responses, the sets are its held-out
// prompts and the rows that it learned from. For any other run, they are rows of its data. *out is
// a new reference, an empty list without texts. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__texts_read(struct rlhf__run_files *run, json_t **out, struct rlhf__error *err);

#endif
