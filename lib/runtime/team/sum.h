// sum.h: sums up gradients over the ranks of a team, and sends new parameters to all of them.
//
// Every block of parameters (blocks.h) belongs to one rank. rlhf__sum_reduce sends each block's
// gradients to the rank that owns it, which adds them in the order of the tree (tree.h), so that
// the bits do not depend on the number of ranks. After that rank's optimizer step, rlhf__sum_spread
// sends the block's new values to all other ranks.
//
// Blocks are exchanged in windows: `ranks` consecutive blocks, one for each rank
// (rlhf__blocks_deal). Several windows are under way at a time. A sum begins with the highest
// gradients, which a backward pass completes first; a spread begins with the lowest values, which a
// forward pass reads first.
//
// If device memory is host memory (RLHF_COMPUTE_HOST_MEMORY), or a collective exchanges device
// memory (team->device), a block that is one piece is sent and received in place. Other blocks pass
// through buffers.
#ifndef RLHF_HOST_TEAM_SUM_H
#define RLHF_HOST_TEAM_SUM_H

#include "base/error.h"
#include "team/blocks.h"
#include "team/share.h"
#include "team/team.h"
#include "team/tree.h"

enum { RLHF__SUM_DEPTH = 6 }; // windows under way

struct rlhf__sum {
    const rlhf_compute *compute;
    const struct rlhf__blocks *blocks;
    const struct rlhf__share *share;
    struct rlhf__tree *has; // [ranks] the nodes that each rank has
    uint64_t len;           // elements of a block that are exchanged at a time
    uint32_t *order;        // [windows] by `low`, descending
    uint64_t *low;          // [windows] the first byte of a window's gradients (piece.at)
    int32_t in_place;       // 1 if send and recv are memory of the table
    int32_t on_device;      // 1: in_place, through team->device and in the order of its stream
    int32_t by_hand;        // 1: do not call the table, which another thread may be using
    int32_t upwards;        // 1: windows are exchanged in the opposite order
    // Returns 1 if all gradients from byte `low` onward are complete. If `wait` is 1, first waits
    // until they are. The pointer is NULL if all gradients are complete from the start.
    int (*ready)(void *ready_ctx, uint64_t low, int wait);
    void *ready_ctx;
    // Called after each exchange. `windows` is the number of windows that are complete so far, in
    // their order. May be NULL.
    void (*ended)(void *ended_ctx, uint32_t windows);
    void *ended_ctx;
    rlhf_dev device;              // with in_place: the memory of send and recv
    void *host;                   // otherwise: the same; on_device: host memory for `len` elements
    float *send[RLHF__SUM_DEPTH]; // for each window
    float *recv[RLHF__SUM_DEPTH];
    uint64_t ticket[RLHF__SUM_DEPTH];
    rlhf_block *out, *in; // [ranks]
    rlhf_dev node;        // device memory for the nodes of one block
};

// Allocate the buffers for exchanging these blocks, which must have been dealt to the ranks of the
// share. The blocks and the share are borrowed. Errors:
// RLHF_E_NOMEM; those of the table's alloc(). [main]
rlhf_status rlhf__sum_init(struct rlhf__sum *, const rlhf_compute *, const struct rlhf__blocks *,
                           const struct rlhf__share *, struct rlhf__error *err);

// Returns 1 if a thread may exchange during a pass. This requires that there are several ranks, and
// that they exchange host memory in place. [any]
static inline int rlhf__sum_overlaps(const struct rlhf__sum *s) {
    return s->in_place && !s->on_device && s->share->team != NULL;
}

// Returns the number of windows. [any]
static inline uint32_t rlhf__sum_windows(const struct rlhf__sum *s) {
    return (s->blocks->n + s->share->ranks - 1) / s->share->ranks;
}

// Returns host memory for s->len elements, which may be used between sums. [any]
static inline float *rlhf__sum_host(const struct rlhf__sum *s) {
    return s->on_device ? (float *)s->host : s->send[0];
}
void rlhf__sum_finish(struct rlhf__sum *); // accepts a zeroed struct [main]

// Sum up the gradients of this rank's blocks over all ranks. A rank may have several nodes of the
// tree (tree.h). The gradients of the rank's last node are in place. For each of its other nodes k,
// aside[k] is a copy of the node's gradients. The gradients of other ranks' blocks keep their
// values.
//
// If a call of the compute table fails, the exchange continues, so that the other ranks do not wait
// forever. *table receives the status of that call. Errors: those of the team. [step]
rlhf_status rlhf__sum_reduce(struct rlhf__sum *, const rlhf_dev *aside, rlhf_status *table,
                             struct rlhf__error *err);

// Replace the values of other ranks' blocks with the values that their owners have. Failures are as
// in rlhf__sum_reduce. [step]
rlhf_status rlhf__sum_spread(struct rlhf__sum *, rlhf_status *table, struct rlhf__error *err);

// Returns how many windows a spread must have exchanged before the `bytes` bytes from address
// `value` onward are complete. [any]
uint32_t rlhf__sum_until(const struct rlhf__sum *, rlhf_dev value, uint64_t bytes);

#endif
