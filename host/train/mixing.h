// mixing.h: the arithmetic of scores: several rewards to one number a row. Pure functions.
#ifndef RLHF_HOST_MIXING_H
#define RLHF_HOST_MIXING_H

#include "config/schema.h"

// Mean and biased standard deviation of x over the rows with keep[i] (NULL = all); 0 and 0 when
// there are none. [any]
void rlhf__mean_std(const float *x, const uint8_t *keep, uint32_t n, double *mean, double *std);

// score[n] from raw[n_reward * n] by config's weights, normalisation, clip and penalties; rows that
// are not kept get 0 and count in no mean. no_period and finished as in struct rlhf__scored and
// rlhf__episodes. [any]
void rlhf__mix(const struct rlhf__config *, const float *raw, const uint8_t *keep,
               const uint8_t *finished, const uint8_t *no_period, uint32_t n, float *score);

#endif
