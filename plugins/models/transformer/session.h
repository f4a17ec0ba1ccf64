// transformer/session.h: a generation session: its cache and the state for recording steps.
#ifndef RLHF_MODELS_TRANSFORMER_SESSION_H
#define RLHF_MODELS_TRANSFORMER_SESSION_H

#include "tensor.h"

// One slot of the cache. stamp counts the steps that wrote to the slot. prefix_stamp is the stamp
// that the prefix's slot had in this slot's last step; a row may continue only if that stamp has
// not changed. held and after count the slot's tokens without the prefix: held before the current
// step, and after at its end.
struct rlhf__gen_slot {
    int32_t held, after;
    int32_t prefix; // the slot with its prefix, or -1
    int32_t use;    // enum rlhf__tf_use, in the current step
    uint64_t stamp, prefix_stamp;
};

// TF_FILLED: a row without a prefix writes to the slot and does not sample.
enum rlhf__tf_use { TF_UNUSED = 0, TF_WRITTEN = 1, TF_FILLED = 2 };

// Buffers for decoding on a backend that records calls; unused with other backends. Each has a
// fixed address and space for the largest bucket of rows (gen_record.c). The rows that pad a step
// use the spare slot.
struct rlhf__tf_recorded {
    uint32_t max_rows, words;  // words of a support; 0: none yet
    uint64_t session;          // tells sessions apart
    void *host;                // alloc_host: the step's integers, then its counters u64 [rows]
    void *host_drawn;          // alloc_host: the results of sampling
    struct rlhf__tf_buf ints;  // device copy of host
    struct rlhf__tf_buf drawn; // i32 [rows] ids, f32 [rows] log-probs, u32 [rows, words] supports
    int32_t *slot, *start, *offset, *ids, *prefix; // the padded step; one allocation
};

struct rlhf_gen {
    uint32_t n_slots, max_len;
    uint32_t cache_slots, reserved; // n_slots, plus the spare one if calls are recorded
    struct rlhf__tf_buf k, v;       // act dtype [n_layer, cache_slots * max_len, kv]
    struct rlhf__gen_slot *slots;
    struct rlhf__tf_recorded *recorded; // NULL: calls are not recorded
};

#endif
