// rows.h: rewards that read the data row with the host's "rlhf.row/1", and rows for them.
#ifndef RLHF_TESTS_REWARDS_ROWS_H
#define RLHF_TESTS_REWARDS_ROWS_H

#include "rewards/fixture.h"

#include "plugin/row_service.h"

// Scores one response to the prompt "It was " with this data row. Asserts success.
double score_row(struct reward *r, const char *row, const char *response);
// Does the same, but the call may fail. Returns the status.
rlhf_status try_row(struct reward *r, const char *row, const char *response, double *score);

// Returns {"answer": "..."} around a text, which is quoted for JSON. The result is valid until the
// next call.
const char *row_of(const char *answer);

#endif
