// rows.h: the row kernels of the CPU backend, one function per member of rlhf_compute. Shapes,
// dtypes and the meaning of every argument are those of rlhf/compute.h; ctx is a struct rlhf__cpu.
//
// What it is not: matrix products, the LM head and the optimiser are in products.h.
//
// Each function checks its arguments (RLHF_E_INVALID, RLHF_E_UNSUPPORTED), takes workspace from the
// context (RLHF_E_NOMEM), cuts the work into pieces that do not depend on the number of threads
// (reductions) or whose bits do not (rows), and runs the hot loops. All are [step].
#ifndef RLHF_CPU_ROWS_H
#define RLHF_CPU_ROWS_H

#include <rlhf/compute.h>

rlhf_status rlhf__cpu_copy(void *ctx, rlhf_dev dst, rlhf_dev src, uint64_t bytes);
rlhf_status rlhf__cpu_zero(void *ctx, rlhf_dev dst, uint64_t bytes);
rlhf_status rlhf__cpu_convert(void *ctx, rlhf_dev dst, int32_t dst_dtype, rlhf_dev src,
                              int32_t src_dtype, uint64_t n);
rlhf_status rlhf__cpu_embed(void *ctx, rlhf_dev out, rlhf_dev ids, rlhf_dev pos, rlhf_dev wte,
                            rlhf_dev wpe, uint32_t rows, int32_t d);
rlhf_status rlhf__cpu_embed_bwd(void *ctx, rlhf_dev dwte, rlhf_dev dwpe, rlhf_dev dout,
                                rlhf_dev ids, rlhf_dev pos, uint32_t rows, int32_t d, int32_t vocab,
                                int32_t n_pos);
rlhf_status rlhf__cpu_norm(void *ctx, rlhf_dev out, int32_t out_dtype, rlhf_dev stats, rlhf_dev x,
                           rlhf_dev gamma, rlhf_dev beta, double eps, uint32_t rows, int32_t d);
rlhf_status rlhf__cpu_norm_bwd(void *ctx, rlhf_dev dx, int32_t accumulate, rlhf_dev dgamma,
                               rlhf_dev dbeta, rlhf_dev dy, int32_t dy_dtype, rlhf_dev x,
                               rlhf_dev stats, rlhf_dev gamma, uint32_t rows, int32_t d);
rlhf_status rlhf__cpu_act(void *ctx, rlhf_dev out, rlhf_dev x, int32_t kind, int32_t dtype,
                          uint64_t n);
rlhf_status rlhf__cpu_act_bwd(void *ctx, rlhf_dev dx, rlhf_dev dy, rlhf_dev x, int32_t kind,
                              int32_t dtype, uint64_t n);
rlhf_status rlhf__cpu_add(void *ctx, rlhf_dev dst, rlhf_dev src, int32_t src_dtype, uint64_t n);
rlhf_status rlhf__cpu_gather(void *ctx, rlhf_dev out, rlhf_dev x, rlhf_dev idx, uint32_t n,
                             int32_t d, int32_t dtype);
rlhf_status rlhf__cpu_scatter_add(void *ctx, rlhf_dev dx, rlhf_dev dy, int32_t dy_dtype,
                                  rlhf_dev idx, uint32_t n, int32_t d);
rlhf_status rlhf__cpu_pool(void *ctx, rlhf_dev out, rlhf_dev x, rlhf_dev offset, uint32_t n,
                           int32_t d, int32_t mode);
rlhf_status rlhf__cpu_pool_bwd(void *ctx, rlhf_dev dx, rlhf_dev dout, rlhf_dev offset, uint32_t n,
                               int32_t d, int32_t mode);
rlhf_status rlhf__cpu_kv_store(void *ctx, rlhf_dev k_cache, rlhf_dev v_cache, rlhf_dev k,
                               rlhf_dev v, int64_t kv_src_stride, const rlhf_ragged *rows,
                               int32_t d, int32_t dtype);
rlhf_status rlhf__cpu_attention(void *ctx, const rlhf_attn *, const rlhf_ragged *, rlhf_dev out,
                                rlhf_dev lse, rlhf_dev q, rlhf_dev k, rlhf_dev v);
rlhf_status rlhf__cpu_attention_bwd(void *ctx, const rlhf_attn *, const rlhf_ragged *, rlhf_dev dq,
                                    rlhf_dev dk, rlhf_dev dv, rlhf_dev dout, rlhf_dev out,
                                    rlhf_dev lse, rlhf_dev q, rlhf_dev k, rlhf_dev v);

#endif
