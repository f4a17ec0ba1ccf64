// rows.h: finds the response tokens in a batch of rows of different lengths, and checks a batch
// before an algorithm uses it.
#ifndef RLHF_ALGOS_COMMON_ROWS_H
#define RLHF_ALGOS_COMMON_ROWS_H

#include <rlhf/algo.h>

// The response tokens of one row: entries [begin, end) of every array that has an entry per token.
struct rlhf__span {
    int64_t begin, end;
};

// The response tokens of row i: from offset[i] + prompt_len[i] up to offset[i + 1]. [any]
static inline struct rlhf__span rlhf__response(const int32_t *offset, const int32_t *prompt_len,
                                               int64_t i) {
    struct rlhf__span s = {(int64_t)offset[i] + prompt_len[i], offset[i + 1]};
    return s;
}

// Number of response tokens of the n rows. [any]
int64_t rlhf__response_tokens(const int32_t *offset, const int32_t *prompt_len, int64_t n);

// Sum of x over a row's response tokens. [any]
double rlhf__sum(const float *x, struct rlhf__span row);

// Total reward of row i: its score plus its token rewards. [any]
double rlhf__row_reward(const rlhf_rollout *, int64_t i);

// Returns NULL if the array offset[n + 1] ascends from 0 to total, and 0 <= prompt_len[i] <= the
// length of row i for every i. Otherwise returns a sentence about the error (static storage). [any]
const char *rlhf__rows_check(const int32_t *offset, const int32_t *prompt_len, int64_t n,
                             int64_t total);

// Returns RLHF_OK if the batch is valid for a loss over log-probs: rlhf__rows_check finds no error,
// the logp head is present, and the minibatch is not empty. Otherwise returns RLHF_E_INTERNAL with
// a message. [any]
rlhf_status rlhf__logp_check(const rlhf_host *, const rlhf_loss_in *, const rlhf_loss_out *);

// Finds the group whose first row is `begin`; this row must exist. Sets *end to the row after the
// group's last row, and *best to the row whose label marks it as preferred. Returns
// RLHF_E_INTERNAL, with a message, unless the group has two or more rows and exactly one of them is
// marked. [any]
rlhf_status rlhf__preferred(const rlhf_host *, const rlhf_loss_in *, int64_t begin, int64_t *end,
                            int64_t *best);

#endif
