// upcall.h: serves the calls that a plugin in a worker makes: log lines, failures and metrics here,
// services in upcall_services.h. Numbers and texts from the worker are checked before use.
#ifndef RLHF_HOST_WORKER_UPCALL_H
#define RLHF_HOST_WORKER_UPCALL_H

#include "plugin/services.h"
#include "worker/wire.h"

// Limits for a worker: objects that it may have open; messages, and MiB of texts, that it may send
// during one call.
enum { RLHF__HANDLES = 64, RLHF__MOST_MESSAGES = 1000000, RLHF__MOST_TEXT_MIB = 256 };

// An object of a service that a worker has open.
struct rlhf__handle {
    int32_t kind, reserved; // enum rlhf__handle_kind in upcall_services.c; 0 = free
    void *object;
};

// The host's side of one instance's plugin. Zero-initialise.
struct rlhf__ear {
    const rlhf_host *api; // of the instance; NULL: calls are ignored
    struct rlhf__handle handle[RLHF__HANDLES];
    uint32_t lines, left_out; // of this call: lines logged or printed; lines that were not shown
    uint32_t messages;        // of this call
    rlhf_status said_code;    // of said
    uint64_t bytes;           // of this call: bytes logged, printed, reported and failed with
    int32_t vocabulary;       // of the policy, 0 = not asked yet
    int32_t beside; // 1: the call is not on the thread that computes, so it must not use models
    struct rlhf__buf reports; // this call's metrics, as frames; reported only if the call succeeds
    char said[2044];          // the failure's text in this call, "" = none
};

// Report the metrics of this call, which has succeeded. [main]
void rlhf__ear_report(struct rlhf__ear *e);

void rlhf__ear_finish(struct rlhf__ear *e); // accepts a zeroed one [main]

// Begin a call: counts of lines are of it. [main]
void rlhf__ear_begin(struct rlhf__ear *e);
// End it: log how many lines were left out. [main]
void rlhf__ear_end(struct rlhf__ear *e);

// 1 when it has exceeded a limit of this call. [main]
int rlhf__ear_flooded(const struct rlhf__ear *e);

// A line that the worker printed. [main]
void rlhf__ear_printed(struct rlhf__ear *e, const char *text, size_t n);

// Serve the call in a frame and append the reply, which is a frame or nothing, to `reply`. Returns
// -1 if no worker sends such a frame. [main]
int rlhf__ear_call(struct rlhf__ear *e, struct rlhf__wire in, struct rlhf__buf *reply);

#endif
