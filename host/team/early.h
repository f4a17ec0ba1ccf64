// early.h: a sum over ranks (sum.h) that a thread of its own begins while the gradients are still
// being computed, from the highest addresses down. The result is bit-identical to that of a sum
// that begins after all gradients are complete.
#ifndef RLHF_HOST_EARLY_H
#define RLHF_HOST_EARLY_H

#include "team/sum.h"

#include <pthread.h>

struct rlhf__early {
    struct rlhf__sum *sum; // NULL: nothing is under way
    const rlhf_dev *aside;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t complete; // all gradients from this byte on are complete
    rlhf_status table, status;
    struct rlhf__error err;
};

// Begin the sum. All ranks must call this, and must not use the team until rlhf__early_end. If no
// thread can be started, rlhf__early_end does all the work. aside is as in rlhf__sum_reduce. [step]
void rlhf__early_begin(struct rlhf__early *, struct rlhf__sum *, const rlhf_dev *aside);

// Tell the thread that all gradients from byte `from` on, and their copies in `aside`, are complete
// and do not change until rlhf__early_end. [step]
void rlhf__early_complete(struct rlhf__early *, uint64_t from);

// Call this when all gradients are complete: finishes the sum. The results are those of
// rlhf__sum_reduce. Does nothing if rlhf__early_begin was not called. [step]
rlhf_status rlhf__early_end(struct rlhf__early *, rlhf_status *table, struct rlhf__error *err);

#endif
