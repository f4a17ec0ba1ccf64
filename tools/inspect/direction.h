// direction.h: the explained number (a logit difference, a reward or a value) as a linear function
// of the stream.
//
// The head reads the final norm of the stream x. If the norm's scale s is frozen at its value for
// x, the number is g . x + constant:
//
//   LayerNorm  s = sqrt(var(x) + eps)       g = gain u / s, minus its mean; constant = bias . u + b
//   RMSNorm    s = sqrt(mean(x^2) + eps)    g = gain u / s;                 constant = b
//
// u is the head's direction and b its bias. A value head with a hidden layer has a separate
// direction for each x: the direction of the hidden units that are active at x.
#ifndef RLHF_TOOLS_INSPECT_DIRECTION_H
#define RLHF_TOOLS_INSPECT_DIRECTION_H

#include "inspect/reading.h"

// The ids of the words on the good and the bad side. A side's logit is the mean over its words.
struct rlhf__sides {
    const int32_t *good, *bad;
    uint32_t n_good, n_bad;
};

// Zero-initialize; release with rlhf__direction_finish, even after a failure.
struct rlhf__direction {
    int32_t d, norm; // enum rlhf_tap_norm
    double eps;
    const float *gain, *norm_bias; // [d], of the reading
    double *u;                     // [d]
    double b;
    // The value head's hidden layer, or NULL: weights [hidden, d], biases and outer weights.
    float *hidden, *hidden_bias, *outer;
    int32_t n_hidden;
    double *normed; // [d] scratch
};

// Sets *out for the number "logit of the good side minus logit of the bad side". *out borrows from
// the reading. [step]
rlhf_status rlhf__direction_words(struct rlhf__direction *out, const struct rlhf__reading *,
                                  const struct rlhf__sides *, struct rlhf__error *err);

// Sets *out for the number `gain` * score + `bias`, for a score head with one label. [step]
rlhf_status rlhf__direction_score(struct rlhf__direction *out, const struct rlhf__reading *,
                                  double gain, double bias, struct rlhf__error *err);

// Sets *out for the number that the value head computes. [step]
rlhf_status rlhf__direction_value(struct rlhf__direction *out, const struct rlhf__reading *,
                                  struct rlhf__error *err);

void rlhf__direction_finish(struct rlhf__direction *); // accepts a zeroed one [any]

// Sets `g` [d] and *constant for the stream `x` [d]. [any]
void rlhf__direction_at(const struct rlhf__direction *, const float *x, double *g,
                        double *constant);

// Returns the number for the stream `x`, and sets `g` as rlhf__direction_at does. [any]
double rlhf__direction_value_at(const struct rlhf__direction *, const float *x, double *g);

// Returns the sum of x[i] g[i], in f64, in a fixed order. [any]
double rlhf__dot(const float *x, const double *g, uint64_t n);

#endif
