// sums.h: the sums that a loss() accumulates over a phase, kept for each shard (rlhf/shards.h), so
// that their totals have the same bits for any number of workers.
#ifndef RLHF_ALGOS_COMMON_SUMS_H
#define RLHF_ALGOS_COMMON_SUMS_H

#include <rlhf/algo.h>
#include <rlhf/shards.h>

struct rlhf__sums {
    double *of; // [shards, n]
    uint32_t shards, n;
};

// Allocate and zero n sums for each of the run's shards. Call it from plan(), which may be called
// again. RLHF_E_NOMEM through host->fail. Free them with finish. [main]
rlhf_status rlhf__sums_open(const rlhf_host *, struct rlhf__sums *, const rlhf_run_info *,
                            uint32_t n);
void rlhf__sums_finish(const rlhf_host *, struct rlhf__sums *);

// *out = the n sums of `shard`, a microbatch's shard. RLHF_E_INTERNAL, with a message, if plan()
// did not know of this shard. [step]
rlhf_status rlhf__sums_of(const rlhf_host *, const struct rlhf__sums *, uint32_t shard,
                          double **out);

// total[n] = the sums over the shards of all workers. Resets the sums to 0. [step]
rlhf_status rlhf__sums_total(const rlhf_host *, struct rlhf__sums *, double *total);

#endif
