// upcall_services.h: serves the calls of a plugin in a worker, those of services here. Numbers,
// handles and texts from the worker are checked before they are used.
#ifndef RLHF_HOST_WORKER_UPCALL_SERVICES_H
#define RLHF_HOST_WORKER_UPCALL_SERVICES_H

#include "worker/upcall.h"

// Serve the call in a frame and append its reply, if it has one, to `reply`. Returns -1 for a frame
// that no correct worker sends. [main]
int rlhf__ear_call(struct rlhf__ear *e, struct rlhf__wire in, struct rlhf__buf *reply);

// Returns the bits (enum below) of the services that the host has, for the worker's table. [main]
enum {
    RLHF__HAS_CLASSIFIER = 1,
    RLHF__HAS_TOKENIZER = 2,
    RLHF__HAS_MODEL = 4,
    RLHF__HAS_ROW = 8,
    RLHF__HAS_LIMITS = 16,
    RLHF__HAS_LANGUAGE = 32
};
uint32_t rlhf__ear_services(const rlhf_host *api);

#endif
