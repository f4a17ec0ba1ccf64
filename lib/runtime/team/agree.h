// agree.h: how the ranks of a team agree: the header of each barrier.
//
// A barrier is a point in the code at which all ranks synchronize, because work is divided among
// them. A barrier begins with one call of rlhf__team_agree, in which every rank tells the others
// whether it can go on. A rank that has failed anywhere, inside a barrier or between two barriers,
// also makes this call, as its last one. The others receive the failure at their next barrier, and
// all ranks return the same error.
//
// A rank first does its share of the work, then calls rlhf__team_agree, then exchanges the results.
// From this call to the end of the exchange, only the collective may fail, so allocate all memory
// before the call.
#ifndef RLHF_HOST_TEAM_AGREE_H
#define RLHF_HOST_TEAM_AGREE_H

#include "team/team.h"

// The places at which the ranks synchronize.
enum rlhf__barrier {
    RLHF__BARRIER_SETUP = 0,
    RLHF__BARRIER_ROLLOUT,
    RLHF__BARRIER_REWARDS,
    RLHF__BARRIER_PASS,
    RLHF__BARRIER_MINIBATCH,
    RLHF__BARRIER_REDUCE, // sums of an algorithm
    RLHF__BARRIER_PHASE,  // the end of a phase
    RLHF__BARRIER_SAVE,
    RLHF__BARRIER_ORDER,   // the learners tell the actors what to sample
    RLHF__BARRIER_WEIGHTS, // the ranks compare their weights
    RLHF__BARRIER_END, // the run has ended; also the barrier of a rank that leaves after a failure
    RLHF__BARRIERS
};

// The data that this rank sends the others at a barrier, in addition to its status.
struct rlhf__wish {
    int32_t save; // nonzero = a checkpoint is due; only the value of rank 0 is used
    // A number that must be equal on all ranks, e.g. a count of rows. If this number differs, the
    // ranks are out of step.
    int64_t same;
    uint64_t bytes; // number of bytes that this rank will send; see rlhf__team_bytes
};

// Synchronize the ranks at a barrier. `st` is the result of this rank's work so far, with the
// message in *err. Returns `st` if `t` is NULL. Otherwise returns RLHF_OK if all ranks succeeded,
// else the status of the lowest rank that failed, with the message "rank 2 on HOST: ...". After a
// failure t->left is 1 and the ranks no longer synchronize: a later call returns `st` at once.
// `wish` may be NULL. If *t->signal is set on any rank, all ranks adopt that signal
// (rlhf__signals_adopt), and t->cancelled is set. Also sets t->saves. Other errors: RLHF_E_INTERNAL
// if the ranks are at different barriers; those of rlhf__team_gather. [main]
rlhf_status rlhf__team_agree(struct rlhf__team *t, enum rlhf__barrier barrier,
                             const struct rlhf__wish *wish, rlhf_status st,
                             struct rlhf__error *err);

// Returns the number of bytes that rank `k` announced at the last barrier. [main]
uint64_t rlhf__team_bytes(const struct rlhf__team *t, int32_t k);

// Returns RLHF_E_INVALID if `st` is RLHF_OK on this rank but an error on another. Otherwise returns
// `st`. All ranks must call this function. Unlike rlhf__team_agree, it works even after a barrier
// has failed (t->left). [main]
rlhf_status rlhf__team_all_ok(struct rlhf__team *t, rlhf_status st, struct rlhf__error *err);

#endif
