// instance.h: the instance of a backend's plugin. It holds the host, and the text that describe()
// returns.
//
// For C and C++. Each table (rlhf_compute) that an instance opens has separate memory and its own
// pointer to the host.
#ifndef RLHF_KERNELS_REFERENCE_INSTANCE_H
#define RLHF_KERNELS_REFERENCE_INSTANCE_H

#include "json.h"

#include <rlhf/compute.h>

struct rlhf__backend {
    const rlhf_host *host;
    struct rlhf__json json;
};

// Implements rlhf_plugin.create.
static inline rlhf_status rlhf__backend_create(const rlhf_host *host, const void *config,
                                               void **self) {
    (void)config;
    struct rlhf__backend *b = (struct rlhf__backend *)host->alloc(host, sizeof *b);
    if (!b) return (host->fail)(host, RLHF_E_NOMEM, "out of memory");
    b->host = host;
    *self = b;
    return RLHF_OK;
}

// Implements rlhf_plugin.destroy.
static inline void rlhf__backend_destroy(void *self) {
    struct rlhf__backend *b = (struct rlhf__backend *)self;
    if (b) b->host->free(b->host, b);
}

// Complete the text of describe(): closes the outermost object, and sets *json to the text.
static inline rlhf_status rlhf__backend_described(struct rlhf__backend *b, const char **json) {
    rlhf__json_end(&b->json, "}");
    if (b->json.full)
        return (b->host->fail)(b->host, RLHF_E_INTERNAL, "the description is too long");
    *json = b->json.text;
    return RLHF_OK;
}

#endif
