// attention.cu: attention of the CUDA backend: reads and checks the arguments, and calls the
// function of the dtype.
#include "attention/attention.h"

#include "machine/table.h"

#include <float.h>

// The number of elements from the start of the first of n rows to the end of the last row.
static uint64_t extent(uint64_t n, int64_t stride, int64_t width) {
    return n ? (n - 1) * (uint64_t)stride + (uint64_t)width : 0;
}

// Copies the caller's struct to *own and checks the range of its members.
static rlhf_status read_geometry(struct rlhf__cuda *cu, const char *op, rlhf_attn *own,
                                 const rlhf_attn *from) {
    RLHF_TRY(rlhf__cuda_copy_in(cu, op, own, sizeof *own, from, RLHF_SIZE_TO(rlhf_attn, scale)));
    RLHF_TRY(rlhf__cuda_check_dtype(cu, op, own->dtype));
    if (own->heads < 1 || own->heads > 65535)
        return rlhf__cuda_fail(cu, RLHF_E_INVALID, "%s: heads is %d, allowed are 1 to 65535", op,
                               own->heads);
    if (own->head_dim < 1 || own->head_dim > RLHF__ATTN_HEAD_DIM_MAX)
        return rlhf__cuda_fail(cu, RLHF_E_UNSUPPORTED,
                               "%s: head_dim is %d (config.json: head_dim, else the hidden size "
                               "divided by the number of heads), supported are 1 to %d; the "
                               "backend 'reference' is slow but supports every width",
                               op, own->head_dim, RLHF__ATTN_HEAD_DIM_MAX);
    if (!own->kv_heads) own->kv_heads = own->heads;
    if (own->kv_heads < 1 || own->heads % own->kv_heads)
        return rlhf__cuda_fail(cu, RLHF_E_INVALID, "%s: kv_heads is %d, must divide heads (%d)", op,
                               own->kv_heads, own->heads);
    const int64_t width = (int64_t)own->heads * own->head_dim;
    if (own->q_stride < width || own->out_stride < width ||
        own->kv_stride < (int64_t)own->kv_heads * own->head_dim)
        return rlhf__cuda_fail(
            cu, RLHF_E_INVALID,
            "%s: %d heads (%d of keys) of %d do not fit strides q %lld, kv %lld, "
            "out %lld",
            op, own->heads, own->kv_heads, own->head_dim, (long long)own->q_stride,
            (long long)own->kv_stride, (long long)own->out_stride);
    if (own->window < 0 || (own->window && !own->causal))
        return rlhf__cuda_fail(
            cu, RLHF_E_INVALID,
            "%s: window is %d with causal %d, must be 0, or positive with causal", op, own->window,
            own->causal);
    if (!(own->softcap >= 0.0 && own->softcap <= (double)FLT_MAX))
        return rlhf__cuda_fail(cu, RLHF_E_INVALID,
                               "%s: softcap is %g, must be 0 or positive and finite", op,
                               own->softcap);
    return RLHF_OK;
}

// Fill the arguments that forward and backward have in common. `wide` becomes 0 if the geometry
// does not allow 16-byte accesses.
static void arguments(struct rlhf__attn_args *a, const rlhf_attn *own) {
    const int64_t chunk = 16 / (int64_t)rlhf_dtype_size(own->dtype);
    a->q_stride = own->q_stride;
    a->kv_stride = own->kv_stride;
    a->out_stride = own->out_stride;
    a->heads = own->heads;
    a->group = own->heads / own->kv_heads;
    a->head_dim = own->head_dim;
    a->causal = own->causal;
    a->wide = !(own->head_dim % chunk || own->q_stride % chunk || own->kv_stride % chunk ||
                own->out_stride % chunk);
    a->tiles = a->segments = 1;
    a->parts = NULL;
    a->window = own->window < 1 << 30 ? own->window : 1 << 30;
    a->scale = (float)own->scale;
    a->scale_log2 = (float)(own->scale * 1.4426950408889634);
    a->bend = own->softcap > 0.0 ? (float)(own->scale / own->softcap) : 0.0f;
    a->cap_log2 = (float)(own->softcap * 1.4426950408889634);
}

// Returns the number of tokens that fit in the allocation that contains p. A token takes
// own->kv_stride elements.
static int64_t tokens(const struct rlhf__cuda *cu, const rlhf_attn *own, const void *p) {
    const int64_t width = (int64_t)own->kv_heads * own->head_dim;
    const int64_t n = (int64_t)(rlhf__cuda_extent(cu, p) / rlhf_dtype_size(own->dtype));
    return n < width ? 0 : (n - width) / own->kv_stride + 1;
}

// Sets the keys and values of forward and backward.
static void keys(const struct rlhf__cuda *cu, struct rlhf__attn_args *a, const rlhf_attn *own,
                 rlhf_dev k, rlhf_dev v) {
    a->k = rlhf__cuda_mem(k);
    a->v = rlhf__cuda_mem(v);
    const int64_t of_k = tokens(cu, own, a->k), of_v = tokens(cu, own, a->v);
    a->rows.tokens = of_k < of_v ? of_k : of_v;
}

static int aligned(const void *p) { return (uintptr_t)p % 16 == 0; }

