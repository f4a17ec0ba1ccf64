// transformer/session.h: a generation session: its cache, and the state for recording steps.
#ifndef RLHF_MODELS_TRANSFORMER_SESSION_H
#define RLHF_MODELS_TRANSFORMER_SESSION_H

#include "work.h"

// One slot of the cache.
//
//   stamp          counts the steps that wrote to the slot
//   prefix_stamp   the stamp of the prefix's slot at the last step of this slot; a row may continue
//                  only if that stamp has not changed
//   held           the number of tokens in the slot before the current step, without the prefix
//   after          the number of these tokens after the current step
//   origin         in a layer with a ring: token o of these is in the slot's row (o - origin) mod
//                  window
//   next_origin    origin after the current step
struct rlhf__gen_slot {
    int32_t held, after;
    int32_t origin, next_origin;
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

// The parts of a step's rows in layers with a ring, in the order of computation: staged rows that
// fill a prefix, direct rows, and the other staged rows (ring.c).
enum rlhf__tf_part { TF_FILLS, TF_DIRECT, TF_STAGED };

// n adjacent tokens of the cache and of the stage, to be copied from one to the other.
struct rlhf__tf_move {
    int32_t cache, stage;
    uint32_t n;
};

// The layers whose window is shorter than the slots, and the plan of the current step in these
// layers. Row i of the plan is row order[i] of the step. The arrays have memory for the largest
// bucket of rows.
struct rlhf__tf_ring {
    int32_t window;   // tokens of a slot in such a layer
    int32_t sorted;   // 1: order[i] is i
    uint32_t stage;   // tokens of the stage that the step needs
    int32_t *order;   // also the allocation of the next three
    int32_t *kv_base; // these three are those of rlhf_ragged
    int32_t *prefix_base, *prefix_len;
    struct rlhf__tf_move *pull, *push; // to the stage, and from it; one allocation
    // for each part: its number of rows; the ends of its moves, which begin where those of the part
    // before end
    uint32_t rows[TF_N_PART], n_pull[TF_N_PART], n_push[TF_N_PART];
    struct rlhf__tf_buf k, v; // the stage: act dtype [stage, kv]
};

// The states of the layers that have one (states.c), and the order of the current step's rows: row
// i on the device is row order[i] of the step.
struct rlhf__tf_kept {
    struct rlhf__tf_buf states; // for each layer, for each slot
    int32_t *order;             // [n_slots]
    int32_t sorted, reserved;   // sorted 1: order[i] is i
};

struct rlhf_gen {
    uint32_t n_slots, max_len;
    uint32_t cache_slots; // n_slots, plus the spare slot if calls are recorded
    // act dtype [cache_slots * max_len, kv] for each layer with attention, or [cache_slots *
    // window, kv] if the layer has a ring (rlhf__tf_cache_at)
    struct rlhf__tf_buf k, v;
    struct rlhf__gen_slot *slots;
    struct rlhf__tf_recorded *recorded; // NULL: calls are not recorded
    struct rlhf__tf_ring *ring;         // NULL: every layer keeps all tokens of a slot
    struct rlhf__tf_kept *kept;         // NULL: all layers lack states
};

#endif
