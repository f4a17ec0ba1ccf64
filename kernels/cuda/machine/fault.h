// fault.h: errors that kernels find in the contents of device arrays. The first error is kept in a
// word of device memory. The next function that waits for the stream turns this word into an error
// text.
#ifndef RLHF_CUDA_MACHINE_FAULT_H
#define RLHF_CUDA_MACHINE_FAULT_H

#include "cuda.h"

#include <rlhf/base.h>

// X(name, status, error text); the text has %lld three times: for the index, the value and the
// limit
#define RLHF__FAULT_MAP(X)                                                                         \
    X(EMBED_ID, RLHF_E_INVALID, "embed: ids[%lld] = %lld, vocabulary %lld")                        \
    X(EMBED_WEIGHT_ID, RLHF_E_INVALID, "embed_weight: ids[%lld] = %lld, the weight has %lld rows") \
    X(EMBED_POS, RLHF_E_INVALID, "embed: pos[%lld] = %lld, positions %lld")                        \
    X(RAGGED_OFFSET, RLHF_E_INVALID, "ragged row %lld ends at token %lld of %lld")                 \
    X(RAGGED_QUERIES, RLHF_E_INVALID,                                                              \
      "ragged row %lld has %lld queries, declared are at most %lld")                               \
    X(RAGGED_KEYS, RLHF_E_INVALID, "ragged row %lld has %lld keys, declared are at most %lld")     \
    X(RAGGED_BASE, RLHF_E_INVALID, "ragged row %lld has kv_base %lld, must be at least %lld")      \
    X(RAGGED_PREFIX, RLHF_E_INVALID,                                                               \
      "ragged row %lld has a prefix of %lld tokens, allowed are 0 to start, %lld")                 \
    X(RAGGED_PLACE, RLHF_E_INVALID, "ragged row %lld has prefix_base %lld, must be at least %lld") \
    X(RAGGED_END, RLHF_E_INVALID,                                                                  \
      "ragged row %lld has its keys up to token %lld, k and v have room for %lld")                 \
    X(RAGGED_PREFIX_END, RLHF_E_INVALID,                                                           \
      "ragged row %lld has its prefix up to token %lld, k and v have room for %lld")               \
    X(TRAINING_START, RLHF_E_UNSUPPORTED,                                                          \
      "attention_bwd: row %lld has start %lld, backward needs its prefix_len, %lld")               \
    X(TRAINING_BASE, RLHF_E_UNSUPPORTED,                                                           \
      "attention_bwd: row %lld has kv_base %lld, backward needs its offset, %lld")                 \
    X(TRAINING_PLACE, RLHF_E_UNSUPPORTED,                                                          \
      "attention_bwd: row %lld has its prefix at token %lld, backward needs the row that it and "  \
      "its neighbors follow, at %lld")                                                             \
    X(TRAINING_PREFIX, RLHF_E_UNSUPPORTED,                                                         \
      "attention_bwd: row %lld has a prefix of %lld tokens, backward needs the whole row that it " \
      "and its neighbors follow, %lld")                                                            \
    X(EMBED_BWD_ID, RLHF_E_INVALID, "embed_bwd: ids[%lld] = %lld, vocabulary %lld")                \
    X(EMBED_BWD_POS, RLHF_E_INVALID, "embed_bwd: pos[%lld] = %lld, positions %lld")                \
    X(ROPE_POS, RLHF_E_INVALID, "rope: pos[%lld] = %lld, positions %lld")                          \
    X(ROPE_BWD_POS, RLHF_E_INVALID, "rope_bwd: pos[%lld] = %lld, positions %lld")                  \
    X(GATHER_ROW, RLHF_E_INVALID, "gather: idx[%lld] = %lld, x has room for %lld rows")            \
    X(SCATTER_ROW, RLHF_E_INVALID, "scatter_add: idx[%lld] = %lld, dx has room for %lld rows")     \
    X(KV_ROW, RLHF_E_INVALID, "kv_store: row %lld reaches cache row %lld of %lld")                 \
    X(POOL_ROW, RLHF_E_INVALID, "pool: row %lld has no tokens (offsets %lld, %lld)")               \
    X(POOL_END, RLHF_E_INVALID, "pool: row %lld ends at token %lld, x has room for %lld")          \
    X(POOL_BWD_ROW, RLHF_E_INVALID, "pool_bwd: row %lld has no tokens (offsets %lld, %lld)")       \
    X(POOL_BWD_END, RLHF_E_INVALID, "pool_bwd: row %lld ends at token %lld, dx has room for %lld") \
    X(HEAD_TARGET, RLHF_E_INVALID, "lm_head: target[%lld] is %lld, the vocabulary has %lld")       \
    X(HEAD_SUPPORT, RLHF_E_INVALID, "lm_head: target[%lld] is %lld, outside its support")          \
    X(HEAD_BWD_TARGET, RLHF_E_INVALID,                                                             \
      "lm_head_bwd: target[%lld] is %lld, the vocabulary has %lld")                                \
    X(HEAD_BWD_SUPPORT, RLHF_E_INVALID, "lm_head_bwd: target[%lld] is %lld, outside its support")  \
    X(SAMPLE_ROW, RLHF_E_NUMERIC, "lm_sample: the logits of row %lld are not finite")              \
    X(STATE_SLOT, RLHF_E_INVALID,                                                                  \
      "row %lld has its state in slot %lld, must be -1 or a slot below %lld")                      \
    X(STATE_PREFIX, RLHF_E_UNSUPPORTED,                                                            \
      "row %lld has a prefix at token %lld, must be the whole row that it and its neighbors "      \
      "follow, at %lld")

enum rlhf__fault_code {
    RLHF__FAULT_NONE,
#define RLHF__FAULT_ENUM(name, status, text) RLHF__FAULT_##name,
    RLHF__FAULT_MAP(RLHF__FAULT_ENUM)
#undef RLHF__FAULT_ENUM
        RLHF__FAULT_COUNT
};

struct rlhf__fault {
    int code; // enum rlhf__fault_code
    long long index, value, limit;
};

// Keeps the fault if it is the first one. The caller continues without using the invalid number.
static __device__ __forceinline__ void rlhf__fault_raise(struct rlhf__fault *f, int code,
                                                         long long index, long long value,
                                                         long long limit) {
    if (atomicCAS(&f->code, 0, code) != 0) return;
    f->index = index;
    f->value = value;
    f->limit = limit;
}

#endif
