// recorded.h: reads RUN/rollouts.jsonl (docs/rollouts.md), phase by phase. recorded_rows.h makes
// rows from it. The file is not trusted.
#ifndef RLHF_HOST_FEED_RECORDED_H
#define RLHF_HOST_FEED_RECORDED_H

#include "base/error.h"

#include <jansson.h>

struct rlhf__recorded; // opaque

// Open the file. A missing file counts as an empty file. Errors: RLHF_E_IO, RLHF_E_NOMEM. [main]
rlhf_status rlhf__recorded_open(const char *path, struct rlhf__recorded **out,
                                struct rlhf__error *err);
void rlhf__recorded_close(struct rlhf__recorded *); // NULL allowed [main]

// Read the lines of a phase, which is counted from 1. Sets `*found` to 1 if the file has rows and
// optimizer steps of the phase, otherwise to 0. Reading is fastest if the phases are requested in
// order. Errors: RLHF_E_INVALID (with the line's number), RLHF_E_NOMEM. [main]
rlhf_status rlhf__recorded_seek(struct rlhf__recorded *, int64_t phase, int *found,
                                struct rlhf__error *err);

// rlhf__recorded_rows returns the lines of the phase's rows, and rlhf__recorded_updates the lines
// of its optimizer steps, as JSON objects. Both are borrowed until the next seek. [any]
const json_t *rlhf__recorded_rows(const struct rlhf__recorded *);
const json_t *rlhf__recorded_updates(const struct rlhf__recorded *);

// Returns the file's path. Borrowed. [any]
const char *rlhf__recorded_path(const struct rlhf__recorded *);

#endif
