// rows.h: the host's "rlhf.row/0" for rewards that read the data row, and rows for it.
#ifndef RLHF_TESTS_REWARDS_ROWS_H
#define RLHF_TESTS_REWARDS_ROWS_H

#include "rewards/fixture.h"

// Group fixtures of CMocka: offer the service in *state, a struct reward.
const rlhf_row_service *rows_open(void);
void rows_close(void);

// The failure message of r or of the service since the last call; "" if none.
const char *rows_said(const struct reward *r);

// One response to the prompt "It was " with a data row; asserts success.
double score_row(struct reward *r, const char *row, const char *response);
// The same, if a failure is expected; returns the status.
rlhf_status try_row(struct reward *r, const char *row, const char *response, double *score);

// {"answer": "..."} around a text, quoted for JSON; valid until the next call.
const char *row_of(const char *answer);

#endif
