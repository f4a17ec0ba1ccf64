// spans.h: a list of texts in one buffer, what a decoder's steps hand to each other.
//
// What it is not: a list to look into at random while it grows; internal to text/.
#ifndef RLHF_HOST_TEXT_SPANS_H
#define RLHF_HOST_TEXT_SPANS_H

#include "base/buf.h"

// Zero-initialise; release with rlhf__spans_finish. Text i ends at end[i], where the next begins;
// bytes behind the last end belong to a text that is not ended. A failed allocation makes it
// sticky-bad, as in buf.h.
struct rlhf__spans {
    struct rlhf__buf bytes;
    size_t *end; // [n]
    size_t n, cap;
};

// Append to the text that is being written. [one thread]
void rlhf__spans_put(struct rlhf__spans *list, const void *bytes, size_t n);

// End it; the next put begins another. [one thread]
void rlhf__spans_end(struct rlhf__spans *list);

// Text i < n. Borrowed until the next put. [any]
rlhf_str rlhf__spans_get(const struct rlhf__spans *list, size_t i);

// Empty, the memory is kept. [one thread]
void rlhf__spans_clear(struct rlhf__spans *list);

void rlhf__spans_finish(struct rlhf__spans *list);

#endif
