// ops.h: the functions that fill the table of the reference backend. Each file fills in its own
// table functions. The comments of the table in rlhf/compute.h describe them (shapes, dtypes,
// meaning). All table functions are [step], take a struct rlhf__ref * as ctx, and fail with
// RLHF_E_INVALID if a range is outside of a buffer.
#ifndef RLHF_KERNELS_REFERENCE_OPS_H
#define RLHF_KERNELS_REFERENCE_OPS_H

#include "context.h"

void rlhf__ref_fill_memory(rlhf_compute *t);        // alloc .. sync, without convert
void rlhf__ref_fill_weight(rlhf_compute *t);        // creating and packing weights
void rlhf__ref_fill_quantised(rlhf_compute *t);     // quantised weights, embed_weight
void rlhf__ref_fill_linear(rlhf_compute *t);        // linear and related ops
void rlhf__ref_fill_embed(rlhf_compute *t);         // embed, embed_bwd
void rlhf__ref_fill_norm(rlhf_compute *t);          // norm, norm_bwd
void rlhf__ref_fill_rms_norm(rlhf_compute *t);      // rms_norm, rms_norm_bwd
void rlhf__ref_fill_act(rlhf_compute *t);           // act, act_bwd, gate, gate_bwd
void rlhf__ref_fill_rope(rlhf_compute *t);          // rope, rope_bwd
void rlhf__ref_fill_rows(rlhf_compute *t);          // convert, add, gather, scatter_add, pool
void rlhf__ref_fill_attention(rlhf_compute *t);     // kv_store, attention
void rlhf__ref_fill_attention_bwd(rlhf_compute *t); // attention_bwd
void rlhf__ref_fill_conv(rlhf_compute *t);          // conv, conv_bwd
void rlhf__ref_fill_delta(rlhf_compute *t);         // delta
void rlhf__ref_fill_delta_bwd(rlhf_compute *t);     // delta_bwd
void rlhf__ref_fill_gated_norm(rlhf_compute *t);    // gated_norm, gated_norm_bwd
void rlhf__ref_fill_multiply(rlhf_compute *t);      // multiply, multiply_bwd
void rlhf__ref_fill_lm_head(rlhf_compute *t);       // lm_head
void rlhf__ref_fill_lm_head_bwd(rlhf_compute *t);   // lm_head_bwd
void rlhf__ref_fill_lm_sample(rlhf_compute *t);     // lm_sample
void rlhf__ref_fill_optim(rlhf_compute *t);         // sumsq, adamw, muon

// What `supports` returns for a call of `op` with these sizes.
rlhf_status rlhf__ref_supports_conv(struct rlhf__ref *r, const char *op, const rlhf_conv *from);
rlhf_status rlhf__ref_supports_delta(struct rlhf__ref *r, const char *op, const rlhf_delta *from);
rlhf_status rlhf__ref_supports_gated_norm(struct rlhf__ref *r, const char *op,
                                          const rlhf_gated_norm *from);
rlhf_status rlhf__ref_supports_multiply(struct rlhf__ref *r, const char *op,
                                        const rlhf_columns *from);

#endif
