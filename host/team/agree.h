// agree.h: how the ranks of a team agree: the header of each door.
//
// A door is a point in the code at which all ranks synchronize, because work is divided among them.
// It begins with one call of rlhf__team_agree, in which every rank tells the others whether it can
// go on. A rank that has failed anywhere, inside a door or between two doors, makes this call too,
// as its last call. The others receive the failure at their next door, and all ranks return the
// same error.
//
// At a door, a rank first does its share of the work, then agrees, then exchanges the results.
// Between the call of rlhf__team_agree and the end of the exchange, only the collective may fail:
// allocate memory before.
#ifndef RLHF_HOST_TEAM_AGREE_H
#define RLHF_HOST_TEAM_AGREE_H

#include "team/team.h"

// The places at which the ranks synchronize.
enum rlhf__door {
    RLHF__DOOR_SETUP = 0,
    RLHF__DOOR_ROLLOUT,
    RLHF__DOOR_REWARDS,
    RLHF__DOOR_PASS,
    RLHF__DOOR_MINIBATCH,
    RLHF__DOOR_REDUCE, // sums of an algorithm
    RLHF__DOOR_PHASE,  // the end of a phase
    RLHF__DOOR_SAVE,
    RLHF__DOOR_ORDER,   // the learners tell the actors what to sample
    RLHF__DOOR_WEIGHTS, // do all ranks have the same weights?
    RLHF__DOOR_END,     // the run has ended; also the door of a rank that leaves after a failure
    RLHF__DOORS
};

// The data that this rank sends the others at a door, in addition to its status.
struct rlhf__wish {
    int32_t save, reserved; // save: nonzero if it is time for a checkpoint; only rank 0's counts
    // A number that must be equal on all ranks, e.g. a count of rows. If this number differs, the
    // ranks are out of step.
    int64_t same;
    uint64_t bytes; // that this rank will send; the others read it with rlhf__team_bytes
};

// Synchronize the ranks at a door. st is the result of this rank's work so far, with the message in
// *err. Returns st if t is NULL. Otherwise returns RLHF_OK if all ranks succeeded, else the status
// of the lowest rank that failed, with the message "rank 2 on HOST: ...". After a failure t->left
// is 1 and the ranks no longer synchronize: a later call returns st at once. wish may be NULL. If
// *t->signal is set on any rank, all ranks adopt it (rlhf__signals_adopt), and t->cancelled is set.
// Also sets t->saves. Errors, besides those of ranks: RLHF_E_INTERNAL (the ranks are at different
// doors); those of gather. [main]
rlhf_status rlhf__team_agree(struct rlhf__team *t, enum rlhf__door door,
                             const struct rlhf__wish *wish, rlhf_status st,
                             struct rlhf__error *err);

// Returns the bytes that rank k announced at the last door. [main]
uint64_t rlhf__team_bytes(const struct rlhf__team *t, int32_t k);

// Returns st; or RLHF_E_INVALID if st is RLHF_OK on this rank, but not on every rank. Unlike a
// door, it may be called after the ranks have left. All of them must call it. [main]
rlhf_status rlhf__team_all_ok(struct rlhf__team *t, rlhf_status st, struct rlhf__error *err);

#endif
