// upcall_services.h: the host's services as a plugin in a worker calls them: which there are, the
// objects that it has open, and the calls themselves. A number, a handle or a text of the worker is
// checked before it is used.
#ifndef RLHF_HOST_WORKER_UPCALL_SERVICES_H
#define RLHF_HOST_WORKER_UPCALL_SERVICES_H

#include "worker/upcall.h"

// Do the call of a service in a frame, with its reply in `reply`. -1 when it is none of a worker's.
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
