// parts.h: a barrier at which every rank sends bytes, of any length, to all others.
#ifndef RLHF_HOST_TEAM_PARTS_H
#define RLHF_HOST_TEAM_PARTS_H

#include "base/buf.h"
#include "team/agree.h"

// The bytes of all ranks; zero-initialize.
struct rlhf__parts {
    char *bytes;
    uint64_t *at; // [ranks + 1] rank k's are [at[k], at[k + 1])
};

void rlhf__parts_finish(struct rlhf__parts *); // accepts a zeroed struct [any]

// Call rlhf__team_agree with this barrier and `st`, then exchange `own`. The parameter `same` is as
// in struct rlhf__wish. [main]
rlhf_status rlhf__parts_exchange(struct rlhf__team *t, enum rlhf__barrier barrier, int64_t same,
                                 const struct rlhf__buf *own, rlhf_status st,
                                 struct rlhf__parts *out, struct rlhf__error *err);

// Reads the bytes of one rank.
struct rlhf__part {
    const char *at, *end;
};

// Returns the bytes of a rank. [any]
static inline struct rlhf__part rlhf__part_of(const struct rlhf__parts *p, int32_t rank) {
    return (struct rlhf__part){p->bytes + p->at[rank], p->bytes + p->at[rank + 1]};
}

// Copy the next `n` bytes to `dst`. Errors: RLHF_E_INTERNAL if there are fewer than `n`. [any]
rlhf_status rlhf__part_get(struct rlhf__part *p, void *dst, size_t n, struct rlhf__error *err);

#endif
