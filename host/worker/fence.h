// fence.h: in the worker, the arrays of rlhf_reward_out with a page behind each that nobody may
// touch, and what is said of a write into one before the worker ends.
#ifndef RLHF_HOST_WORKER_FENCE_H
#define RLHF_HOST_WORKER_FENCE_H

#include "worker/batch.h"

struct rlhf__fence {
    int input_fd, output_fd;
    void *input; // mapped to be read only
    uint64_t input_bytes;
    struct rlhf__batch_note *note;
    char *base; // the address room with all blocks and the pages between, NULL = none
    uint64_t room;
    char *block[RLHF__OUTS]; // where each begins
    struct rlhf__out_places places;
    int32_t limited, reserved; // 1: its memory is limited
};

// Begin, with the note mapped. -1 when it cannot be. [main]
int rlhf__fence_open(struct rlhf__fence *f, int input_fd, int output_fd);

// Map `bytes` of input again where they are more than before. -1 when they cannot be. [main]
int rlhf__fence_input(struct rlhf__fence *f, uint64_t bytes);

// The arrays for n rows with `total` tokens, in *out, with their fronts marked; -1 when they cannot
// be mapped. Good until the next. [main]
int rlhf__fence_output(struct rlhf__fence *f, uint32_t n, uint64_t total, int has_token,
                       rlhf_reward_out *out);

// 1 + enum rlhf__out of the array in front of which something was written, 0 when none. [main]
unsigned rlhf__fence_before(const struct rlhf__fence *f);

// Note in f->note which signal ends this process, and which fence was met, from now on. *f must
// stay where it is. [main]
void rlhf__fence_watch(struct rlhf__fence *f);

// "out->seq", ..., "its input"; of what a note's fence says. [any]
const char *rlhf__fence_name(unsigned fence);

#endif
