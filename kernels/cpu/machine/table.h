// table.h: each file of the CPU backend has a function that fills its entries of the table.
// rlhf/compute.h describes the shapes, the dtypes and the meaning of every argument; ctx is a
// struct rlhf__cpu. A file calls another file's op through the table.
//
// Each op checks its arguments (RLHF_E_INVALID, RLHF_E_UNSUPPORTED), gets workspace from the
// context (RLHF_E_NOMEM), divides the work into pieces and runs the hot loops. The number of
// threads never changes a bit: reductions use fixed pieces, and a row has the same bits in any
// piece. All are [step].
#ifndef RLHF_CPU_MACHINE_TABLE_H
#define RLHF_CPU_MACHINE_TABLE_H

#include <rlhf/compute.h>

struct rlhf__cpu;
struct rlhf__cpu_needs; // context.h

void rlhf__cpu_fill_memory(rlhf_compute *t);      // alloc .. sync, without copy, zero and convert
void rlhf__cpu_fill_weight(rlhf_compute *t);      // creating and packing weights
void rlhf__cpu_fill_quantised(rlhf_compute *t);   // quantised weights, embed_weight
void rlhf__cpu_fill_linear(rlhf_compute *t);      // linear and related ops
void rlhf__cpu_fill_elementwise(rlhf_compute *t); // copy, zero, convert, add, act, gate
void rlhf__cpu_fill_embed(rlhf_compute *t);       // embed, embed_bwd
void rlhf__cpu_fill_norm(rlhf_compute *t);        // norm, rms_norm, and their backward passes
void rlhf__cpu_fill_rope(rlhf_compute *t);        // rope, rope_bwd
void rlhf__cpu_fill_move(rlhf_compute *t);        // gather, scatter_add, pool, pool_bwd, kv_store
void rlhf__cpu_fill_attention(rlhf_compute *t);   // attention, attention_bwd
void rlhf__cpu_fill_conv(rlhf_compute *t);        // conv, conv_bwd
void rlhf__cpu_fill_delta(rlhf_compute *t);       // delta, delta_bwd
void rlhf__cpu_fill_gated(rlhf_compute *t);       // gated_norm, multiply, their backward passes
void rlhf__cpu_fill_lm_head(rlhf_compute *t);     // lm_head, lm_head_bwd
void rlhf__cpu_fill_lm_sample(rlhf_compute *t);   // lm_sample
void rlhf__cpu_fill_optim(rlhf_compute *t);       // sumsq, adamw
void rlhf__cpu_fill_muon(rlhf_compute *t);        // muon

// There is one function for every file whose ops use workspaces. If that file implements the op of
// the call, the function adds the workspaces of the call. For other ops it does nothing. [step]
void rlhf__cpu_needs_weight(struct rlhf__cpu *, const rlhf_call *, struct rlhf__cpu_needs *);
void rlhf__cpu_needs_linear(struct rlhf__cpu *, const rlhf_call *, struct rlhf__cpu_needs *);
void rlhf__cpu_needs_norm(struct rlhf__cpu *, const rlhf_call *, struct rlhf__cpu_needs *);
void rlhf__cpu_needs_rope(struct rlhf__cpu *, const rlhf_call *, struct rlhf__cpu_needs *);
void rlhf__cpu_needs_attention(struct rlhf__cpu *, const rlhf_call *, struct rlhf__cpu_needs *);
void rlhf__cpu_needs_conv(struct rlhf__cpu *, const rlhf_call *, struct rlhf__cpu_needs *);
void rlhf__cpu_needs_delta(struct rlhf__cpu *, const rlhf_call *, struct rlhf__cpu_needs *);
void rlhf__cpu_needs_gated(struct rlhf__cpu *, const rlhf_call *, struct rlhf__cpu_needs *);
void rlhf__cpu_needs_lm_head(struct rlhf__cpu *, const rlhf_call *, struct rlhf__cpu_needs *);
void rlhf__cpu_needs_lm_sample(struct rlhf__cpu *, const rlhf_call *, struct rlhf__cpu_needs *);
void rlhf__cpu_needs_optim(struct rlhf__cpu *, const rlhf_call *, struct rlhf__cpu_needs *);
void rlhf__cpu_needs_muon(struct rlhf__cpu *, const rlhf_call *, struct rlhf__cpu_needs *);
// Adds the workspace that sumsq needs for `len` elements.
void rlhf__cpu_sumsq_needs(uint64_t len, struct rlhf__cpu_needs *n);

// What `supports` returns for a call of `op`. [step]
rlhf_status rlhf__cpu_supports_attention(struct rlhf__cpu *, const char *op, const rlhf_attn *);
rlhf_status rlhf__cpu_supports_conv(struct rlhf__cpu *, const char *op, const rlhf_conv *);
rlhf_status rlhf__cpu_supports_delta(struct rlhf__cpu *, const char *op, const rlhf_delta *);
rlhf_status rlhf__cpu_supports_gated(struct rlhf__cpu *, const char *op, const rlhf_call *);

// Implements rlhf_kernels_ops.describe.
rlhf_status rlhf__cpu_describe(void *self, uint32_t gpu, const char **json);
// Open a table and close it again, for describe. On success sets `detail` to the table's text and
// `missing` to "". If opening fails, sets `missing` to the reason and `detail` to "". [main]
void rlhf__cpu_try(char *detail, char *missing, size_t cap);

#endif
