// row_use.h: rows by what comes of them in the updates, as the algorithm's advantages() says (enum
// rlhf_row_use): parts of a minibatch, and the books of what the backward pass is spared.
//
// It runs no model and decides nothing.
#ifndef RLHF_HOST_ROW_USE_H
#define RLHF_HOST_ROW_USE_H

#include "batch/rows.h"

#include <rlhf/algo.h>

enum { RLHF__ROW_USES = RLHF_ROW_MASKED + 1 };

// What the updates of a phase spent, by enum rlhf_row_use.
struct rlhf__row_books {
    int64_t rows[RLHF__ROW_USES];   // of all updates: each epoch counts
    int64_t tokens[RLHF__ROW_USES]; // their response tokens
    double seconds[RLHF__ROW_USES]; // kept where some row of the minibatch is not TRAINS
    int64_t timed;                  // response tokens of the TRAINS rows that `seconds` are of
};

// Rows from `e` that are used so. [any]
uint32_t rlhf__row_use_count(const struct rlhf__rows *e, int use);

// Response tokens of rows that are not masked: what a loss divides by. [any]
int64_t rlhf__row_use_tokens(const struct rlhf__rows *e);

// *part = the rows of e that are used so, in their order. Release with rlhf__rows_finish. Errors:
// RLHF_E_NOMEM. [any]
rlhf_status rlhf__row_use_pick(const struct rlhf__rows *e, int use, struct rlhf__rows *part,
                               struct rlhf__error *err);

// The algorithm gave rows that it called still this derivative: RLHF_E_INTERNAL unless all of it is
// 0. d has `total` tokens a head. [any]
rlhf_status rlhf__row_use_check(const rlhf_heads *d, uint32_t total, struct rlhf__error *err);

// Seconds that the backward pass of the rows left out of it would have taken, which has twice the
// operations of a forward, and the forward of masked ones. The forward is measured on still rows,
// else it is a third of what rows in the same minibatches took; negative without either. What a
// backward pass costs whatever its rows counts for nothing. [any]
double rlhf__row_books_saved(const struct rlhf__row_books *);

#endif
