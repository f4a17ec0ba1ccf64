// http_post.h: sends the lines of a call (lines_asked.h) to a service in a POST, and reads the
// lines of the service's answer.
#ifndef RLHF_PLUGINS_ENVIRONMENTS_HTTP_POST_H
#define RLHF_PLUGINS_ENVIRONMENTS_HTTP_POST_H

#include "http/requests.h"
#include "lines_hello.h"
#include "lines_reply.h"

// The user sets `host` and `o`; everything else is zero.
struct rlhf__post {
    const rlhf_host *host;
    const struct rlhf__http_options *o;
    struct rlhf__http_client client;
    struct rlhf__hello hello;
    struct rlhf__bytes closed; // lines of closed episodes, to send with the next call
};

// Open the pool, and ask the service what it offers: {"hello": 1}. Errors: those of
// rlhf__http_open; RLHF_E_INVALID if the answer is invalid; RLHF_E_IO. [main]
rlhf_status rlhf__post_open(struct rlhf__post *);
void rlhf__post_close(struct rlhf__post *); // [main]

// Ask the service about all episodes of a call. An episode without a valid answer has failed.
// Errors: RLHF_E_IO if no episode has a valid answer; RLHF_E_CANCELLED; RLHF_E_NOMEM. [step]
rlhf_status rlhf__post_ask(struct rlhf__post *, enum rlhf__asked, const rlhf_episode_in *,
                           const rlhf_episode_out *);

#endif
