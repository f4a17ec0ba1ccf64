// tests/models/rollout.h: a small continuous-batching rollout, like the host's, that records the
// sampled ids and their log-probs.
#ifndef TESTS_MODELS_ROLLOUT_H
#define TESTS_MODELS_ROLLOUT_H

#include "support.h"

enum { ROLL_ROWS = 13, ROLL_LEN = 96, ROLL_WORDS = 33 }; // words of a support of up to 1,056 ids

struct rollout {
    int32_t prompt_len[ROLL_ROWS], len[ROLL_ROWS]; // len: prompt and response
    int32_t ids[ROLL_ROWS][ROLL_LEN];
    float logp[ROLL_ROWS][ROLL_LEN]; // 0 at the tokens of prompts
    uint32_t support[ROLL_ROWS][ROLL_LEN][ROLL_WORDS];
};

// Chooses prompts of 1 .. max_prompt random ids, and response lengths of 1 .. max_new.
void rollout_init(struct rollout *r, int32_t vocab, int32_t max_prompt, int32_t max_new);
// Samples all responses with n_slots rows in flight. Rows are admitted in an order that depends on
// `order`, and every third prompt is fed in two pieces. If `keep` is set, also records the kept
// tokens.
void rollout_run(struct rollout *r, struct model *m, uint32_t n_slots, uint64_t order,
                 const rlhf_dist *dist, const rlhf_dist *logp_dist, int32_t keep);
// The rows first .. first + n - 1 as one batch; arrays are test_malloc'ed.
struct rollout_batch {
    rlhf_batch b;
    int32_t *ids, *offset, *prompt_len;
    float *logp;       // the recorded ones
    uint32_t *support; // supports of the response tokens
};
struct rollout_batch rollout_batch(const struct rollout *r, uint32_t first, uint32_t n,
                                   int32_t vocab);
void rollout_batch_free(struct rollout_batch *b);

#endif
