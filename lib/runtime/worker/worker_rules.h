// worker_rules.h: the limits of the workers of a plugin.
#ifndef RLHF_LIB_RUNTIME_WORKER_WORKER_RULES_H
#define RLHF_LIB_RUNTIME_WORKER_WORKER_RULES_H

#include <stdint.h>

enum { RLHF__MOST_WORKERS = 64 };

struct rlhf__worker_rules {
    double timeout_s;    // limit of a call, 0 = none
    uint64_t memory_mib; // 0 = no limit
    uint32_t workers;    // that share a batch, 1 to RLHF__MOST_WORKERS; 1 unless it is a reward
    int32_t network;     // 1: they may use the network
};

#endif
