// sum_overlap.h: runs a sum or a spread (sum.h) in a separate thread, during a pass of the model.
// The results have the same bits as without the thread.
//
// A sum begins while a backward pass still computes gradients. The pass completes the gradients
// from the highest addresses down, and reports which ones are complete. A spread continues while
// the next forward pass runs. The pass waits for the values of a layer before it reads them.
#ifndef RLHF_LIB_RUNTIME_TEAM_SUM_OVERLAP_H
#define RLHF_LIB_RUNTIME_TEAM_SUM_OVERLAP_H

#include "team/sum.h"

#include <pthread.h>

struct rlhf__overlap {
    struct rlhf__sum *sum;     // NULL: nothing is under way
    const rlhf_dev *aside;     // of a sum
    int32_t spreads, threaded; // spreads: 1 = a spread; threaded: 1 = in a separate thread
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t complete; // a sum: all gradients from this byte onward are complete
    uint32_t ended;    // a spread: windows that have been received
    rlhf_status table, status;
    struct rlhf__error err;
};

// Begin a sum (_reduce) or a spread (_spread). All ranks must call the same function, and must not
// use the team until rlhf__overlap_end. If the thread cannot be started, rlhf__overlap_end does the
// whole sum, and rlhf__overlap_spread itself does the whole spread. `aside` is as in
// rlhf__sum_reduce. [step]
void rlhf__overlap_reduce(struct rlhf__overlap *, struct rlhf__sum *, const rlhf_dev *aside);
void rlhf__overlap_spread(struct rlhf__overlap *, struct rlhf__sum *);

// Tell a sum that all gradients from byte `from` onward, and their copies in `aside`, are complete
// and do not change until rlhf__overlap_end. [step]
void rlhf__overlap_complete(struct rlhf__overlap *, uint64_t from);

// Wait until a spread has received the values in `bytes` from `value` onward, or has failed. [step]
void rlhf__overlap_wait(struct rlhf__overlap *, rlhf_dev value, uint64_t bytes);

// Finish the sum or the spread that is under way, if any. For a sum, all gradients must be
// complete. The results are those of rlhf__sum_reduce or rlhf__sum_spread. [step]
rlhf_status rlhf__overlap_end(struct rlhf__overlap *, rlhf_status *table, struct rlhf__error *err);

#endif
