// batch.h: the rows of a batch, and a reward's output for them, in two memory files that both host
// and worker have mapped. Nothing is parsed; offsets in the file replace the pointers of
// rlhf_reward_in.
//
// Input: struct rlhf__batch_head, then the arrays of rlhf_reward_in, texts as {place, length}, then
// the texts' bytes. The host writes it and never reads it back.
//
// Output: a block with struct rlhf__batch_note, then one block for each array of rlhf_reward_out.
// An array ends at the end of its block, so that in the worker a write past its end hits an
// inaccessible page (fence.h). The host reads the output at offsets that it computed itself.
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
    uint64_t logp_sampled, logp_ref, turn, messages, end; // 0: not given
};

struct rlhf__batch_text {
    uint64_t at, len;
};

// Flags that the worker sets while it works, and one that the host sets.
struct rlhf__batch_note {
    atomic_uint cancelled; // by the host: 1 = the user asked to stop
    atomic_uint signal;    // by the worker: the signal that ended it, 0 = none
    // set by the worker: the array that it wrote outside of, 1 + enum rlhf__out; 5 = the input
    atomic_uint fence;
    // set by the worker: 1 = it wrote before the array's start, 0 = past its end
    atomic_uint before;
    atomic_uint no_memory; // set by the worker: 1 = it had run out of memory when it ended
};

#define RLHF__FENCE_INPUT 5u

// Where the arrays of an output are, in bytes from its start; block[RLHF__OUTS] is its end.
struct rlhf__out_places {
    uint64_t block[RLHF__OUTS + 1]; // multiples of 64 KiB, so whole pages
    uint64_t at[RLHF__OUTS], bytes[RLHF__OUTS];
};

// Places for n rows with `total` tokens; has_token 0: the array of per-token rewards is empty.
// [any]
void rlhf__out_places(uint32_t n, uint64_t total, int has_token, struct rlhf__out_places *out);

// Bytes that rows [from, to) of a batch take as input. [any]
uint64_t rlhf__batch_bytes(const rlhf_reward_in *in, uint32_t from, uint32_t to);

// Write them to `to_bytes`, which has room. [any]
void rlhf__batch_put(const rlhf_reward_in *in, uint32_t from, uint32_t to, int has_token,
                     void *to_bytes);

// Read an input of `bytes` bytes into *in, as a reward gets it. *in points into the input and into
// *texts, which the caller frees. -1 if an offset or a length is outside the input, or if memory
// runs out. [any]
int rlhf__batch_get(const void *input, uint64_t bytes, rlhf_reward_in *in, int *has_token,
                    rlhf_str **texts);

// A float that rewards do not write by chance: a cell that still holds it was not written.
#define RLHF__UNWRITTEN 0x7fc5a5a5u

#endif
