// guard_struct.h: a struct that the plugin fills, just before an inaccessible page. A plugin that
// writes a field which the host does not know faults there.
#ifndef RLHF_TOOLS_CHECK_GUARD_STRUCT_H
#define RLHF_TOOLS_CHECK_GUARD_STRUCT_H

#include "check/guard.h"
#include "plugin/growth.h"

// Returns a zeroed T with its size set for a plugin that was built with this minor version of the
// contract, or NULL if out of memory. `guards` may be NULL: out of memory. [main]
#define RLHF__GUARDED(T, guards, minor) ((T *)rlhf__guard_struct(guards, RLHF__STRUCT_##T, minor))
void *rlhf__guard_struct(struct rlhf__guards *guards, enum rlhf__struct which, uint32_t minor);

// Copy the struct to *out, a complete struct of the host. Reports a plugin that has changed its
// size. [main]
void rlhf__guard_struct_end(enum rlhf__struct which, const void *at, void *out, uint32_t minor,
                            struct rlhf__child_log *log);

#endif
