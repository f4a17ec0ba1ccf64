// rows.h: the host's "rlhf.row/0" for rewards that read the data row, and rows to give them.
#ifndef RLHF_TESTS_REWARDS_ROWS_H
#define RLHF_TESTS_REWARDS_ROWS_H

#include "rewards/fixture.h"

// Group fixtures of CMocka: offer the service in *state, a struct reward.
const rlhf_row_service *rows_open(void);
void rows_close(void);

// The sentence of what failed in r or in the service since the last call; "" when nothing did.
const char *rows_said(const struct reward *r);

// One response to the prompt "It was " of a row; asserts success.
double score_row(struct reward *r, const char *row, const char *response);
// The same, where failure is the point; returns the status.
rlhf_status try_row(struct reward *r, const char *row, const char *response, double *score);

// {"answer": "..."} around a text, which is quoted as JSON wants it; until the next call.
const char *row_of(const char *answer);

#endif
