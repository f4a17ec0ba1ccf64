// upcall_services.h: serves the service calls of a plugin in a worker: the available services, the
// objects that it has open, and the calls. Numbers, handles and texts of the worker are checked
// before they are used.
#ifndef RLHF_HOST_WORKER_UPCALL_SERVICES_H
#define RLHF_HOST_WORKER_UPCALL_SERVICES_H

#include "worker/upcall.h"

// Serve the call of a service in a frame; its reply goes to `reply`. -1 when it is not a worker's.
// [main]
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
