// exchange.h: the rows of one score(): split into requests, sent, retried if that may help, and
// stored in their places in any order of answers.
#ifndef RLHF_REWARDS_HTTP_EXCHANGE_H
#define RLHF_REWARDS_HTTP_EXCHANGE_H

#include "http/client.h"
#include "http/pause.h"

struct rlhf__exchange {
    struct rlhf__http_client *client;
    const rlhf_reward_in *in;
    float *seq;                // [n] as rlhf_reward_out, all written
    uint8_t *verdict;          // [n]
    uint8_t *failed;           // [n] 1: no reward arrived
    struct rlhf__tally *tally; // the answers' metrics are added to it
    rlhf_rng *jitter;
    uint64_t requests, repeats; // out
    double paused;              // out: seconds in which the service did not answer
    uint32_t first_failed;      // out: a row, in->n if none failed
    char why[RLHF__WHY];        // out: why it failed
};

// RLHF_OK, also if rows failed; RLHF_E_CANCELLED; RLHF_E_NOMEM; RLHF_E_INVALID if a row cannot be
// sent. No request is in flight afterwards. [step]
rlhf_status rlhf__exchange(struct rlhf__exchange *);

#endif
