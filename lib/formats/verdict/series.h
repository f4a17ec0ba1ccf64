// series.h: the metrics of a run as series of numbers, one series for each name.
//
// This file does not read files or judge runs. Callers need to keep only the metrics that the rules
// (rules.h, verdict.h) read; rlhf__series_is_read returns 1 for these.
#ifndef RLHF_FORMATS_VERDICT_SERIES_H
#define RLHF_FORMATS_VERDICT_SERIES_H

#include "base/buf.h"
#include "base/error.h"

#include <jansson.h>

// The values are finite, and the phases ascend. Phase 0 has values that were measured before the
// first phase.
struct rlhf__series {
    char *name;
    int64_t *phase; // [n]
    double *value;  // [n]
    int64_t n, cap;
};

// Zero-initialize; release with rlhf__series_set_finish.
struct rlhf__series_set {
    struct rlhf__series *all;
    size_t n, cap;
};

void rlhf__series_set_finish(struct rlhf__series_set *); // accepts a zeroed set [any]

// 1 if the verdict or one of the rules reads the metric with this name. [any]
int rlhf__series_is_read(const char *name);

// Append a value. The value is ignored if it is not finite, or if the series already has a value
// for this phase or a later one. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__series_set_put(struct rlhf__series_set *, const char *name, int64_t phase,
                                 double value, struct rlhf__error *err);

// Append the values of a line of metrics.jsonl, for all metrics that rlhf__series_is_read accepts.
// `phase` is the phase of the values; if it is negative, the whole line is ignored. Finally
// calls rlhf__series_set_derive. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__series_set_row(struct rlhf__series_set *, const json_t *row, int64_t phase,
                                 struct rlhf__error *err);

// If the phase lacks objective/kl_per_token, make it from objective/kl. If the policy was still
// equal to its reference at the first phase, make the series of preference accuracies begin with
// chance (at most 0.5). Call this function after all metrics of the phase are appended. Errors:
// RLHF_E_NOMEM. [any]
rlhf_status rlhf__series_set_derive(struct rlhf__series_set *, int64_t phase,
                                    struct rlhf__error *err);

// 1 if rlhf__series_set_derive made the series with this name begin with chance. [any]
int rlhf__series_begins_with_chance(const struct rlhf__series_set *, const char *name);

// Find a series by name. Returns an empty series if the name is unknown. Borrowed until the next
// change. [any]
const struct rlhf__series *rlhf__series_of(const struct rlhf__series_set *, const char *name);

// Append a curve of block characters; `columns` is its maximum width. Appends nothing for fewer
// than two values. [any]
void rlhf__put_sparkline(struct rlhf__buf *out, const struct rlhf__series *, int columns);

#endif
