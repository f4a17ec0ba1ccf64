// tail.h: the bytes after an array that a plugin writes, and structs that a plugin must leave as
// they are. The host marks or copies them before a call and looks at them after it. So a plugin
// that writes there is named at once, and not what happens to fail later.
#ifndef RLHF_CORE_SUPERVISE_TAIL_H
#define RLHF_CORE_SUPERVISE_TAIL_H

#include <stddef.h>

enum { RLHF__TAIL = 64, RLHF__TAILS = 16, RLHF__LOANS = 8, RLHF__LOAN_MAX = 512 };

// Like calloc, with RLHF__TAIL more bytes. Also returns a valid pointer for 0 elements. [any]
void *rlhf__tail_alloc(size_t n, size_t size);

// The arrays and structs of one call. Begin with {.n = 0}.
struct rlhf__tails {
    struct {
        const char *name; // "out->seq"
        unsigned char *end;
        unsigned char kept[RLHF__TAIL]; // what was there before
    } of[RLHF__TAILS];
    struct {
        const char *name; // "rlhf_reward_out"
        void *at;
        size_t bytes;
        unsigned char was[RLHF__LOAN_MAX];
    } loan[RLHF__LOANS];
    size_t n, n_loans;
};

// Mark the RLHF__TAIL bytes after the first `bytes` bytes of `array`, which the caller owns. If
// `array` is NULL, does nothing. `name` must be static. [any]
void rlhf__tails_mark(struct rlhf__tails *, const char *name, void *array, size_t bytes);

// Copy a struct that the plugin must leave as it is. `name` must be static. At most RLHF__LOANS
// structs of RLHF__LOAN_MAX bytes. [any]
void rlhf__tails_lend(struct rlhf__tails *, const char *name, void *at, size_t bytes);

// Restore the bytes after the arrays, and the structs. If the plugin has changed any, writes what
// it did to why[cap] ("it wrote past the end of out->seq") and returns `why`; otherwise returns
// NULL. [any]
const char *rlhf__tails_end(struct rlhf__tails *, char *why, size_t cap);

#endif
