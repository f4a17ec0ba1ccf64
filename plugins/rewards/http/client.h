// client.h: requests to one service: a pool of connections that lives as long as the plugin's
// instance, and so many requests in flight at a time.
#ifndef RLHF_REWARDS_HTTP_CLIENT_H
#define RLHF_REWARDS_HTTP_CLIENT_H

#include "http/reply.h"
#include "http/target.h"
#include "process/bytes.h"

#include <rlhf/reward.h>

// One request that may be in flight.
struct rlhf__http_slot {
    CURL *easy;
    struct rlhf__bytes body, answer;
    size_t answer_max;
    double began;             // when, in seconds of rlhf__http_now
    uint32_t batch, hops;     // which rows; redirects followed
    int32_t flying, too_long; // too_long: the answer went past answer_max
    char error[CURL_ERROR_SIZE];
};

// Zeroed but for host and o, both borrowed.
struct rlhf__http_client {
    const rlhf_host *host;
    const struct rlhf__http_options *o;
    struct rlhf__target target;
    struct curl_slist *headers;
    CURLM *multi;
    struct rlhf__http_slot *slot; // [n_slots]
    uint32_t n_slots, n_flying;
    double timeout_s; // of one request, 0 = none
};

// How a request went.
enum rlhf__http_end {
    RLHF__HTTP_ANSWERED = 0, // slot->answer is what the service says
    RLHF__HTTP_REFUSED = 1,  // asking again would not help
    RLHF__HTTP_ERROR = 2,    // status 5xx: asking again may help
    RLHF__HTTP_DOWN = 3,     // nobody answers, or 429, 502, 503, 504
    RLHF__HTTP_ONWARD = 4    // a redirect was followed: the slot flies again
};

// Open the pool, and with the option probe connect once. RLHF_E_INVALID says what of the options is
// wrong, RLHF_E_CANCELLED. [main]
rlhf_status rlhf__http_open(struct rlhf__http_client *);
void rlhf__http_close(struct rlhf__http_client *); // zeroed allowed [main]

// Send slot->body, in place of what the slot did before. RLHF_E_NOMEM. [step]
rlhf_status rlhf__http_send(struct rlhf__http_client *, struct rlhf__http_slot *);

// The next request that has come to an end, NULL: none. *end says how, *why (RLHF__WHY bytes) with
// what, *retry_after the seconds that the service asked for, or 0. [step]
struct rlhf__http_slot *rlhf__http_next(struct rlhf__http_client *, enum rlhf__http_end *end,
                                        char *why, double *retry_after);

// Let requests go on for at most so many milliseconds, less when something happened. [step]
void rlhf__http_wait(struct rlhf__http_client *, int ms);

// Drop all that is in flight. [step]
void rlhf__http_drop(struct rlhf__http_client *);

double rlhf__http_now(void); // monotonic [any]

#endif
