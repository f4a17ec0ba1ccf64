// batch.h: the rows of a batch and what a reward writes of them, in two files in memory that host
// and worker have mapped: no parsing, and places in the file where rlhf_reward_in has pointers.
//
// Input: struct rlhf__batch_head, then the arrays of rlhf_reward_in, texts as {place, length}, then
// the texts' bytes. The host writes it and never reads it back.
//
// Output: a block with struct rlhf__batch_note, then one block an array of
// rlhf_reward_out. An array ends where its block ends, so that in the worker a write behind it
// meets a page that nobody may touch (fence.h). The host reads it by places that it computed
// itself.
#ifndef RLHF_HOST_WORKER_BATCH_H
#define RLHF_HOST_WORKER_BATCH_H

#include "base/error.h"

#include <rlhf/reward.h>

#include <stdatomic.h>

enum rlhf__out { RLHF__OUT_SEQ, RLHF__OUT_TOKEN, RLHF__OUT_VERDICT, RLHF__OUT_FAILED, RLHF__OUTS };

struct rlhf__batch_head {
    uint32_t n, has_token;
    int64_t phase;
    uint64_t bytes;                  // of the input
    uint64_t prompt, response, meta; // places of struct rlhf__batch_text [n]
    uint64_t ids, offset, prompt_len, finished, group, source;
    uint64_t logp_sampled, logp_ref; // 0: not given
};

struct rlhf__batch_text {
    uint64_t at, len;
};

// What the worker says of itself while it works, and the host to it.
struct rlhf__batch_note {
    atomic_uint cancelled; // by the host: 1 = the user asked to stop
    atomic_uint signal;    // by the worker: that ended it, 0 = none
    atomic_uint fence;     // by the worker: 1 + enum rlhf__out that was left, 5 = the input
    atomic_uint before;    // by the worker: 1 = at an array's front, else behind its end
    atomic_uint no_memory; // by the worker: 1 = there was none left when it ended
};

#define RLHF__FENCE_INPUT 5u

// Where the arrays of an output are, in bytes from its start; block[RLHF__OUTS] is its end.
struct rlhf__out_places {
    uint64_t block[RLHF__OUTS + 1]; // multiples of 64 KiB, so whole pages
    uint64_t at[RLHF__OUTS], bytes[RLHF__OUTS];
};

// Of n rows with `total` tokens; has_token 0: no tokens are paid and their array is empty. [any]
void rlhf__out_places(uint32_t n, uint64_t total, int has_token, struct rlhf__out_places *out);

// Bytes that rows [from, to) of a batch take as input. [any]
uint64_t rlhf__batch_bytes(const rlhf_reward_in *in, uint32_t from, uint32_t to);

// Write them to `to_bytes`, which has room. [any]
void rlhf__batch_put(const rlhf_reward_in *in, uint32_t from, uint32_t to, int has_token,
                     void *to_bytes);

// A batch as a reward gets it, of `bytes` bytes of input: *in points into them, *texts is what its
// texts are (free it). -1 when a place or a length is not in there, or there is no memory. [any]
int rlhf__batch_get(const void *input, uint64_t bytes, rlhf_reward_in *in, int *has_token,
                    rlhf_str **texts);

// A float that no reward writes by chance: what is still there was not written.
#define RLHF__UNWRITTEN 0x7fc5a5a5u

#endif
