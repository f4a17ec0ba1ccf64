// rlhf/host.h: what the host offers to every plugin.
//
// A plugin imports no symbol from the host; this table is all it gets. Anything larger is behind
// service(id), e.g. "rlhf.classifier/0" (see service.h). Messages are finished strings; format
// them with the helpers of log.h.
#ifndef RLHF_HOST_H
#define RLHF_HOST_H

#include "base.h"
#include "rng.h"

enum rlhf_log_level {
    RLHF_LOG_DEBUG = 0,
    RLHF_LOG_INFO = 1,
    RLHF_LOG_WARN = 2,
    RLHF_LOG_ERROR = 3
};

typedef struct rlhf_host rlhf_host;
struct rlhf_host {
    uint32_t size, abi_minor;
    const char *name, *version; // "rlhf-host", its version
    // Log one line; the host adds time, plugin id and step. [any]
    void (*log)(const rlhf_host *, int32_t level, const char *msg);
    // Record why a call fails and return `code`: `return host->fail(host, RLHF_E_INVALID, "...")`.
    // The host copies msg and prints it with plugin, function and step. [any] [R:no-words]
    rlhf_status (*fail)(const rlhf_host *, rlhf_status code, const char *msg);
    // Zeroed, 64-byte aligned, NULL when out of memory (or bytes is 0). Freed with free. [any]
    // [R:alloc-overrun] [R:out-of-memory]
    void *(*alloc)(const rlhf_host *, uint64_t bytes);
    void (*free)(const rlhf_host *, void *); // NULL allowed [any] [R:free]
    // Report a scalar under a metric name for the current phase; a later value of the same name in
    // the same phase replaces it. A reward's metrics are kept as rewards/<its name>/<name>, a
    // judge's as judge/<name>, a model's as models/<role>/<name>, an algorithm's under the name as
    // it is. Names that the host reports itself (docs/metrics.md) are left out, with a warning.
    // A name has letters, digits, '_', '-', '.' and '/' alone. [step]
    // [R:metric-name] [R:metric-text]
    void (*metric)(const rlhf_host *, const char *name, double value); // [R:thread]
    // out = the generator of the named stream at the run's seed, counter 0. Streams belong to the
    // instance: the same name gives other numbers to another plugin, to another reward of the same
    // plugin, and to the host. [any]
    void (*rng)(const rlhf_host *, const char *stream, rlhf_rng *out);
    // Non-zero once the user asked to stop; poll in long loops. [any] [R:hang]
    int32_t (*cancelled)(const rlhf_host *);
    // The service table of that id, or NULL when the host has none. What a run has is there from
    // create() on and valid until destroy() returned: ask in create(), refuse there what cannot be
    // done without, and keep the pointer. [any]
    const void *(*service)(const rlhf_host *, const char *id);
    // sums[i] = the sum of sums[i] over all workers that train this model, in rank order, so that
    // every worker gets the same bits; the identity for a run of one process, as all are today.
    // Workers share the rows of a minibatch out among them (algo.h): what loss() added up must
    // pass through here before a decision or a metric is made of it. All workers make the same
    // calls with the same n, so not in loss(). [step] [R:reduce]
    rlhf_status (*reduce)(const rlhf_host *, double *sums, uint32_t n);
};

#endif
