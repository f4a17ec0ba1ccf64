// guard.h: memory between inaccessible pages. A plugin that reads or writes outside of its arrays
// faults at that access.
//
// Only child processes that test a plugin use this memory. A child that faults records this in its
// log and exits.
#ifndef RLHF_TOOLS_CHECK_GUARD_H
#define RLHF_TOOLS_CHECK_GUARD_H

#include "check/child_log.h"
#include "plugin/growth.h"

#include <stddef.h>

enum rlhf__guard_side {
    RLHF__GUARD_END = 0,  // the last byte is just before the inaccessible page
    RLHF__GUARD_BEGIN = 1 // the first byte is just after an inaccessible page
};

// Guarded memory of one call.
struct rlhf__guards;

// Returns an empty object, or NULL if out of memory. Free it with rlhf__guards_close. The fault
// handler reports to `log`. [main]
struct rlhf__guards *rlhf__guards_open(struct rlhf__child_log *log);
void rlhf__guards_close(struct rlhf__guards *); // unmaps; NULL allowed [main]

// Get n bytes, or an inaccessible address if n is 0. `what` names the bytes ("in->ids"). `rule` is
// the rule that is violated by an access outside of the bytes, or by a write to them after
// rlhf__guards_protect. Returns NULL if out of memory. [main]
void *rlhf__guard_take(struct rlhf__guards *, size_t n, int32_t side, int32_t rule,
                       const char *what);

// Make everything taken so far read-only. [main]
void rlhf__guards_protect(struct rlhf__guards *);

// Report faults of this process from now on. A child calls this function once. [main]
void rlhf__guard_install(struct rlhf__child_log *log);

// ---- structs that the plugin fills, each just before an inaccessible page. A plugin that writes a
// field which the host does not know faults there. ----

// Returns a zeroed T with its size set for a plugin that was built with this minor version of the
// contract, or NULL if out of memory. `guards` may be NULL: out of memory. [main]
#define RLHF__GUARDED(T, guards, minor) ((T *)rlhf__guard_struct(guards, RLHF__STRUCT_##T, minor))
void *rlhf__guard_struct(struct rlhf__guards *guards, enum rlhf__struct which, uint32_t minor);

// Copy the struct to *out, a complete struct of the host. Reports a plugin that has changed its
// size, or set `reserved`. [main]
void rlhf__guard_struct_end(enum rlhf__struct which, const void *at, void *out, uint32_t minor,
                            struct rlhf__child_log *log);

// Reports a plugin that has replaced one of n pointers of the host's struct `name`. [main]
void rlhf__guard_lent(const char *name, const struct rlhf__lent *lent, size_t n,
                      struct rlhf__child_log *log);

// End the check of structs that were lent to the plugin (RLHF__LEND). Reports a plugin that has
// changed one. [any]
void rlhf__guard_kept(struct rlhf__tails *tails, struct rlhf__child_log *log);

#endif
