// sums.h: the sums that loss() accumulates over a phase. There is one set of sums for each shard
// (rlhf/shards.h), so that the totals have the same bits for any number of workers.
#ifndef RLHF_ALGOS_COMMON_SUMS_H
#define RLHF_ALGOS_COMMON_SUMS_H

#include <rlhf/algo.h>
#include <rlhf/shards.h>

struct rlhf__sums {
    double *of; // [shards, n]
    uint32_t shards, n;
};

// Allocate and zero n sums for each of the run's shards. Call this function from plan(), which may
// run several times. If memory runs out, reports RLHF_E_NOMEM through host->fail. Free the sums
// with rlhf__sums_finish. [main]
rlhf_status rlhf__sums_open(const rlhf_host *, struct rlhf__sums *, const rlhf_run_info *,
                            uint32_t n);
void rlhf__sums_finish(const rlhf_host *, struct rlhf__sums *);

// Set *out to the n sums of `shard`, the microbatch's shard. Returns RLHF_E_INTERNAL, with a
// message, if memory for this shard was not allocated. [step]
rlhf_status rlhf__sums_of(const rlhf_host *, const struct rlhf__sums *, uint32_t shard,
                          double **out);

// Set total[n] to the sums added up over the shards of all workers, and reset the sums to 0. [step]
rlhf_status rlhf__sums_total(const rlhf_host *, struct rlhf__sums *, double *total);

#endif
