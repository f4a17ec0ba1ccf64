// guard_struct.c: see guard_struct.h.
#include "check/guard_struct.h"

#include <string.h>

void *rlhf__guard_struct(struct rlhf__guards *guards, enum rlhf__struct which, uint32_t minor) {
    const uint32_t size = rlhf__struct_size(which, minor);
    void *at = guards ? rlhf__guard_take(guards, size, RLHF__GUARD_END, RLHF__CHECK_ROOM,
                                         rlhf__struct_name(which))
                      : NULL;
    if (at) memcpy(at, &size, sizeof size);
    return at;
}

void rlhf__guard_struct_end(enum rlhf__struct which, const void *at, void *out, uint32_t minor,
                            struct rlhf__child_log *log) {
    const uint32_t size = rlhf__struct_size(which, minor);
    const uint32_t own = rlhf__struct_size(which, RLHF_ABI_MINOR);
    uint32_t found;
    memcpy(&found, at, sizeof found);
    if (found != size)
        rlhf__child_log_found(log, RLHF__CHECK_ROOM, "the size of the host's %s was %u, is %u",
                              rlhf__struct_name(which), size, found);
    memset(out, 0, own);
    memcpy(out, at, size);
}
