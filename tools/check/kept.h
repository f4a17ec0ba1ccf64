// kept.h: what save() of an instance wrote, in memory, for load() of another.
#ifndef RLHF_HOST_CHECK_KEPT_H
#define RLHF_HOST_CHECK_KEPT_H

#include "check/watched.h"

struct rlhf__kept {
    rlhf_ostream out; // first of the two
    rlhf_istream in;
    char *bytes;
    uint64_t len, at, limit; // written, read, and what may be written
    rlhf_status full;        // what write() returns beyond limit
    int32_t refused;         // 1: it did
};

// 0 when out of memory. Needs finish also then. [main]
int rlhf__kept_init(struct rlhf__kept *s);
void rlhf__kept_finish(struct rlhf__kept *s);

// save() and load() of an instance whose plugin has them; the plugin's status. What is against the
// rules of calls is found. [main]
rlhf_status rlhf__kept_save(struct rlhf__watched *t, struct rlhf__kept *s, struct rlhf__error *err);
rlhf_status rlhf__kept_load(struct rlhf__watched *t, struct rlhf__kept *s, uint32_t version,
                            struct rlhf__error *err);

#endif
