// next_token.h: what models predict after each token of the prompt: the logit difference, KL, and
// the tokens that changed most in probability.
#ifndef RLHF_TOOLS_INSPECT_NEXT_TOKEN_H
#define RLHF_TOOLS_INSPECT_NEXT_TOKEN_H

#include "inspect/direction.h"

enum { RLHF__MOVED = 12 }; // tokens listed as risen, and as fallen

struct rlhf__moved_token {
    int32_t id;         // -1: fewer tokens moved in that direction
    double base, tuned; // probabilities
};

// Zero-initialize; release with rlhf__next_tokens_finish, even after a failure.
struct rlhf__next_tokens {
    uint32_t n, n_moved;   // tokens of the prompt; tokens listed on each side
    double *difference[2]; // [n] of the base, and of the tuned model: good minus bad logit
    double *kl;            // [n] sum of p_tuned (log p_tuned - log p_base), nats
    struct rlhf__moved_token *moved; // [n, 2 * n_moved]: most risen first; then most fallen first
};

// Compare the models' predictions after each token of the prompt. r[0] is the base and r[1] the
// tuned model. The taps of both models must still hold the values of the prompt, so the models must
// not have run other tokens after it. [step]
rlhf_status rlhf__next_tokens_take(struct rlhf__next_tokens *out,
                                   const struct rlhf__reading *const r[2],
                                   const struct rlhf__sides *, struct rlhf__error *err);

void rlhf__next_tokens_finish(struct rlhf__next_tokens *); // accepts a zeroed one [any]

#endif
