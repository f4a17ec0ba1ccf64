// service.h: the options of rewards that ask a service of chat completions (rubric.so, grader.so).
#ifndef RLHF_REWARDS_HTTP_SERVICE_H
#define RLHF_REWARDS_HTTP_SERVICE_H

#include "http/options.h"

#include <stddef.h>

// The first member of the plugin's config, because RLHF__HTTP_SERVICE_ROWS has offsets in it.
struct rlhf__http_service {
    const char *url, *model; // the plugin's own table has these two
    const char *header_env, *ca;
    int64_t concurrency, repeats;
    double patience_s;
};

// Returns the options of the client (client.h). Texts are borrowed. [main]
static inline struct rlhf__http_options
rlhf__http_service_options(const struct rlhf__http_service *s, int64_t max_answer_mib) {
    return (struct rlhf__http_options){.url = s->url,
                                       .header_env = s->header_env,
                                       .ca = s->ca,
                                       .concurrency = s->concurrency,
                                       .repeats = s->repeats,
                                       .max_answer_mib = max_answer_mib,
                                       .connect_timeout_s = 10,
                                       .patience_s = s->patience_s,
                                       .backoff_s = 0.5,
                                       .backoff_max_s = 60,
                                       .probe = 1};
}

// The members from header_env on, as rows of the plugin's table of options.
#define RLHF__HTTP_SERVICE_ROWS                                                                    \
    {.key = "header_env",                                                                          \
     .help = "environment variable with a header to send, \"Name: value\"; it is never shown",     \
     .type = RLHF_T_STR,                                                                           \
     .flags = RLHF_OPT_TRUSTED,                                                                    \
     .offset = offsetof(struct rlhf__http_service, header_env)},                                   \
        {.key = "ca",                                                                              \
         .help = "PEM file of the authorities that may sign the service's certificate, in place "  \
                 "of the system's",                                                                \
         .type = RLHF_T_PATH,                                                                      \
         .flags = RLHF_OPT_TRUSTED,                                                                \
         .offset = offsetof(struct rlhf__http_service, ca)},                                       \
        RLHF_OPT_I64(struct rlhf__http_service, concurrency, 8, 1, 64, "requests at a time"),      \
        RLHF_OPT_I64(struct rlhf__http_service, repeats, 3, 0, 100,                                \
                     "how often a request is sent again that is answered with a status 5xx"),      \
        RLHF_OPT_F64(struct rlhf__http_service, patience_s, 600, 0, 1e7,                           \
                     "seconds that the run waits for a service that is down or says 429")

#endif
