// team.h: describes the processes of one run ("ranks"), which a launcher such as mpirun started
// together, and exchanges bytes between them.
//
// Every rank runs the same code with the same numbers. Work is divided only at the barriers
// (agree.h), where all ranks synchronize: each rank does its share, receives the other shares, and
// continues as if it had done all of the work.
//
// A pointer to a team may be NULL everywhere. NULL means that this process works alone.
#ifndef RLHF_HOST_TEAM_TEAM_H
#define RLHF_HOST_TEAM_TEAM_H

#include "base/error.h"

#include <rlhf/draft/collective.h>
#include <signal.h>

enum {
    RLHF__HOST_CAP = 64,     // of the name of a machine, with its NUL
    RLHF__TEAM_HEADER = 1024 // bytes of a header (agree.c)
};

struct rlhf__team {
    const rlhf_collective *table; // borrowed
    // Exchanges device memory, for sums of gradients (sum.h). If it is NULL, host memory is
    // exchanged. Borrowed.
    const rlhf_collective *device;
    int32_t rank, ranks;   // this process, from 0, and the number of processes
    int32_t local, locals; // the same, counting only the ranks on this machine
    int32_t same;          // ranks here, this one included, that may use the same processors
    int32_t said;          // 1: some ranks agreed on this rank's failure; the text names a rank
    char (*host)[RLHF__HOST_CAP];        // [ranks] the name of each rank's machine
    void *headers;                       // [ranks][RLHF__TEAM_HEADER] what agree.c receives
    const volatile sig_atomic_t *signal; // asks this process to stop; NULL = never
    int64_t barriers;                    // barriers passed
    int32_t left;      // 1: the ranks have agreed that the run fails; they pass no further barrier
    int32_t broken;    // 1: a rank is missing; no further calls are possible
    int32_t cancelled; // the signal because of which the ranks have agreed to stop; 0 = none
    int32_t saves;     // the wish of rank 0 (agree.h)
    struct rlhf__team *parent; // the team of which these ranks are a part (split.h); NULL = none
};

// Returns the number of ranks, or 1 if `t` is NULL. [any]
static inline int32_t rlhf__team_ranks(const struct rlhf__team *t) { return t ? t->ranks : 1; }

// Returns the rank of this process, or 0 if `t` is NULL. [any]
static inline int32_t rlhf__team_rank(const struct rlhf__team *t) { return t ? t->rank : 0; }

// Returns 1 if there are several ranks, so that work is divided. [any]
static inline int rlhf__team_shares(const struct rlhf__team *t) { return t && t->ranks > 1; }

// Returns the first index of the share of rank `r` if `n` things are divided among the ranks in
// order. The share ends before rlhf__team_from(t, r + 1, n). [any]
static inline uint32_t rlhf__team_from(const struct rlhf__team *t, int32_t r, uint32_t n) {
    return (uint32_t)((uint64_t)n * (uint64_t)r / (uint64_t)rlhf__team_ranks(t));
}

// Make a team of the ranks of an open collective, which must outlive the team, and exchange the
// names of their machines. Finish *t even after a failure. Errors: RLHF_E_NOMEM; those of
// rlhf__team_gather. [main]
rlhf_status rlhf__team_init(struct rlhf__team *t, const rlhf_collective *table,
                            struct rlhf__error *err);
void rlhf__team_finish(struct rlhf__team *t); // accepts a zeroed struct [main]

// Call the functions of the collective (rlhf/draft/collective.h), and turn failures into host
// errors. A failed call sets t->broken. rlhf__team_gather accepts any number of bytes. [main]
rlhf_status rlhf__team_exchange(struct rlhf__team *t, const rlhf_block *send,
                                const rlhf_block *recv, uint64_t *ticket, struct rlhf__error *err);
rlhf_status rlhf__team_wait(struct rlhf__team *t, uint64_t ticket, struct rlhf__error *err);
// Like rlhf__team_exchange and rlhf__team_wait, but with t->device, which must not be NULL. The
// blocks are memory of the device, and are exchanged in the order of its stream.
rlhf_status rlhf__team_exchange_device(struct rlhf__team *t, const rlhf_block *send,
                                       const rlhf_block *recv, uint64_t *ticket,
                                       struct rlhf__error *err);
rlhf_status rlhf__team_wait_device(struct rlhf__team *t, uint64_t ticket, struct rlhf__error *err);
rlhf_status rlhf__team_gather(struct rlhf__team *t, const void *own, uint64_t bytes, void *all,
                              struct rlhf__error *err);

#endif
