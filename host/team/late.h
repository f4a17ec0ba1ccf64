// late.h: new values that other ranks send (sum.h), received by a thread of its own while the next
// forward pass has begun. The pass waits for the values of a layer before it reads them, so it has
// the bits of a pass that begins later.
#ifndef RLHF_HOST_LATE_H
#define RLHF_HOST_LATE_H

#include "team/sum.h"

#include <pthread.h>

struct rlhf__late {
    struct rlhf__sum *sum; // NULL: nothing is under way
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t ended; // windows that have been received
    rlhf_status table, status;
    struct rlhf__error err;
};

// Begin a spread. All ranks must do so, and must not use the team until rlhf__late_end. If no
// thread can be started, the spread is done here. [step]
void rlhf__late_begin(struct rlhf__late *, struct rlhf__sum *);

// Wait until the values in `bytes` from `value` on are complete, or the spread has failed. [step]
void rlhf__late_wait(struct rlhf__late *, rlhf_dev value, uint64_t bytes);

// Finish the spread. Results as rlhf__sum_spread. Without rlhf__late_begin: nothing. [step]
rlhf_status rlhf__late_end(struct rlhf__late *, rlhf_status *table, struct rlhf__error *err);

#endif
