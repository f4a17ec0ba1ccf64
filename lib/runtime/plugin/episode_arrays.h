// episode_arrays.h: the arrays of one call of an environment (rlhf/environment.h).
#ifndef RLHF_HOST_PLUGIN_EPISODE_ARRAYS_H
#define RLHF_HOST_PLUGIN_EPISODE_ARRAYS_H

#include "supervise/tail.h"

#include <rlhf/environment.h>
#include <stddef.h>

// The pointers in `in` and `out` point into the arrays below, except in.call, out.say and
// out.metric, which the caller sets. The caller fills the arrays of `in` before calling the
// environment.
struct rlhf__episode_arrays {
    rlhf_episode_out out; // first member, so that say() and metric() can cast it back
    rlhf_episode_in in;
    void **state;             // [n]
    uint64_t *episode, *seed; // [n]
    int32_t *turn;            // [n]
    int32_t *call_offset;     // [n + 1]
    rlhf_str *meta, *text;    // [n]
    uint8_t *ended;           // [n] for in.end
    float *reward;            // [n]
};

// Allocate zeroed arrays for n episodes. Returns 0 if out of memory. Release them with
// rlhf__episode_arrays_finish, even after a failure. [any]
int rlhf__episode_arrays_init(struct rlhf__episode_arrays *, uint32_t n, int64_t phase);
void rlhf__episode_arrays_finish(struct rlhf__episode_arrays *); // [any]

// Read the message of a call of say(). If the host cannot read it, writes the reason to why[cap]
// and returns RLHF_E_INVALID. [any]
rlhf_status rlhf__message_read(rlhf_message *to, const rlhf_message *from, char *why, size_t cap);

// Mark the ends of the arrays that the environment writes, and lend `in` and `out` to an
// environment that was built with this minor version. Call rlhf__tails_end after the environment.
// [any]
void rlhf__episode_arrays_mark(struct rlhf__episode_arrays *, struct rlhf__tails *, uint32_t minor);

#endif
