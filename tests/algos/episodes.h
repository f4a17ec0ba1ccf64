// episodes.h: rows of several turns, made from a batch of rows of one turn. An algorithm gets these
// rows through the host's layer for algorithms that do not know about turns (learn/policy_view.h).
#ifndef RLHF_TESTS_ALGOS_EPISODES_H
#define RLHF_TESTS_ALGOS_EPISODES_H

#include "algos/fixture.h"

#include "batch/rows.h"

enum { EPISODE_TOKENS = 4 * MAX_TOKENS };

// `e` holds rows that contain tokens of an environment. `b` holds the same rows without these
// tokens.
struct episodes {
    struct batch *b;
    struct rlhf__rows e;
    int32_t place[MAX_TOKENS]; // index in `e` of each token of `b`
    // [e.total]: one number per token. At the environment's tokens the number is -2.5, so an
    // algorithm that reads one of them gives a wrong result.
    float *logp, *entropy, *kl, *value, *d_logp, *d_entropy, *d_kl, *d_value;
    float d_class_score[MAX_ROWS * 8];
};

// Inserts tokens of an environment: `before[k]` tokens before token k of the batch, and `after[i]`
// tokens after the last token of row i. If `leak` is 1, marks one of the inserted tokens as the
// policy's.
void episodes_init(struct episodes *, struct batch *, const int32_t *before, const int32_t *after,
                   int32_t leak);
void episodes_finish(struct episodes *);

// Returns an array of e.total numbers, which has the numbers of `from` at the tokens of `b`. The
// caller frees the array.
float *episodes_spread(const struct episodes *, const float *from);

// These functions play the host's part, as batch_advantages and batch_loss of fixture.h do. loss()
// does not get excluded rows.
rlhf_status episodes_advantages(struct algo *, struct episodes *);
double episodes_loss(struct algo *, struct episodes *, int32_t from, int32_t to);

// Returns how many of the environment's tokens have a nonzero number in `full`, an array of e.total
// numbers.
int episodes_given(const struct episodes *, const float *full);

#endif
