// upcall_handles.h: the objects of services that a plugin in a worker has opened. The worker knows
// them by numbers, which are checked here.
#ifndef RLHF_HOST_WORKER_UPCALL_HANDLES_H
#define RLHF_HOST_WORKER_UPCALL_HANDLES_H

#include "worker/upcall.h"

// The services whose objects have handles.
enum rlhf__handle_kind {
    RLHF__HANDLE_CLASSIFIER = 1,
    RLHF__HANDLE_TOKENIZER = 2,
    RLHF__HANDLE_MODEL = 3, // of a reward
    RLHF__HANDLE_LANGUAGE = 4
};

// Returns the table of a service, or NULL. [main]
const void *rlhf__ear_table(const struct rlhf__ear *e, const char *id);

// Returns the object of a handle that the worker sent, or NULL if the handle is of another kind.
// [main]
void *rlhf__ear_object(const struct rlhf__ear *e, uint32_t handle, int32_t kind);

// Open an object with the arguments in a frame, and write the reply up to the handle. Returns the
// object, or NULL if it could not be opened; the reply then has the status. [main]
void *rlhf__ear_open(struct rlhf__ear *e, int32_t kind, struct rlhf__wire *in,
                     struct rlhf__buf *out);

// Close an object of the worker. Returns 0 for an invalid handle. [main]
int rlhf__ear_close(struct rlhf__ear *e, uint32_t handle);

// Close the objects that the worker left open. [main]
void rlhf__handles_close(const rlhf_host *api, struct rlhf__handle handle[RLHF__HANDLES]);

// Write a reply's status, and return it. After success the caller appends the results. [main]
rlhf_status rlhf__ear_answer(struct rlhf__buf *out, rlhf_status st);

#endif
