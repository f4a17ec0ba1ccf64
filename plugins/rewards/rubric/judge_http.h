// judge_http.h: a judge that is a service for chat completions (POST .../v1/chat/completions).
#ifndef RLHF_REWARDS_RUBRIC_JUDGE_HTTP_H
#define RLHF_REWARDS_RUBRIC_JUDGE_HTTP_H

#include "http/requests.h"
#include "rubric/asks.h"

// The caller sets `host`, `o`, `model` and `max_tokens`. All other members must be zero.
struct rlhf__judge_http {
    const rlhf_host *host;
    const struct rlhf__http_options *o;
    const char *model;
    int64_t max_tokens;
    struct rlhf__http_client client;
    struct rlhf__requests requests; // requests of the last call
};

// Checks the options. With the option `probe`, also connects once. Errors: those of
// rlhf__http_open. [main]
rlhf_status rlhf__judge_http_open(struct rlhf__judge_http *);
void rlhf__judge_http_close(struct rlhf__judge_http *); // [main]

// Send all questions and close the asks. Errors: RLHF_E_CANCELLED, RLHF_E_NOMEM. [step]
rlhf_status rlhf__judge_http_ask(struct rlhf__judge_http *, struct rlhf__asks *);

#endif
