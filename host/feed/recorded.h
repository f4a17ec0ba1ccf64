// recorded.h: reads RUN/rollouts.jsonl (docs/rollouts.md), phase by phase, and makes the rows of a
// phase from it: responses with their scores, as they were before the first update. The file is not
// trusted.
#ifndef RLHF_HOST_RECORDED_H
#define RLHF_HOST_RECORDED_H

#include "feed/feed.h"

#include <jansson.h>

struct rlhf__recorded; // opaque

// Open the file. A missing file counts as an empty one. Errors: RLHF_E_IO, RLHF_E_NOMEM. [main]
rlhf_status rlhf__recorded_open(const char *path, struct rlhf__recorded **out,
                                struct rlhf__error *err);
void rlhf__recorded_close(struct rlhf__recorded *); // NULL allowed [main]

// Read the lines of a phase, which is counted from 1. *found is 0 if the file lacks the phase.
// Fastest if the phases are asked for in order. Errors: RLHF_E_INVALID (with the line's number),
// RLHF_E_NOMEM. [main]
rlhf_status rlhf__recorded_seek(struct rlhf__recorded *, int64_t phase, int *found,
                                struct rlhf__error *err);

// Return the lines of the phase's rows, and of its optimizer steps, as JSON objects. Borrowed until
// the next seek. [any]
const json_t *rlhf__recorded_rows(const struct rlhf__recorded *);
const json_t *rlhf__recorded_updates(const struct rlhf__recorded *);

// Put the phase's rows into the zeroed *x. The feed gives the prompts. version is the number of
// optimizer steps that the policy had taken when it sampled the rows, or -1 if that is not known.
// Errors: RLHF_E_INVALID (a row that cannot be one of this run), RLHF_E_UNSUPPORTED (the file lacks
// something that this run needs). [step]
rlhf_status rlhf__recorded_take(const struct rlhf__recorded *, const struct rlhf__feed *,
                                int64_t version, struct rlhf__experience *x,
                                struct rlhf__error *err);

// Copy the recorded scores and token rewards to rows that were sampled again. If the record has
// fewer rows, the others were dropped because of their scores, and are dropped here too. Errors:
// RLHF_E_INVALID (a row without score), RLHF_E_NOMEM. [step]
rlhf_status rlhf__recorded_score(const struct rlhf__recorded *, const struct rlhf__feed *,
                                 struct rlhf__experience *x, struct rlhf__error *err);

#endif
