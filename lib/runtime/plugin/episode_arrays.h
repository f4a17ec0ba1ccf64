// episode_arrays.h: the arrays of one call of an environment (rlhf/environment.h).
#ifndef RLHF_HOST_PLUGIN_EPISODE_ARRAYS_H
#define RLHF_HOST_PLUGIN_EPISODE_ARRAYS_H

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

#endif
