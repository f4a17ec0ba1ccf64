// ops.h: the table functions of the reference backend, one file each noun. The contract of every
// function (shapes, dtypes, meaning) is the comment of its table entry in rlhf/compute.h; all are
// [step], take struct rlhf__ref * as ctx and fail with RLHF_E_INVALID on ranges outside a buffer.
#ifndef RLHF_KERNELS_REFERENCE_OPS_H
#define RLHF_KERNELS_REFERENCE_OPS_H

#include "context.h"

// memory.c
rlhf_status rlhf__ref_alloc(void *ctx, uint64_t bytes, rlhf_dev *out);
void rlhf__ref_release(void *ctx, rlhf_dev p);
uint64_t rlhf__ref_bytes_in_use(void *ctx);
rlhf_status rlhf__ref_upload(void *ctx, rlhf_dev dst, const void *host_src, uint64_t bytes);
rlhf_status rlhf__ref_download(void *ctx, void *host_dst, rlhf_dev src, uint64_t bytes);
rlhf_status rlhf__ref_copy(void *ctx, rlhf_dev dst, rlhf_dev src, uint64_t bytes);
rlhf_status rlhf__ref_zero(void *ctx, rlhf_dev dst, uint64_t bytes);
rlhf_status rlhf__ref_sync(void *ctx);

// convert.c
rlhf_status rlhf__ref_convert(void *ctx, rlhf_dev dst, int32_t dst_dtype, rlhf_dev src,
                              int32_t src_dtype, uint64_t n);

// weight.c
rlhf_status rlhf__ref_weight_create(void *ctx, int32_t k, int32_t n, int32_t dtype, uint32_t flags,
                                    rlhf_weight **out);
void rlhf__ref_weight_destroy(void *ctx, rlhf_weight *w);
rlhf_status rlhf__ref_weight_pack(void *ctx, rlhf_weight *w, rlhf_dev src);

// linear.c
rlhf_status rlhf__ref_linear(void *ctx, rlhf_dev out, int32_t out_dtype, int32_t accumulate,
                             rlhf_dev x, const rlhf_weight *w, rlhf_dev bias, uint32_t rows);
rlhf_status rlhf__ref_linear_dx(void *ctx, rlhf_dev dx, int32_t dx_dtype, int32_t accumulate,
                                rlhf_dev dy, const rlhf_weight *w, uint32_t rows);
rlhf_status rlhf__ref_linear_dw(void *ctx, rlhf_dev dw, rlhf_dev db, rlhf_dev x, rlhf_dev dy,
                                const rlhf_weight *w, uint32_t rows);

// embed.c
rlhf_status rlhf__ref_embed(void *ctx, rlhf_dev out, rlhf_dev ids, rlhf_dev pos, rlhf_dev wte,
                            rlhf_dev wpe, uint32_t rows, int32_t d);
rlhf_status rlhf__ref_embed_bwd(void *ctx, rlhf_dev dwte, rlhf_dev dwpe, rlhf_dev dout,
                                rlhf_dev ids, rlhf_dev pos, uint32_t rows, int32_t d, int32_t vocab,
                                int32_t n_pos);

// norm.c
rlhf_status rlhf__ref_norm(void *ctx, rlhf_dev out, int32_t out_dtype, rlhf_dev stats, rlhf_dev x,
                           rlhf_dev gamma, rlhf_dev beta, double eps, uint32_t rows, int32_t d);
rlhf_status rlhf__ref_norm_bwd(void *ctx, rlhf_dev dx, int32_t accumulate, rlhf_dev dgamma,
                               rlhf_dev dbeta, rlhf_dev dy, int32_t dy_dtype, rlhf_dev x,
                               rlhf_dev stats, rlhf_dev gamma, uint32_t rows, int32_t d);

// act.c
rlhf_status rlhf__ref_act(void *ctx, rlhf_dev out, rlhf_dev x, int32_t kind, int32_t dtype,
                          uint64_t n);
rlhf_status rlhf__ref_act_bwd(void *ctx, rlhf_dev dx, rlhf_dev dy, rlhf_dev x, int32_t kind,
                              int32_t dtype, uint64_t n);

// rows.c
rlhf_status rlhf__ref_add(void *ctx, rlhf_dev dst, rlhf_dev src, int32_t src_dtype, uint64_t n);
rlhf_status rlhf__ref_gather(void *ctx, rlhf_dev out, rlhf_dev x, rlhf_dev idx, uint32_t n,
                             int32_t d, int32_t dtype);
rlhf_status rlhf__ref_scatter_add(void *ctx, rlhf_dev dx, rlhf_dev dy, int32_t dy_dtype,
                                  rlhf_dev idx, uint32_t n, int32_t d);

// pool.c
rlhf_status rlhf__ref_pool(void *ctx, rlhf_dev out, rlhf_dev x, rlhf_dev offset, uint32_t n,
                           int32_t d, int32_t mode);
rlhf_status rlhf__ref_pool_bwd(void *ctx, rlhf_dev dx, rlhf_dev dout, rlhf_dev offset, uint32_t n,
                               int32_t d, int32_t mode);

// attention.c, attention_bwd.c
rlhf_status rlhf__ref_kv_store(void *ctx, rlhf_dev k_cache, rlhf_dev v_cache, rlhf_dev k,
                               rlhf_dev v, int64_t kv_src_stride, const rlhf_ragged *r, int32_t d,
                               int32_t dtype);
rlhf_status rlhf__ref_attention(void *ctx, const rlhf_attn *a, const rlhf_ragged *r, rlhf_dev out,
                                rlhf_dev lse, rlhf_dev q, rlhf_dev k, rlhf_dev v);
rlhf_status rlhf__ref_attention_bwd(void *ctx, const rlhf_attn *a, const rlhf_ragged *r,
                                    rlhf_dev dq, rlhf_dev dk, rlhf_dev dv, rlhf_dev dout,
                                    rlhf_dev out, rlhf_dev lse, rlhf_dev q, rlhf_dev k, rlhf_dev v);

// lm_head.c, lm_head_bwd.c, lm_sample.c
rlhf_status rlhf__ref_lm_head(void *ctx, const rlhf_lm_head *a);
rlhf_status rlhf__ref_lm_head_bwd(void *ctx, const rlhf_lm_head *a);
rlhf_status rlhf__ref_lm_sample(void *ctx, const rlhf_lm_sample *a);

// sumsq.c, adamw.c, muon.c
rlhf_status rlhf__ref_sumsq(void *ctx, rlhf_dev x, uint64_t n, double *host_out);
rlhf_status rlhf__ref_adamw(void *ctx, rlhf_dev w, rlhf_dev g, rlhf_dev m, rlhf_dev v, uint64_t n,
                            const rlhf_adamw *a);
rlhf_status rlhf__ref_muon(void *ctx, rlhf_dev w, rlhf_dev g, rlhf_dev mom, int32_t rows,
                           int32_t cols, const rlhf_muon *a);

#endif