static rlhf_status attention(void *ctx, const rlhf_attn *attn, const rlhf_ragged *ragged,
                             rlhf_dev out, rlhf_dev lse, rlhf_dev q, rlhf_dev k, rlhf_dev v) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    rlhf_attn own;
    struct rlhf__attn_args a;
    RLHF_TRY(read_geometry(cu, "attention", &own, attn));
    RLHF_TRY(rlhf__cuda_read_ragged(cu, "attention", &a.rows, ragged));
    arguments(&a, &own);
    a.rows.window = a.window;
    a.q = rlhf__cuda_mem(q);
    keys(cu, &a, &own, k, v);
    a.out = rlhf__cuda_mem(out);
    a.lse = rlhf__cuda_f32(lse);
    a.wide = a.wide && aligned(a.q) && aligned(a.k) && aligned(a.v) && aligned(a.out);
    if (!a.rows.n) return RLHF_OK;
    const uint64_t total = a.rows.total, width = (uint64_t)own.heads * (uint64_t)own.head_dim;
    rlhf__cuda_wrote(cu, a.out,
                     extent(total, own.out_stride, (int64_t)width) * rlhf_dtype_size(own.dtype));
    if (a.lse) rlhf__cuda_wrote(cu, a.lse, total * (uint64_t)own.heads * sizeof(float));
    RLHF_TRY(own.dtype == RLHF_BF16 ? rlhf__cuda_attention_bf16(cu, &a)
                                    : rlhf__cuda_attention_f32(cu, &a));
    return rlhf__cuda_done(cu);
}

static rlhf_status attention_bwd(void *ctx, const rlhf_attn *attn, const rlhf_ragged *ragged,
                                 rlhf_dev dq, rlhf_dev dk, rlhf_dev dv, rlhf_dev dout, rlhf_dev out,
                                 rlhf_dev lse, rlhf_dev q, rlhf_dev k, rlhf_dev v) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    rlhf_attn own;
    struct rlhf__attn_bwd_args b;
    RLHF_TRY(read_geometry(cu, "attention_bwd", &own, attn));
    RLHF_TRY(rlhf__cuda_read_ragged(cu, "attention_bwd", &b.a.rows, ragged));
    arguments(&b.a, &own);
    b.a.q = rlhf__cuda_mem(q);
    keys(cu, &b.a, &own, k, v);
    b.a.out = rlhf__cuda_mem(out);
    b.a.lse = rlhf__cuda_f32(lse);
    b.dq = rlhf__cuda_mem(dq);
    b.dk = rlhf__cuda_mem(dk);
    b.dv = rlhf__cuda_mem(dv);
    b.dout = rlhf__cuda_mem(dout);
    b.a.wide = b.a.wide && aligned(b.a.q) && aligned(b.a.k) && aligned(b.a.v) && aligned(b.a.out) &&
               aligned(b.dq) && aligned(b.dk) && aligned(b.dv) && aligned(b.dout);
    if (!b.a.rows.n) return RLHF_OK;
    const uint64_t total = b.a.rows.total, es = rlhf_dtype_size(own.dtype);
    const int64_t width = (int64_t)own.heads * own.head_dim;
    const int64_t kv_width = (int64_t)own.kv_heads * own.head_dim;
    rlhf__cuda_wrote(cu, b.dq, extent(total, own.q_stride, width) * es);
    rlhf__cuda_wrote(cu, b.dk, extent(total, own.kv_stride, kv_width) * es);
    rlhf__cuda_wrote(cu, b.dv, extent(total, own.kv_stride, kv_width) * es);
    RLHF_TRY(rlhf__cuda_attention_bwd(cu, &b, own.dtype));
    return rlhf__cuda_done(cu);
}

// The arrays of c->ragged are not read.
void rlhf__cuda_needs_attention(struct rlhf__cuda *cu, const rlhf_call *c,
                                struct rlhf__cuda_needs *n) {
    const int backward = c->op == RLHF_COMPUTE_OP(attention_bwd);
    rlhf_attn own;
    struct rlhf__attn_args a = {};
    if (!c->attn || !c->ragged || (!backward && c->op != RLHF_COMPUTE_OP(attention))) return;
    if (read_geometry(cu, "workspace_bytes", &own, c->attn) < 0) return;
    arguments(&a, &own);
    a.rows.n = c->ragged->n;
    a.rows.total = c->ragged->total;
    a.rows.max_q = c->ragged->max_q;
    a.rows.max_k = c->ragged->max_k;
    if (backward)
        rlhf__cuda_need(n, RLHF__CUDA_WS_ATTN,
                        rlhf__cuda_attention_bwd_bytes(a.rows.total, own.heads));
    else if (own.dtype == RLHF_BF16)
        rlhf__cuda_need(n, RLHF__CUDA_WS_ATTN, rlhf__cuda_attention_bf16_bytes(&a));
}

rlhf_status rlhf__cuda_supports_attention(struct rlhf__cuda *cu, const char *op,
                                          const rlhf_attn *from) {
    rlhf_attn own;
    return read_geometry(cu, op, &own, from);
}

void rlhf__cuda_fill_attention(rlhf_compute *t) {
    t->attention = attention;
    t->attention_bwd = attention_bwd;
}
