// exchange.h: gets the rewards of one score() call. Splits the rows into requests, sends them,
// retries where that may help, and stores the rewards in row order, whatever the order of the
// answers.
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

// Returns RLHF_OK even if rows failed; RLHF_E_CANCELLED; RLHF_E_NOMEM; or RLHF_E_INVALID if a row
// cannot be sent. No request is in flight afterwards. [step]
rlhf_status rlhf__exchange(struct rlhf__exchange *);

#endif
