// pair_loss.c: see pair_loss.h.
#include "learn/pair_loss.h"

#include <math.h>

// w * loss of a pair with rewards r[2]; writes the derivative to d[2].
static double one_pair(const float *r, double w, float *d) {
    double chosen = (double)r[0], rejected = (double)r[1];
    double top = rejected > chosen ? rejected : chosen;
    double log_sum = top + log(exp(chosen - top) + exp(rejected - top));
    d[0] = (float)(w * (exp(chosen - log_sum) - 1));
    d[1] = (float)(w * exp(rejected - log_sum));
    return w * (log_sum - chosen);
}

static rlhf_status pairs_loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out,
                              struct rlhf__error *err) {
    struct rlhf__pair_loss *p = self;
    const double w = 2 / (double)in->batch_sequences;
    (void)err;
    for (uint32_t i = 0; i + 1 < in->n; i += 2) {
        const float *r = in->heads->score + i;
        out->loss += one_pair(r, w, out->d_heads->score + i);
        p->margin += (double)r[0] - (double)r[1];
        p->right += r[1] < r[0];
        p->pairs++;
    }
    p->loss += out->loss;
    return RLHF_OK;
}

struct rlhf__objective rlhf__pair_objective(struct rlhf__pair_loss *p) {
    return (struct rlhf__objective){.loss = pairs_loss, .self = p};
}
