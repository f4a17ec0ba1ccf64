// batch.h: lays out the rows of a batch, and a reward's output for them, in two memory files, which
// host and worker both map. Nothing has to be parsed, because the pointers of rlhf_reward_in become
// offsets in the file.
//
// Input: struct rlhf__batch_head, the arrays of rlhf_reward_in with texts as {place, length}, then
// the texts' bytes. The host writes the input and never reads it back.
//
// Output: a block with struct rlhf__batch_note, then one block for each array of rlhf_reward_out.
// Each array ends where its block ends. In the worker, an inaccessible page follows each array, so
// that a write past the array faults (fence.h). The host reads the output only at offsets that it
// computed itself.
#ifndef RLHF_HOST_WIRE_BATCH_H
#define RLHF_HOST_WIRE_BATCH_H

#include "base/error.h"

#include <rlhf/reward.h>

#include <stdatomic.h>

enum rlhf__out { RLHF__OUT_SEQ, RLHF__OUT_TOKEN, RLHF__OUT_VERDICT, RLHF__OUT_FAILED, RLHF__OUTS };

struct rlhf__batch_head {
    uint32_t n, has_token;
    int64_t phase;
    uint64_t bytes;                  // length of the input
    uint64_t prompt, response, meta; // offsets of struct rlhf__batch_text [n]
    uint64_t ids, offset, prompt_len, finished, group, source;
    uint64_t logp_sampled, logp_ref, turn, messages, end; // 0: not given
};

struct rlhf__batch_text {
    uint64_t at, len;
};

// Flags that the worker sets while it works, and `cancelled`, which the host sets.
struct rlhf__batch_note {
    atomic_uint cancelled; // by the host: 1 = the user asked to stop
    atomic_uint signal;    // set by the worker: the signal that terminated it; 0 = none
    // Set by the worker if it finds an illegal write. RLHF__FENCE_INPUT: a write to the input.
    // Other values are 1 + the enum rlhf__out of the output array that was written beyond its
    // bounds.
    atomic_uint fence;
    // set by the worker: 1 = the write was before the start of that array, 0 = past its end
    atomic_uint before;
    atomic_uint no_memory; // set by the worker: 1 = it was out of memory when it terminated
};

#define RLHF__FENCE_INPUT 5u

// Offsets of the arrays in an output, in bytes. block[RLHF__OUTS] is the output's length.
struct rlhf__out_places {
    uint64_t block[RLHF__OUTS + 1]; // multiples of 64 KiB, i.e. of whole pages
    uint64_t at[RLHF__OUTS], bytes[RLHF__OUTS];
};

// Compute the places for n rows with `total` tokens. If `has_token` is 0, the array of token
// rewards is empty. [any]
void rlhf__out_places(uint32_t n, uint64_t total, int has_token, struct rlhf__out_places *out);

// Returns the size of the input for rows [from, to) of a batch. [any]
uint64_t rlhf__batch_bytes(const rlhf_reward_in *in, uint32_t from, uint32_t to);

// Write the input for these rows to `to_bytes`, which must have room for rlhf__batch_bytes() bytes.
// [any]
void rlhf__batch_put(const rlhf_reward_in *in, uint32_t from, uint32_t to, int has_token,
                     void *to_bytes);

// Read an input of `bytes` bytes into *in, in the form that a reward receives. *in points into the
// input and into *texts, which the caller frees. Returns -1 if an offset or a length is outside the
// input, or if memory runs out. [any]
int rlhf__batch_get(const void *input, uint64_t bytes, rlhf_reward_in *in, int *has_token,
                    rlhf_str **texts);

// A float that rewards do not write by chance. A cell that still contains it was not written.
#define RLHF__UNWRITTEN 0x7fc5a5a5u

#endif
