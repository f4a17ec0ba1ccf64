// row_stats.h: statistics of the rows of a phase.
#ifndef RLHF_FORMATS_BATCH_ROW_STATS_H
#define RLHF_FORMATS_BATCH_ROW_STATS_H

#include "batch/rows.h"

// Returns the standard error of the mean of x[n] over the rows with keep[i] != 0 (NULL: all). The
// responses to one prompt, which are adjacent, are a cluster (Miller 2024). Returns NaN if there
// are fewer than two prompts. [any]
double rlhf__rows_error(const struct rlhf__rows *, const float *x, const uint8_t *keep);

// Returns Pearson's correlation of a row's number of response tokens and x[n], or NaN if one of
// them is constant. [any]
double rlhf__rows_length_correlation(const struct rlhf__rows *, const float *x);

// Returns the share of the variance of x[n] that lies between equal responses to the same prompt:
// half of the mean squared difference of such pairs, divided by the variance. It is 0 if x depends
// only on the texts, and about 1 if x is only noise. Returns NaN if there are fewer than eight
// pairs, or if x is constant. [any]
double rlhf__rows_noise(const struct rlhf__rows *, const float *x);

#endif
