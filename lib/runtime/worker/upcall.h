// upcall.h: serves the calls of a plugin in a worker: log lines, failures and metrics here,
// services in upcall_services.h. Numbers and texts from the worker are checked before they are
// used.
#ifndef RLHF_HOST_WORKER_UPCALL_H
#define RLHF_HOST_WORKER_UPCALL_H

#include "plugin/services.h"
#include "wire/wire.h"

// Limits for a worker: the open objects, and the messages and MiB of text during one call.
enum { RLHF__HANDLES = 64, RLHF__MOST_MESSAGES = 1000000, RLHF__MOST_TEXT_MIB = 256 };

// An object of a service that a worker has opened.
struct rlhf__handle {
    int32_t kind; // enum rlhf__handle_kind in upcall_handles.h; 0 = free
    void *object;
};

// Serves the calls of one instance's plugin. Zero-initialize.
struct rlhf__ear {
    const rlhf_host *api; // the instance's; NULL: calls are ignored
    struct rlhf__handle handle[RLHF__HANDLES];
    uint32_t lines, left_out; // in this call: lines logged or printed, and lines not shown
    uint32_t messages;        // in this call
    rlhf_status said_code;    // code of `said`
    uint64_t bytes;           // in this call: bytes of all texts
    struct rlhf__buf reports; // metrics of this call, as frames; reported only if it succeeds
    char said[2044];          // the failure's text in this call, "" = none
};

// Report the metrics of this call, which must have succeeded. [main]
void rlhf__ear_report(struct rlhf__ear *e);

void rlhf__ear_finish(struct rlhf__ear *e); // accepts a zeroed struct [main]

// Begin a call: the counters start from 0. [main]
void rlhf__ear_begin(struct rlhf__ear *e);
// End a call: log how many lines were not shown. [main]
void rlhf__ear_end(struct rlhf__ear *e);

// Returns 1 if the worker has exceeded a limit in this call. [main]
int rlhf__ear_flooded(const struct rlhf__ear *e);

// Log a line that the worker printed. [main]
void rlhf__ear_printed(struct rlhf__ear *e, const char *text, size_t n);

// Serve a call that has no reply: a log line, a failure or a metric. Returns -1 for a frame that no
// correct worker sends. [main]
int rlhf__ear_words(struct rlhf__ear *e, struct rlhf__wire *in);

#endif
