// upcall.h: calls of the host by a plugin in a worker. Its log lines, failures and metrics are
// dealt with here, services in upcall_services.h. A number or a text of the worker is checked
// before it is used.
#ifndef RLHF_HOST_WORKER_UPCALL_H
#define RLHF_HOST_WORKER_UPCALL_H

#include "plugin/services.h"
#include "worker/wire.h"

// Of a worker: objects that it may have open; messages, and MiB of texts, that it may send in a
// call.
enum { RLHF__HANDLES = 64, RLHF__MOST_MESSAGES = 1000000, RLHF__MOST_TEXT_MIB = 256 };

// An object of a service that a worker has open.
struct rlhf__handle {
    int32_t kind, reserved; // enum rlhf__handle_kind in upcall_services.c; 0 = free
    void *object;
};

// What stands for one instance's plugin in the host. Zero-initialise.
struct rlhf__ear {
    const rlhf_host *api; // of the instance; NULL: nobody to tell
    struct rlhf__handle handle[RLHF__HANDLES];
    uint32_t lines, left_out; // logged or printed in this call, and not shown
    uint32_t messages;        // of this call
    rlhf_status said_code;    // of said
    uint64_t bytes;           // of this call: logged, printed, reported, failed with
    int32_t vocabulary;       // of the policy, 0 = not asked yet
    int32_t beside;           // 1: not on the thread that computes, whose models it leaves alone
    struct rlhf__buf reports; // metrics of this call, as frames: the call may still fail
    char said[2044];          // that it failed with in this call, "" = nothing
};

// Report the metrics of this call, which has succeeded. [main]
void rlhf__ear_report(struct rlhf__ear *e);

void rlhf__ear_finish(struct rlhf__ear *e); // accepts a zeroed one [main]

// Begin a call: counts of lines are of it. [main]
void rlhf__ear_begin(struct rlhf__ear *e);
// End it: says how many lines were left out. [main]
void rlhf__ear_end(struct rlhf__ear *e);

// 1 when it has exceeded a limit of this call. [main]
int rlhf__ear_flooded(const struct rlhf__ear *e);

// A line that the worker printed. [main]
void rlhf__ear_printed(struct rlhf__ear *e, const char *text, size_t n);

// Do what a frame asks; what goes back is appended to `reply`, a frame or nothing. -1 when it is
// none of a worker's. [main]
int rlhf__ear_call(struct rlhf__ear *e, struct rlhf__wire in, struct rlhf__buf *reply);

#endif
