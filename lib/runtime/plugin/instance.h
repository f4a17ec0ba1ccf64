// instance.h: the internals of an instance, for services.c and state.c only.
#ifndef RLHF_HOST_PLUGIN_INSTANCE_H
#define RLHF_HOST_PLUGIN_INSTANCE_H

#include "plugin/metric_names.h"
#include "plugin/on_call.h"
#include "plugin/services.h"

// The table that a plugin sees, followed by the data that its functions need.
struct rlhf__host {
    rlhf_host api; // first member: its functions cast it back to this struct
    struct rlhf__instance instance;
    struct rlhf__services *services;
    struct rlhf__strings strings; // of instance.config
    struct rlhf__note said;       // the last message of host->fail
    // Receives the instance's metrics (rlhf__instance_metrics_to). If it is NULL, `services`
    // receives them.
    rlhf__metric_fn *metric;
    void *metric_ctx;
    char owner[192]; // from rlhf__instance_open
    struct rlhf__cut_tables cut;
    struct rlhf__on_call on_call;
    struct rlhf__metrics_named left_out; // metrics that the log has named as left out
    atomic_int broke; // enum broken of services.c: a rule that the running call broke
};

#endif
