// recorded.h: reads RUN/rollouts.jsonl (docs/rollouts.md), phase by phase. recorded_rows.h makes
// rows from it. The file is not trusted.
#ifndef RLHF_HOST_FEED_RECORDED_H
#define RLHF_HOST_FEED_RECORDED_H

#include "base/error.h"

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

// Returns the file's path. Borrowed. [any]
const char *rlhf__recorded_path(const struct rlhf__recorded *);

#endif
