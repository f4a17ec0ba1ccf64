// tail.h: the bytes after an array that a plugin writes. The host marks them before a call and
// looks at them after it. So a plugin that writes past the end of an array is named at once, and
// not what happens to fail later.
#ifndef RLHF_CORE_SUPERVISE_TAIL_H
#define RLHF_CORE_SUPERVISE_TAIL_H

#include <stddef.h>

enum { RLHF__TAIL = 64, RLHF__TAILS = 16 };

#define RLHF__WROTE_PAST "it wrote past the end of %s" // what is said of the plugin

// Like calloc, with RLHF__TAIL more bytes. Also returns a valid pointer for 0 elements. [any]
void *rlhf__tail_alloc(size_t n, size_t size);

// The arrays of one call. Zero-initialize.
struct rlhf__tails {
    struct {
        const char *name; // "out->seq"
        unsigned char *end;
        unsigned char kept[RLHF__TAIL]; // what was there before
    } of[RLHF__TAILS];
    size_t n;
};

// Mark the RLHF__TAIL bytes after the first `bytes` bytes of `array`, which the caller owns. If
// `array` is NULL, does nothing. `name` must be static. [any]
void rlhf__tails_mark(struct rlhf__tails *, const char *name, void *array, size_t bytes);

// Restore the bytes. Returns the name of the first array with a changed mark, or NULL. [any]
const char *rlhf__tails_end(struct rlhf__tails *);

#endif
