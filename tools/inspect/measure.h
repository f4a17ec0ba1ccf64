// measure.h: the reward or value after each token, as the model itself computes it.
#ifndef RLHF_TOOLS_INSPECT_MEASURE_H
#define RLHF_TOOLS_INSPECT_MEASURE_H

#include "model/model.h"

// out[n] = the score of the only label after each of n tokens. [step]
rlhf_status rlhf__measure_score(const struct rlhf__model *, const int32_t *ids, uint32_t n,
                                float *out, struct rlhf__error *err);

// out[n] = the value after each of n tokens. n must be below the context's length. [step]
rlhf_status rlhf__measure_value(const struct rlhf__model *, const int32_t *ids, uint32_t n,
                                float *out, struct rlhf__error *err);

#endif
