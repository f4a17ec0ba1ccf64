// head_row.h: helpers of hot_head.c and hot_divergence.c. They turn a logit into the log of its
// unnormalized probability, and load the reference model's logits restricted to the kept set of the
// policy's row.
#ifndef RLHF_CPU_HEAD_HEAD_ROW_H
#define RLHF_CPU_HEAD_HEAD_ROW_H

#include "machine/hot.h"
#include "machine/vec.h"

#include <math.h>

#define BLOCK ((size_t)RLHF__HEAD_BLOCK)
#define FLOOR (-1e30f) // stands for log 0 if it is multiplied by a probability of 0

static inline size_t lanes_left(size_t i, size_t end) {
    return end - i < VF_LANES ? end - i : VF_LANES;
}

// The logit, shifted by the maximum and scaled. This is the log of the unnormalized probability.
static inline vf log_weight(vf z, vf max, vf it) {
    return vf_max(vf_set1(FLOOR), vf_mul(vf_sub(z, max), it));
}

// The reference's logits on the policy's kept set: -inf where z is -inf.
static inline vf on_kept(vf z, vf r) { return vf_gt(z, vf_set1(-INFINITY), r, vf_set1(-INFINITY)); }

// d logit / d product as a function of the logit. it: times 1 / temperature.
struct slope {
    vf it, inverse; // inverse: 1 / cap
    int capped;
};

static inline struct slope slope_of(struct rlhf__head_map m, float it) {
    const int capped = m.cap > 0.0f;
    return (struct slope){vf_set1(it * m.scale), vf_set1(capped ? 1.0f / m.cap : 0.0f), capped};
}

// it scale (1 - tanh^2), where tanh = z / cap; 0 for a logit of -inf.
static inline vf slope_at(vf z, const struct slope *s) {
    if (!s->capped) return s->it;
    const vf one = vf_set1(1.0f), t = vf_mul(z, s->inverse);
    return vf_mul(s->it, vf_sub(one, vf_min(one, vf_mul(t, t))));
}

struct tails {
    float z[VF_LANES], r[VF_LANES];
};

// Load the vectors at i of z and r. Lanes past n count as outside of the kept set.
static inline void load_pair(vf *zv, vf *rv, const float *z, const float *r, size_t i, size_t n) {
    if (i + VF_LANES <= n) {
        *zv = vf_load(z + i);
        *rv = on_kept(*zv, vf_load(r + i));
        return;
    }
    struct tails t;
    for (size_t j = 0; j < VF_LANES; j++) {
        t.z[j] = i + j < n ? z[i + j] : -INFINITY;
        t.r[j] = i + j < n ? r[i + j] : -INFINITY;
    }
    *zv = vf_load(t.z);
    *rv = on_kept(*zv, vf_load(t.r));
}

#endif
