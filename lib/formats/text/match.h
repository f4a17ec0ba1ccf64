// match.h: the places in a text where one of many other texts stands: the earliest first, of those
// that begin there the longest.
//
// What it is not: it knows nothing of tokens; internal to text/.
#ifndef RLHF_HOST_TEXT_MATCH_H
#define RLHF_HOST_TEXT_MATCH_H

#include "base/buf.h"

struct rlhf__needle {
    uint32_t at, len; // bytes in `bytes`
    uint32_t value, order;
};

// Zero-initialise; release with rlhf__matcher_finish. Texts are added, then sorted once.
struct rlhf__matcher {
    struct rlhf__buf bytes;
    struct rlhf__needle *item; // [n], by their bytes once sorted
    size_t n, cap;
    uint32_t first[257]; // those that begin with byte b are item[first[b]..first[b + 1])
};

// Find s[0..len) from now on, as `value`; of two equal texts the one added first counts. An empty
// one is never found. Errors: RLHF_E_NOMEM, RLHF_E_INVALID (more than 4 GiB). [one thread]
rlhf_status rlhf__matcher_add(struct rlhf__matcher *m, const char *s, size_t len, uint32_t value,
                              struct rlhf__error *err);

// After the last of them, before the first search. [one thread]
void rlhf__matcher_sort(struct rlhf__matcher *m);

struct rlhf__match {
    size_t begin, end; // bytes of the text
    uint32_t value;
};

// The first match in s[from..n), 0 when there is none. [any]
int rlhf__matcher_next(const struct rlhf__matcher *m, const char *s, size_t n, size_t from,
                       struct rlhf__match *out);

void rlhf__matcher_finish(struct rlhf__matcher *m);

#endif
