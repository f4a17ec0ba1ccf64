// target.h: the target of the requests: the checked URL, the part of it that may be shown, and the
// secret header.
#ifndef RLHF_REWARDS_HTTP_TARGET_H
#define RLHF_REWARDS_HTTP_TARGET_H

#include "http/options.h"

#include <curl/curl.h>
#include <rlhf/host.h>

struct rlhf__target {
    CURLU *url;
    char *origin;    // "http://127.0.0.1:8000"; redirects must have the same origin
    char shown[256]; // shown in messages: scheme, host, port and path, printable
    const char *ca;  // PEM file of the authorities; NULL: libcurl's default
    int32_t tls, loopback;
};

// Check url, ca and header_env of the options, without sending anything. Sets *headers to the
// headers of every request (libcurl adds its own); free them with curl_slist_free_all. The message
// of RLHF_E_INVALID says what is wrong, without secret values. [main]
rlhf_status rlhf__target_init(struct rlhf__target *, const rlhf_host *,
                              const struct rlhf__http_options *, struct curl_slist **headers);
void rlhf__target_finish(struct rlhf__target *); // accepts a zeroed target [main]

// Check that this process may use the network: a worker without network=true may not. Errors:
// RLHF_E_INVALID. [main]
rlhf_status rlhf__target_network(const rlhf_host *);

// 1 if url has the target's scheme, host and port. [any]
int rlhf__target_same_origin(const struct rlhf__target *, const char *url);

#endif
