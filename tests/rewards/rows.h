// rows.h: rewards that read the data row with the host's "rlhf.row/0", and rows for them.
#ifndef RLHF_TESTS_REWARDS_ROWS_H
#define RLHF_TESTS_REWARDS_ROWS_H

#include "rewards/fixture.h"

#include "plugin/row_service.h"

// Scores one response to the prompt "It was " with this data row. Asserts success.
double score_row(struct reward *r, const char *row, const char *response);
// The same, if a failure is expected; returns the status.
rlhf_status try_row(struct reward *r, const char *row, const char *response, double *score);

// Returns {"answer": "..."} around a text that is quoted for JSON. Valid until the next call.
const char *row_of(const char *answer);

#endif
