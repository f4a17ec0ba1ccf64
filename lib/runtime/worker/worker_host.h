// worker_host.h: the struct rlhf_host that a plugin in a worker receives. The plugin's calls are
// served in the worker if possible, and are otherwise sent to the host (upcall.h).
#ifndef RLHF_LIB_RUNTIME_WORKER_WORKER_HOST_H
#define RLHF_LIB_RUNTIME_WORKER_WORKER_HOST_H

#include "plugin/metric_names.h"
#include "plugin/on_call.h"
#include "plugin/row_service.h"
#include "wire/batch.h"
#include "wire/wire.h"

#include <pthread.h>

struct rlhf__worker_host {
    rlhf_host api; // first member: the functions cast it back to this struct
    const struct rlhf__batch_note *note;
    uint64_t seed;
    char *id, *owner;  // of the plugin and of its instance; owned
    uint32_t services; // RLHF__HAS_* of upcall_services.h
    int32_t calls;     // socket for calls
    // held from sending a call until its reply is read: protects socket and frame
    pthread_mutex_t lock;
    struct rlhf__buf frame;
    struct rlhf__on_call on_call;
    struct rlhf__metrics_named left_out; // metrics that were reported at the wrong place
    rlhf_limits limits;
    rlhf_classifier_service classifier;
    rlhf_tokenizer_service tokenizer;
    rlhf_reward_model_service model;
    rlhf_language_model_service language;
    rlhf_row_service row;
};

// Initialize *t, which must not move afterwards. Its tables of services stay empty
// (rlhf__table_services). [main]
void rlhf__table_init(struct rlhf__worker_host *t, int calls, const struct rlhf__batch_note *note);

// Returns 1 if a call of the plugin runs on this thread, so that it may report the metric `name`.
// Otherwise logs a warning. [any]
int rlhf__table_may_report(struct rlhf__worker_host *t, const char *name);

// Set the sizes of the table and of its services for a plugin that was built with this minor
// version of the contract. [main]
void rlhf__table_for(struct rlhf__worker_host *t, uint32_t minor);

// Send `frame` and, if this kind of call has a reply, wait for it. Returns the reply's status;
// after RLHF_OK, *in has the results. The caller holds t->lock until it has read *in. [any]
rlhf_status rlhf__table_call(struct rlhf__worker_host *t, struct rlhf__wire *in);

#endif
