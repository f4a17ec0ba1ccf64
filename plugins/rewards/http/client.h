// client.h: sends requests to one service. The pool of connections lives as long as the plugin's
// instance. The pool limits how many requests are in flight at the same time.
#ifndef RLHF_REWARDS_HTTP_CLIENT_H
#define RLHF_REWARDS_HTTP_CLIENT_H

#include "http/reply.h"
#include "http/target.h"
#include "process/bytes.h"

#include <rlhf/reward.h>
#include <rlhf/rng.h>

// A slot of the pool: one request, which may be in flight.
struct rlhf__http_slot {
    CURL *easy;
    struct rlhf__bytes body, answer;
    size_t answer_max;
    double began;             // start time, in seconds of rlhf__http_now
    uint32_t request, hops;   // index of the request; number of redirects followed
    int32_t flying, too_long; // too_long: the answer was longer than answer_max
    char error[CURL_ERROR_SIZE];
};

// Zero-initialize, then set `host` and `o`, which are borrowed.
struct rlhf__http_client {
    const rlhf_host *host;
    const struct rlhf__http_options *o;
    struct rlhf__target target;
    struct curl_slist *headers;
    CURLM *multi;
    struct rlhf__http_slot *slot; // [n_slots]
    uint32_t n_slots, n_flying;
    double timeout_s; // time limit of each request, 0 = none
    rlhf_rng jitter;  // random factors of the times between attempts
    int32_t started;  // libcurl was initialized
    int32_t once;     // 1: a request that the service may have handled is not sent again
};

// The outcome of a request.
enum rlhf__http_end {
    RLHF__HTTP_ANSWERED = 0, // slot->answer is the service's answer
    RLHF__HTTP_REFUSED = 1,  // the service refused it; a retry would not help
    RLHF__HTTP_ERROR = 2,    // status 5xx: a retry may help
    RLHF__HTTP_DOWN = 3,     // the service is down, or answered 429, 502, 503, 504
    RLHF__HTTP_ONWARD = 4    // a redirect was followed: the slot is in flight again
};

// Open the pool. With the option `probe`, also connect once. Returns RLHF_E_INVALID, with a message
// about the invalid option, or RLHF_E_CANCELLED. [main]
rlhf_status rlhf__http_open(struct rlhf__http_client *);
void rlhf__http_close(struct rlhf__http_client *); // accepts a zeroed client [main]

// Sends slot->body. This replaces the slot's earlier request. Errors: RLHF_E_NOMEM. [step]
rlhf_status rlhf__http_send(struct rlhf__http_client *, struct rlhf__http_slot *);

// Returns the next finished request, or NULL if none has finished. Sets *end to its outcome, *why
// (RLHF__WHY bytes) to the explanation, and *retry_after to the number of seconds that the service
// asked us to wait, or 0. [step]
struct rlhf__http_slot *rlhf__http_next(struct rlhf__http_client *, enum rlhf__http_end *end,
                                        char *why, double *retry_after);

// Process requests for at most ms milliseconds; returns earlier if something happens. [step]
void rlhf__http_wait(struct rlhf__http_client *, int ms);

// Cancel all requests in flight. [step]
void rlhf__http_drop(struct rlhf__http_client *);

double rlhf__http_now(void); // monotonic [any]

#endif
