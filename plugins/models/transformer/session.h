// transformer/session.h: a generation session: its cache, and the state for recording steps.
#ifndef RLHF_MODELS_TRANSFORMER_SESSION_H
#define RLHF_MODELS_TRANSFORMER_SESSION_H

#include "tensor.h"

// One slot of the cache.
//
//   stamp          counts the steps that wrote to the slot
//   prefix_stamp   the stamp of the prefix's slot at the last step of this slot; a row may continue
//                  only if that stamp has not changed
//   held           the number of tokens in the slot before the current step, without the prefix
//   after          the number of these tokens after the current step
struct rlhf__gen_slot {
    int32_t held, after;
    int32_t prefix; // the slot that has its prefix, or -1
    int32_t use;    // enum rlhf__tf_use: its use in the current step
    uint64_t stamp, prefix_stamp;
};

// TF_FILLED: written by a row that has no prefix and does not sample.
enum rlhf__tf_use { TF_UNUSED = 0, TF_WRITTEN = 1, TF_FILLED = 2 };

// Buffers for decoding on a backend that can record calls; unused with other backends. Each buffer
// has a fixed address and memory for the largest bucket of rows (gen_record.c). The padding rows of
// a step use the spare slot.
struct rlhf__tf_recorded {
    uint32_t max_rows, words; // words: size of a support; 0: none yet
    uint64_t session;         // distinguishes sessions
    void *host;       // from alloc_host: the integers of the step, then its counters u64 [rows]
    void *host_drawn; // from alloc_host: the results of sampling
    struct rlhf__tf_buf ints;  // device copy of host
    struct rlhf__tf_buf drawn; // i32 [rows] ids, f32 [rows] log-probs, u32 [rows, words] supports
    int32_t *slot, *start, *offset, *ids, *prefix; // the padded step, in one allocation
};

struct rlhf_gen {
    uint32_t n_slots, max_len;
    uint32_t cache_slots;     // n_slots, plus the spare slot if calls are recorded
    struct rlhf__tf_buf k, v; // act dtype [n_layer, cache_slots * max_len, kv]
    struct rlhf__gen_slot *slots;
    struct rlhf__tf_recorded *recorded; // NULL: calls are not recorded
};

#endif
