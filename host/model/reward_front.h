// reward_front.h: what stands in front of the rows that a reward model reads.
//
// A reward model has one answer, its own tokenizer's (what it was trained with, recorded by
// bradley_terry.so, or what transformers wrote): bos or nothing. Rows of a run come as the policy
// has them (prompts.prepend_bos), so they are given a bos or relieved of it.
#ifndef RLHF_HOST_REWARD_FRONT_H
#define RLHF_HOST_REWARD_FRONT_H

#include "text/tokenizer.h"

// Rows with their fronts changed; zero-initialise, release with rlhf__fronted_finish.
struct rlhf__fronted {
    const int32_t *ids, *offset, *prompt_len; // the caller's own when nothing changed
    int32_t *own;                             // NULL: nothing changed
};

// What a row lacks for this tokenizer: 1 a bos, -1 one too many, 0 nothing. A prompt that is a bos
// alone keeps it: a response follows something. [any]
int32_t rlhf__reward_front(const struct rlhf__tokenizer *tok, const int32_t *row,
                           int32_t prompt_len);

// The n rows as the tokenizer wants them; the arguments must outlive *out. Errors: RLHF_E_INVALID
// (too many tokens), RLHF_E_NOMEM. [any]
rlhf_status rlhf__reward_rows(const struct rlhf__tokenizer *tok, uint32_t n, const int32_t *ids,
                              const int32_t *offset, const int32_t *prompt_len,
                              struct rlhf__fronted *out, struct rlhf__error *err);
void rlhf__fronted_finish(struct rlhf__fronted *f); // accepts a zeroed one [any]

// token[] of the rows as they were from fronted[] of f's rows; a token that was added has no
// place. [any]
void rlhf__fronted_tokens(const struct rlhf__fronted *f, uint32_t n, const int32_t *offset,
                          const float *fronted, float *token);

#endif
