// upcall_services.h: serves the calls of services that a plugin in a worker makes: which services
// there are, the objects that the worker has open, and the calls. Numbers, handles and texts from
// the worker are checked before use.
#ifndef RLHF_HOST_WORKER_UPCALL_SERVICES_H
#define RLHF_HOST_WORKER_UPCALL_SERVICES_H

#include "worker/upcall.h"

// Serve the service call in a frame; the reply goes to `reply`. Returns -1 if no worker sends such
// a call. [main]
int rlhf__ear_serve(struct rlhf__ear *e, struct rlhf__wire *in, struct rlhf__buf *reply);

// Close what the worker left open. [main]
void rlhf__handles_close(const rlhf_host *api, struct rlhf__handle handle[RLHF__HANDLES]);

// Bits of the services that the host has, for the worker's table: enum below. [main]
enum {
    RLHF__HAS_CLASSIFIER = 1,
    RLHF__HAS_TOKENIZER = 2,
    RLHF__HAS_MODEL = 4,
    RLHF__HAS_ROW = 8,
    RLHF__HAS_LIMITS = 16
};
uint32_t rlhf__ear_services(const rlhf_host *api);

#endif
