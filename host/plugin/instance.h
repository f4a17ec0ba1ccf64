// instance.h: the inside of an instance, shared by services.c and state.c only.
#ifndef RLHF_HOST_PLUGIN_INSTANCE_H
#define RLHF_HOST_PLUGIN_INSTANCE_H

#include "plugin/services.h"

#include <stdatomic.h>

// The table a plugin sees, with what its functions need behind it.
struct rlhf__host {
    rlhf_host api; // first: the functions cast back
    struct rlhf__instance instance;
    struct rlhf__services *services;
    struct rlhf__strings strings; // of instance.config
    struct rlhf__note said;       // with host->fail
    // Where its metrics go instead of to the services' (rlhf__instance_metrics_to); NULL: there.
    void (*metric)(void *ctx, const char *name, double value);
    void *metric_ctx;
    char owner[192];   // rlhf__instance_create's
    atomic_uint asked; // bit i: for the service offered[i]
    atomic_int warned; // 1: about a metric that was left out
};

#endif
