// state_buffer.h: an instance's saved state in memory, for load() of another instance.
#ifndef RLHF_HOST_CHECK_STATE_BUFFER_H
#define RLHF_HOST_CHECK_STATE_BUFFER_H

#include "check/probe.h"

struct rlhf__state_buffer {
    rlhf_ostream out; // the first of the two
    rlhf_istream in;
    char *bytes;
    uint64_t len, at, limit; // bytes written, bytes read, limit of writing
    rlhf_status full;        // what write() returns beyond limit
    int32_t refused;         // 1: write() has failed
};

// Returns 0 if out of memory. Needs finish in any case. [main]
int rlhf__state_buffer_init(struct rlhf__state_buffer *s);
void rlhf__state_buffer_finish(struct rlhf__state_buffer *s);

// Call save() and load() of an instance whose plugin has them; returns the plugin's status.
// Violations of the rules of calls are reported. [main]
rlhf_status rlhf__state_buffer_save(struct rlhf__probe *t, struct rlhf__state_buffer *s,
                                    struct rlhf__error *err);
rlhf_status rlhf__state_buffer_load(struct rlhf__probe *t, struct rlhf__state_buffer *s,
                                    uint32_t version, struct rlhf__error *err);

#endif
