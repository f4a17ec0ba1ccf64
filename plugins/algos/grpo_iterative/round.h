// round.h: when an iteration ends, and what is saved of where it stands.
#ifndef RLHF_ALGOS_GRPO_ITERATIVE_ROUND_H
#define RLHF_ALGOS_GRPO_ITERATIVE_ROUND_H

#include <rlhf/plugin.h>

// All saved. fresh: pairs collected since the reward model was last trained.
struct rlhf__round {
    uint64_t phases, iterations, fresh; // phases: of the iteration under way
};

// One phase more; 1 when it was the last of an iteration of `length` phases. [step]
int rlhf__round_step(struct rlhf__round *, int64_t length);

// 24 bytes: the three numbers, little-endian. Errors: those of the stream. [main]
rlhf_status rlhf__round_save(const struct rlhf__round *, const rlhf_ostream *);
rlhf_status rlhf__round_load(const rlhf_host *, struct rlhf__round *, const rlhf_istream *);

#endif
