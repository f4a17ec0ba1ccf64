// gen_result.h: the tokens that decode.h samples.
#ifndef RLHF_HOST_SAMPLE_GEN_RESULT_H
#define RLHF_HOST_SAMPLE_GEN_RESULT_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

// Row i has len[i] ids, from ids[i * stride] onward, with their log-probs under logp_dist.
struct rlhf__gen_result {
    int32_t *ids;     // [n * stride]
    float *logp;      // [n * stride] 0 for tokens that were read
    int32_t *len;     // [n]
    uint8_t *stopped; // [n] 1 = an end token or a rule ended the response or its last turn
    int64_t stride;   // array elements of a row
    // [n * stride, rlhf_support_words] with keep_support, else NULL. In row i, entry k is the
    // support of the k-th drawn token. Tokens that were read are skipped.
    uint32_t *support;
    int32_t *turn;  // [n * stride] the turn of each token, -1 = read; NULL without turns
    int64_t tokens; // prompt and response tokens that the model has computed
};

// Allocate a result of n rows. If turns is 1, also allocate `turn`. `words` is the number of 32-bit
// words of a support; 0 = do not store supports. Release with rlhf__gen_result_finish. Errors:
// RLHF_E_NOMEM. [any]
rlhf_status rlhf__gen_result_init(struct rlhf__gen_result *, uint32_t n, int32_t stride, int turns,
                                  size_t words, struct rlhf__error *err);
void rlhf__gen_result_finish(struct rlhf__gen_result *); // accepts a zeroed struct [any]

#endif
