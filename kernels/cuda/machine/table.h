// table.h: the functions with which each file of the CUDA backend fills its entries of the table.
// rlhf/compute.h describes the shapes, dtypes and meaning of every argument; ctx is a struct
// rlhf__cuda. A file calls the ops of other files through the table.
//
// Each op checks its arguments (RLHF_E_INVALID, RLHF_E_UNSUPPORTED), gets workspaces from the
// context (RLHF_E_NOMEM), announces its writes (rlhf__cuda_wrote), launches kernels on the single
// stream, and finally calls rlhf__cuda_done. The bits do not depend on the card: a reduction is
// always divided at the same places, and a row gets the same bits in every launch that computes it.
// All ops are [step].
#ifndef RLHF_CUDA_MACHINE_TABLE_H
#define RLHF_CUDA_MACHINE_TABLE_H

#include "context.h"

// X(file): every file has one function rlhf__cuda_fill_<file>(t)
#define RLHF__CUDA_FILES(X)                                                                        \
    X(attention)   /* attention, attention_bwd */                                                  \
    X(memory)      /* alloc, release, bytes_in_use */                                              \
    X(transfer)    /* upload, download, sync, pinned memory, marks */                              \
    X(record)      /* record, record_end */                                                        \
    X(elementwise) /* copy, zero, convert, add */                                                  \
    X(weight)      /* weight_create, weight_destroy, weight_pack, weight_bytes */                  \
    X(quantised)   /* weight_create_quantised, weight_put, weight_quantised_bytes, embed_weight */ \
    X(linear)      /* linear, linear_add, linear_dx, linear_dw, linear_sum */                      \
    X(low_rank)    /* weight_create_blocks */                                                      \
    X(muon)        /* muon */                                                                      \
    X(act)         /* act, act_bwd */                                                              \
    X(gate)        /* gate, gate_bwd */                                                            \
    X(embed)       /* embed, embed_bwd */                                                          \
    X(norm)        /* norm, norm_bwd */                                                            \
    X(rms_norm)    /* rms_norm, rms_norm_bwd */                                                    \
    X(rope)        /* rope */                                                                      \
    X(rope_bwd)    /* rope_bwd */                                                                  \
    X(kv_store)    /* kv_store */                                                                  \
    X(optim)       /* sumsq, adamw, sumsq_many, adamw_many */                                      \
    X(pool)        /* pool, pool_bwd */                                                            \
    X(rows)        /* gather, scatter_add */                                                       \
    X(conv)        /* conv, conv_bwd */                                                            \
    X(delta)       /* delta */                                                                     \
    X(delta_bwd)   /* delta_bwd */                                                                 \
    X(gated_norm)  /* gated_norm, gated_norm_bwd */                                                \
    X(multiply)    /* multiply, multiply_bwd */                                                    \
    X(head_fwd)    /* lm_head */                                                                   \
    X(head_bwd)    /* lm_head_bwd */                                                               \
    X(sample)      /* lm_sample */

#define RLHF__CUDA_DECLARE(file) void rlhf__cuda_fill_##file(rlhf_compute *t);
RLHF__CUDA_FILES(RLHF__CUDA_DECLARE)
#undef RLHF__CUDA_DECLARE

// X(file) for every file whose ops use workspaces. rlhf__cuda_needs_<file>(cu, call, needs) adds
// the call's workspaces to `needs` if the call's op is in that file. [step]
#define RLHF__CUDA_NEEDS(X)                                                                        \
    X(attention)                                                                                   \
    X(weight)                                                                                      \
    X(linear)                                                                                      \
    X(muon)                                                                                        \
    X(norm)                                                                                        \
    X(rms_norm)                                                                                    \
    X(rope_bwd)                                                                                    \
    X(optim)                                                                                       \
    X(conv)                                                                                        \
    X(delta_bwd)                                                                                   \
    X(gated_norm)                                                                                  \
    X(head_fwd)                                                                                    \
    X(head_bwd)                                                                                    \
    X(sample)

#define RLHF__CUDA_DECLARE(file)                                                                   \
    void rlhf__cuda_needs_##file(struct rlhf__cuda *, const rlhf_call *, struct rlhf__cuda_needs *);
RLHF__CUDA_NEEDS(RLHF__CUDA_DECLARE)
#undef RLHF__CUDA_DECLARE

// What `supports` returns for a call of `op`. [step]
rlhf_status rlhf__cuda_supports_attention(struct rlhf__cuda *, const char *op, const rlhf_attn *);
rlhf_status rlhf__cuda_supports_conv(struct rlhf__cuda *, const char *op, const rlhf_conv *);
rlhf_status rlhf__cuda_supports_delta(struct rlhf__cuda *, const char *op, const rlhf_delta *);
rlhf_status rlhf__cuda_supports_gated_norm(struct rlhf__cuda *, const char *op,
                                           const rlhf_gated_norm *);
rlhf_status rlhf__cuda_supports_multiply(struct rlhf__cuda *, const char *op, const rlhf_columns *);

#endif
