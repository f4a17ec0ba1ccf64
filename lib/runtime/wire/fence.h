// fence.h: used in a worker: maps the arrays of rlhf_reward_out, each followed by an inaccessible
// guard page. If the plugin writes into a guard page, the worker records this before it terminates.
#ifndef RLHF_HOST_WIRE_FENCE_H
#define RLHF_HOST_WIRE_FENCE_H

#include "wire/batch.h"

struct rlhf__fence {
    int input_fd, output_fd;
    void *input; // mapped read-only
    uint64_t input_bytes;
    struct rlhf__batch_note *note;
    char *base; // address range of all blocks and guard pages; NULL = none
    uint64_t room;
    char *block[RLHF__OUTS]; // start of each block
    struct rlhf__out_places places;
    int32_t limited; // 1: the process has a memory limit
};

// Begin, and map the note. Returns -1 on failure. [main]
int rlhf__fence_open(struct rlhf__fence *f, int input_fd, int output_fd);

// Map the input again if it has grown to `bytes`. Returns -1 on failure. [main]
int rlhf__fence_input(struct rlhf__fence *f, uint64_t bytes);

// Set *out to arrays for n rows with `total` tokens, which are valid until the next call. The space
// before each array is filled with a mark, so that a write to this space can be detected later
// (rlhf__fence_before). Returns -1 if the arrays cannot be mapped. [main]
int rlhf__fence_output(struct rlhf__fence *f, uint32_t n, uint64_t total, int has_token,
                       rlhf_reward_out *out);

// If something was written before the start of an array, returns 1 + the enum rlhf__out of this
// array; otherwise 0. [main]
unsigned rlhf__fence_before(const struct rlhf__fence *f);

// From now on, if a signal terminates this process, record in f->note the signal and the guard page
// that was hit. Do not move *f. [main]
void rlhf__fence_watch(struct rlhf__fence *f);

// Returns the name of the array in a note's `fence`: "out->seq", ..., "its input". [any]
const char *rlhf__fence_name(unsigned fence);

#endif
