// mixing.h: combines several rewards into the reward of each row. Pure functions.
//
// A row's reward is the sum of its score at the end and its token rewards. This sum is normalized
// and clipped. Normalizing subtracts the mean from the score and scales both parts. Clipping scales
// both parts. A penalty that replaces the reward sets the token rewards to 0.
#ifndef RLHF_HOST_SAMPLE_MIXING_H
#define RLHF_HOST_SAMPLE_MIXING_H

#include "batch/rows.h"
#include "config/schema.h"

// Compute the mean and the biased standard deviation of x over the rows i with keep[i] != 0 and
// missing[i] == 0. `keep` NULL: over all rows; `missing` NULL: none is missing. Returns the number
// of these rows; without such rows, both are 0. [any]
uint32_t rlhf__mean_std(const float *x, const uint8_t *keep, const uint8_t *missing, uint32_t n,
                        double *mean, double *std);

// One reward's values for the rows of a batch.
struct rlhf__reward_parts {
    float *seq;   // [n] score at the end
    float *token; // [total], laid out as the batch; NULL = no token rewards
    float *row;   // [n] sum of both
    uint8_t
        *missing; // [n] 1: the reward has no value for the row (not finite, failed); NULL = none
};

// Compute e's score, reward and token[RLHF__TOKEN_REWARD] from `parts`, with the weights,
// normalization, clip and penalties of the config. `parts` has an element for each of the n_reward
// rewards. If an environment also gives rewards (e->paid), one more element holds them. Rows that
// are not kept get 0 and are left out of means. If a reward has no value for a row, the row is left
// out of this reward's mean and deviation, and the reward adds 0 to the row. unpaid[i] is 1 if no
// reward has a value for row i; NULL = none. `no_period` is as in struct rlhf__scored. [any]
void rlhf__mix(const struct rlhf__config *, const struct rlhf__reward_parts *parts,
               const uint8_t *keep, const uint8_t *unpaid, const uint8_t *no_period,
               struct rlhf__rows *e);

// Set e->reward from scores and token rewards. [any]
void rlhf__rows_sum_rewards(struct rlhf__rows *e);

#endif
