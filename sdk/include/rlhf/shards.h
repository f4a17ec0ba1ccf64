// rlhf/shards.h: helpers for sums that loss() accumulates. With them, the sums have the same bits
// for any number of processes.
//
// Plugin contract 1.0, frozen: it only grows.
//
// The host divides a minibatch into rlhf_run_info.shards parts by a rule that does not depend on
// the number of processes. rlhf_loss_in.shard is the part that a microbatch belongs to. Keep n sums
// for each shard and add them up in shard order:
//
//   double sums[SHARDS * N];                              // zeroed at the start of a minibatch
//   double *own = rlhf_shard_sums(sums, in->shard, N);    // in loss()
//   own[0] += ...;
//   rlhf_shards_total(host, sums, shards, N, total);      // in minibatch_end()
//
// Each shard's sums are non-zero in only one process, so host->reduce adds only zeros to them and
// does not round. With one shard, this is the same as keeping one set of sums.
#ifndef RLHF_SHARDS_H
#define RLHF_SHARDS_H

#include "host.h"

// Returns the n sums of a shard in sums [shards, n]. [any]
static inline double *rlhf_shard_sums(double *sums, uint32_t shard, uint32_t n) {
    return sums + (uint64_t)shard * n;
}

// Reduces sums [shards, n] in place over all processes, and sets total[i] to the sum of
// sums[shard][i] over the shards, in order. `total` must not overlap `sums`. If `shards` is 0, it
// counts as 1. Returns the errors of host->reduce. [call]
static inline rlhf_status rlhf_shards_total(const rlhf_host *host, double *sums, uint32_t shards,
                                            uint32_t n, double *total) {
    const uint32_t parts = shards ? shards : 1;
    RLHF_TRY(host->reduce(host, sums, parts * n));
    for (uint32_t i = 0; i < n; i++) {
        total[i] = sums[i];
        for (uint32_t s = 1; s < parts; s++)
            total[i] += rlhf_shard_sums(sums, s, n)[i];
    }
    return RLHF_OK;
}

#endif
