// rlhf/host.h: what the host offers to every plugin.
//
// A plugin does not import symbols from the host; it uses only this table. Larger features are
// services, looked up with service(id), e.g. "rlhf.classifier/0" (see service.h). Messages are
// complete strings; format them with the helpers in log.h.
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
    // Zeroed, 64-byte aligned, NULL when out of memory (or bytes is 0). Release with free. [any]
    // [R:alloc-overrun] [R:out-of-memory]
    void *(*alloc)(const rlhf_host *, uint64_t bytes);
    void (*free)(const rlhf_host *, void *); // NULL allowed [any] [R:free]
    // Report a scalar metric for the current phase; a later value of the same name in the same
    // phase replaces it. The host prefixes the name: rewards/<its name>/<name> for a reward,
    // judge/<name> for a judge, models/<role>/<name> for a model; an algorithm's name is used
    // unchanged. Names that the host reports itself (docs/metrics.md) are dropped with a warning. A
    // name may contain only letters, digits, '_', '-', '.' and '/'. [step] [R:metric-name]
    // [R:metric-text]
    void (*metric)(const rlhf_host *, const char *name, double value); // [R:thread]
    // Sets *out to the generator of the named stream: the run's seed, counter 0. Streams are per
    // instance: the same name gives different numbers to other plugins, to other rewards of the
    // same plugin, and to the host. [any]
    void (*rng)(const rlhf_host *, const char *stream, rlhf_rng *out);
    // Non-zero once the user has asked to stop; poll in long loops. [any] [R:hang]
    int32_t (*cancelled)(const rlhf_host *);
    // Returns the service table with that id, or NULL if it is not available. Services are
    // available from create() until destroy() returns. Look them up in create(), fail there if a
    // required one is missing, and keep the pointer. [any]
    const void *(*service)(const rlhf_host *, const char *id);
};

#endif
