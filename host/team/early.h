// early.h: a sum over ranks (sum.h) that a thread of its own begins while the gradients are still
// being computed, from the highest addresses down. It has the bits of a sum that begins later.
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

// Returns 1 if the sum can begin early: the ranks exchange gradients in host memory. [any]
int rlhf__early_can(const struct rlhf__sum *);

// Begin. All ranks must do so, and must not use the team until rlhf__early_end. If no thread can be
// started, rlhf__early_end does all the work. aside is as in rlhf__sum_reduce. [step]
void rlhf__early_begin(struct rlhf__early *, struct rlhf__sum *, const rlhf_dev *aside);

// All gradients from byte `from` on, and their copies in `aside`, are complete and do not change
// until rlhf__early_end. [step]
void rlhf__early_complete(struct rlhf__early *, uint64_t from);

// All gradients are complete: finish the sum. Results as rlhf__sum_reduce. Without
// rlhf__early_begin: nothing. [step]
rlhf_status rlhf__early_end(struct rlhf__early *, rlhf_status *table, struct rlhf__error *err);

#endif
