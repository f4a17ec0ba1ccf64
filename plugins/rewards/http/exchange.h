// exchange.h: gets the rewards of one call of score(). It splits the rows into requests. The
// rewards are stored in the order of the rows, whatever the order of the answers.
#ifndef RLHF_REWARDS_HTTP_EXCHANGE_H
#define RLHF_REWARDS_HTTP_EXCHANGE_H

#include "http/requests.h"

struct rlhf__http_exchange {
    struct rlhf__http_client *client;
    const rlhf_reward_in *in;
    float *seq;                     // [n] as in rlhf_reward_out; all are written
    uint8_t *verdict;               // [n]
    uint8_t *failed;                // [n] 1: the row got no reward
    struct rlhf__tally *tally;      // the metrics of the answers are added to it
    struct rlhf__requests requests; // out: its counts
    uint32_t first_failed;          // out: the first failed row, in->n if none failed
    char why[RLHF__WHY];            // out: why that row failed
};

// Returns RLHF_OK when each row has a reward or has failed. Errors: RLHF_E_CANCELLED, RLHF_E_NOMEM,
// or RLHF_E_INVALID if a row cannot be sent. Afterwards, no request is in flight. [step]
rlhf_status rlhf__exchange(struct rlhf__http_exchange *);

#endif
