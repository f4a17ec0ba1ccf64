// guard.h: memory between pages that nobody may touch, so that a plugin which reads or writes
// beside what it was given is seen where it does it.
//
// For a child process that tries a plugin: a fault in guarded memory is told on the board before
// the child ends by it.
#ifndef RLHF_HOST_CHECK_GUARD_H
#define RLHF_HOST_CHECK_GUARD_H

#include "check/board.h"

#include <stddef.h>

enum rlhf__guard_side {
    RLHF__GUARD_END = 0,  // the last byte lies before the closed page
    RLHF__GUARD_BEGIN = 1 // the first byte lies behind one
};

// Guarded memory of one call.
struct rlhf__guards;

// *out needs free. NULL when out of memory. The handler tells board. [main]
struct rlhf__guards *rlhf__guards_new(struct rlhf__board *board);
void rlhf__guards_free(struct rlhf__guards *); // unmaps; NULL allowed [main]

// n bytes (0: an address that may not be touched); what: "in->ids". rule: what touching beside
// them, or writing into them once closed, is against. NULL when out of memory. [main]
void *rlhf__guard_take(struct rlhf__guards *, size_t n, int32_t side, int32_t rule,
                       const char *what);

// All that was taken so far may be read only. [main]
void rlhf__guards_close(struct rlhf__guards *);

// Tell faults of this process from now on; once, by a child. [main]
void rlhf__guard_install(struct rlhf__board *board);

#endif
