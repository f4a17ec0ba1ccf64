// requests.h: sends requests to a service until each of them is answered or lost.
//
// Up to n_slots requests are in flight at a time, but only one while the service is down. A request
// that is answered with a status 5xx is retried as often as the option `repeats` allows. If the
// service is down, the requests wait for up to patience_s seconds (also an option), and the log
// reports this.
#ifndef RLHF_REWARDS_HTTP_REQUESTS_H
#define RLHF_REWARDS_HTTP_REQUESTS_H

#include "http/client.h"

// The caller sets `client`, `n`, `ctx` and the functions; everything else is zero.
struct rlhf__requests {
    struct rlhf__http_client *client;
    // The functions get ctx and the index of a request.
    void *ctx;
    // Appends the body, before each attempt. An error ends the call.
    rlhf_status (*write)(void *ctx, uint32_t at, struct rlhf__bytes *body);
    // Takes the answer of a request. An error ends the call.
    rlhf_status (*take)(void *ctx, uint32_t at, const struct rlhf__bytes *answer);
    // Called if a request is lost; `why` is the reason.
    void (*lose)(void *ctx, uint32_t at, const char *why);
    uint32_t n;
    uint64_t sent, repeats; // out: attempts; failed attempts that were or will be repeated
    double paused;          // out: seconds during which the service did not answer
};

// Returns RLHF_OK after each request has been answered or lost. Errors: RLHF_E_CANCELLED,
// RLHF_E_NOMEM, and those of write() and take(). Afterwards, no request is in flight. [step]
rlhf_status rlhf__requests_send(struct rlhf__requests *);

#endif
