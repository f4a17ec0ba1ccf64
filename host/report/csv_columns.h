// csv_columns.h: the columns of metrics.csv: names without what a header line cannot hold, sorted.
#ifndef RLHF_HOST_CSV_COLUMNS_H
#define RLHF_HOST_CSV_COLUMNS_H

#include "base/error.h"

struct rlhf__csv_columns {
    char **name; // [n]; a comma, a quote or a control character is '_' in it
    size_t n, cap;
};

#define RLHF__CSV_NONE SIZE_MAX

// Index of the column of a name, RLHF__CSV_NONE where there is none. [any]
size_t rlhf__csv_columns_find(const struct rlhf__csv_columns *, rlhf_str name);

// Add the name where it is missing. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__csv_columns_add(struct rlhf__csv_columns *, rlhf_str name,
                                  struct rlhf__error *err);

void rlhf__csv_columns_finish(struct rlhf__csv_columns *); // accepts a zeroed one [any]

#endif
