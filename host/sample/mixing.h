// mixing.h: the arithmetic of scores: several rewards to what a batch is paid. Pure functions.
//
// A row's reward is its number at the end and its token rewards together: that is what is
// normalised and clipped. Normalising moves the row's end by the mean and scales both; clipping
// scales both; a fixed score (penalties that replace) leaves no token reward.
#ifndef RLHF_HOST_MIXING_H
#define RLHF_HOST_MIXING_H

#include "batch/rows.h"
#include "config/schema.h"

// Mean and biased standard deviation of x over the rows with keep[i] (NULL = all); 0 and 0 when
// there are none. [any]
void rlhf__mean_std(const float *x, const uint8_t *keep, uint32_t n, double *mean, double *std);

// What one reward pays the rows of a batch.
struct rlhf__pay {
    float *seq;   // [n] at the end
    float *token; // [total], laid out as the batch; NULL = nothing
    float *row;   // [n] both together
};

// e's score, reward and token[RLHF__TOKEN_REWARD] from pay[n_reward] by config's weights,
// normalisation, clip and penalties; rows that are not kept get 0 and count in no mean. no_period
// as in struct rlhf__scored. [any]
void rlhf__mix(const struct rlhf__config *, const struct rlhf__pay *pay, const uint8_t *keep,
               const uint8_t *no_period, struct rlhf__rows *e);

#endif
