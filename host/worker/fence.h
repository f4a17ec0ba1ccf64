// fence.h: in the worker, the arrays of rlhf_reward_out, each followed by an inaccessible guard
// page, and the report of a write into a guard page before the worker ends.
#ifndef RLHF_HOST_WORKER_FENCE_H
#define RLHF_HOST_WORKER_FENCE_H

#include "worker/batch.h"

struct rlhf__fence {
    int input_fd, output_fd;
    void *input; // mapped to be read only
    uint64_t input_bytes;
    struct rlhf__batch_note *note;
    char *base; // the address range of all blocks and the pages between them, NULL = none
    uint64_t room;
    char *block[RLHF__OUTS]; // where each begins
    struct rlhf__out_places places;
    int32_t limited, reserved; // 1: its memory is limited
};

// Begin: map the note. -1 when that fails. [main]
int rlhf__fence_open(struct rlhf__fence *f, int input_fd, int output_fd);

// Map the input again if its `bytes` have grown. -1 when that fails. [main]
int rlhf__fence_input(struct rlhf__fence *f, uint64_t bytes);

// *out = the arrays for n rows with `total` tokens, valid until the next call. The space before
// each is filled with a mark. -1 when they cannot be mapped. [main]
int rlhf__fence_output(struct rlhf__fence *f, uint32_t n, uint64_t total, int has_token,
                       rlhf_reward_out *out);

// The array before whose start something was written, as 1 + enum rlhf__out; 0: none. [main]
unsigned rlhf__fence_before(const struct rlhf__fence *f);

// From now on, if a signal ends this process, record in f->note which signal it was and which guard
// page was hit. *f must not move. [main]
void rlhf__fence_watch(struct rlhf__fence *f);

// The name of the array in a note's `fence`: "out->seq", ..., "its input". [any]
const char *rlhf__fence_name(unsigned fence);

#endif
