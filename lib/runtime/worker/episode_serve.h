// episode_serve.h: the calls of an environment, in its worker. Keeps the states of open episodes.
#ifndef RLHF_HOST_WORKER_EPISODE_SERVE_H
#define RLHF_HOST_WORKER_EPISODE_SERVE_H

#include "wire/wire.h"
#include "worker/worker_host.h"

#include <rlhf/environment.h>

struct rlhf__places {
    const rlhf_environment_ops *ops;
    void *self;
    struct rlhf__worker_host *table; // of the environment
    void **state;                    // [n] NULL: the place is free
    uint32_t n;
    uint32_t abi_minor; // of the plugin
};

// Append what the environment declares, for the answer to RLHF__ASK_CREATE. [main]
void rlhf__places_declare(const struct rlhf__places *, struct rlhf__buf *out);

// Serve RLHF__ASK_PLAY. If the environment was called and succeeded, returns RLHF_OK with the
// results in *out. Otherwise returns the environment's status, or another error with the reason in
// *why. [main]
rlhf_status rlhf__places_play(struct rlhf__places *, struct rlhf__wire *in, struct rlhf__buf *out,
                              struct rlhf__error *why);

// Close all open episodes. [main]
void rlhf__places_finish(struct rlhf__places *);

#endif
