// token_numbers.h: computes log-prob, entropy and a critic's value for each token of an existing
// text.
#ifndef RLHF_TOOLS_PROMPT_TOKEN_NUMBERS_H
#define RLHF_TOOLS_PROMPT_TOKEN_NUMBERS_H

#include "model/model.h"

// A text and its prompt. The prompt has at least one token.
struct rlhf__token_row {
    const int32_t *prompt;
    size_t n_prompt;
    const int32_t *ids;
    size_t n;
};

// Arrays with a number for each token. Log-prob and entropy are at temperature 1 over all tokens. A
// token's value is the value of the text before this token.
struct rlhf__token_numbers {
    float *logp;
    float *entropy; // NULL: the model does not compute it
    float *value;   // NULL: no critic
};

// Compute the numbers for a row of tokens. `critic` may be NULL. Errors: RLHF_E_NOMEM, and those of
// the models. Release the numbers, even after a failure. [step]
rlhf_status rlhf__token_numbers_take(const struct rlhf__model *, const struct rlhf__model *critic,
                                     const struct rlhf__token_row *,
                                     struct rlhf__token_numbers *out, struct rlhf__error *err);
void rlhf__token_numbers_finish(struct rlhf__token_numbers *); // accepts zeroed ones [any]

#endif
