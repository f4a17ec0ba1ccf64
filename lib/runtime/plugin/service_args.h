// service_args.h: the structs and arrays that a plugin passes to a service. A failure is reported
// to the caller's host.
#ifndef RLHF_LIB_RUNTIME_PLUGIN_SERVICE_ARGS_H
#define RLHF_LIB_RUNTIME_PLUGIN_SERVICE_ARGS_H

#include "plugin/growth.h"

#include <rlhf/service.h>

// Read a struct of the caller (rlhf_copy_in). `last` is the last member of its first version.
// Errors: RLHF_E_INVALID, RLHF_E_UNSUPPORTED (also if its `reserved` is not 0). [any]
#define RLHF__TAKE(host, T, to, from, last)                                                        \
    rlhf__service_take(host, RLHF__STRUCT_##T, 1 ? (to) : (T *)0, sizeof(T), from,                 \
                       RLHF_SIZE_TO(T, last))
rlhf_status rlhf__service_take(const rlhf_host *host, enum rlhf__struct which, void *to,
                               uint32_t own, const void *from, uint32_t first);

// Fill a struct of the caller (rlhf_copy_out). A caller of an earlier version gets the first
// members. Errors: RLHF_E_INVALID. [any]
#define RLHF__GIVE(host, T, to, from, last)                                                        \
    rlhf__service_give(host, RLHF__STRUCT_##T, 1 ? (to) : (T *)0, from, sizeof(T),                 \
                       RLHF_SIZE_TO(T, last))
rlhf_status rlhf__service_give(const rlhf_host *host, enum rlhf__struct which, void *to,
                               const void *from, uint32_t own, uint32_t first);

// Returns RLHF_E_INVALID if `given` is 0: the call of `what`, such as "score()", needs `arrays`.
// [any]
rlhf_status rlhf__service_needs(const rlhf_host *host, int given, const char *what,
                                const char *arrays);

// Check n ragged rows, each of which has at least one prompt token. If prompt_len is NULL, the rows
// are prompts. The ids are not checked. Errors: RLHF_E_INVALID. [any]
rlhf_status rlhf__service_rows(const rlhf_host *host, uint32_t n, const int32_t *offset,
                               const int32_t *prompt_len);

#endif
