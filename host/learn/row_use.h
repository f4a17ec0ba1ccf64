// row_use.h: rows by their use in the updates, as the algorithm's advantages() sets it (enum
// rlhf_row_use): selects parts of a minibatch, and estimates the time that the backward pass saves.
//
// It runs no model and makes no decisions.
#ifndef RLHF_HOST_ROW_USE_H
#define RLHF_HOST_ROW_USE_H

#include "batch/rows.h"

#include <rlhf/algo.h>

enum { RLHF__ROW_USES = RLHF_ROW_EXCLUDED + 1 };

// Rows, tokens and time of the updates of a phase, by enum rlhf_row_use.
struct rlhf__row_tally {
    int64_t rows[RLHF__ROW_USES];   // in all updates: each epoch counts
    int64_t tokens[RLHF__ROW_USES]; // their response tokens
    double seconds[RLHF__ROW_USES]; // only of minibatches in which some row is not TRAINS
    int64_t timed;                  // response tokens of the TRAINS rows in `seconds`
};

// Number of rows of e with this use. [any]
uint32_t rlhf__row_use_count(const struct rlhf__rows *e, int use);

// Response tokens of rows that are not masked: the divisor of a loss. [any]
int64_t rlhf__row_use_tokens(const struct rlhf__rows *e);

// *part = the rows of e with this use, in order. Release with rlhf__rows_finish. Errors:
// RLHF_E_NOMEM. [any]
rlhf_status rlhf__row_use_pick(const struct rlhf__rows *e, int use, struct rlhf__rows *part,
                               struct rlhf__error *err);

// Check the derivative of rows that the algorithm marked as still: RLHF_E_INTERNAL unless all of it
// is 0. d has `total` tokens per head. [any]
rlhf_status rlhf__row_use_check(const rlhf_heads *d, uint32_t total, struct rlhf__error *err);

// Estimated seconds saved: the backward pass of the rows left out of it, which has twice the
// operations of a forward pass, and the forward pass of masked rows. The forward pass is measured
// on still rows; without any it counts as a third of the time of the rows trained in the same
// minibatches. Negative without either. Fixed costs of a backward pass are ignored. [any]
double rlhf__row_tally_saved(const struct rlhf__row_tally *);

#endif
