// head_bwd.cu: lm_head_bwd. Computes the derivatives of the logits' products and, from these, the
// derivatives of the hidden states and the weight.
//
// With p = softmax over the kept set (treated as constant), H the entropy, K the kl, y the target:
//   d loss / d logit v = it (d_logp ([v = y] - p_v) - d_entropy p_v (log p_v + H)
//                            + d_kl p_v (log p_v - log q_v - K))
// By the product of hidden state and weight, it has one more factor: scale (1 - tanh^2).
#include "head/dist_cut.h"
#include "head/head.h"
#include "machine/table.h"

namespace {
struct grad_args {
    const float *z, *ref; // [rows, ld]
    uint64_t ld;
    const uint32_t *support; // [rows, words], or NULL
    uint32_t words, first;   // first: index of the first row in the call
    int32_t n;
    float it;
    struct rlhf__head_map map;
    const struct rlhf__cuda_head_stat *stat; // [rows]
    const int32_t *target;                   // [rows]
    const float *d_logp, *d_entropy, *d_kl;  // [rows]; NULL: 0
    struct rlhf__fault *fault;
};
} // namespace

// Stores four numbers in one access.
static __device__ __forceinline__ void put4(float *to, const float g[4]) {
    *(float4 *)to = {g[0], g[1], g[2], g[3]};
}
static __device__ __forceinline__ void put4(rlhf__bf16 *to, const float g[4]) {
    uint64_t bits = 0;
    for (int j = 0; j < 4; j++)
        bits |= (uint64_t)rlhf__to_bf16(g[j]) << 16 * j;
    *(uint64_t *)to = bits;
}

// Returns the target of the row if its log-prob has a gradient, otherwise -1. An invalid target
// raises a fault.
static __device__ __forceinline__ int32_t grad_target(const struct grad_args &a, unsigned row,
                                                      const struct rlhf__dist_row &r,
                                                      uint64_t cut) {
    const int32_t id = a.target[row];
    if (id < 0 || id >= a.n) {
        if (threadIdx.x == 0)
            rlhf__fault_raise(a.fault, RLHF__FAULT_HEAD_BWD_TARGET, a.first + row, id, a.n);
        return -1;
    }
    if (!rlhf__dist_in(r, id)) {
        if (threadIdx.x == 0)
            rlhf__fault_raise(a.fault, RLHF__FAULT_HEAD_BWD_SUPPORT, a.first + row, id, 0);
        return -1;
    }
    const float z = r.z[id];
    if (!(z > -__uint_as_float(0x7f800000u))) return -1;
    return rlhf__cut_keeps(cut, z, id, a.n, rlhf__dist_id_bits(a.n)) ? id : -1;
}

// The derivative of a logit over the temperature by its product.
static __device__ __forceinline__ float slope_at(float z, const struct grad_args &a) {
    const float slope = a.it * a.map.scale;
    if (a.map.cap == 0.0f) return slope;
    const float t = z / a.map.cap;
    return slope * fmaxf(0.0f, fmaf(-t, t, 1.0f));
}

// Computes dz[rows, ld], which may be z.
template <class T, bool REF>
static __global__ void __launch_bounds__(RLHF__DIST_THREADS) head_grad(T *dz, struct grad_args a) {
    const unsigned row = blockIdx.x;
    const struct rlhf__dist_row r = {a.z + row * a.ld,
                                     a.support ? a.support + (uint64_t)row * a.words : NULL, a.n};
    const float none = -__uint_as_float(0x7f800000u);
    const struct rlhf__cuda_head_stat st = a.stat[row];
    const int32_t target = grad_target(a, row, r, st.cut);
    const float d_logp = a.d_logp && target >= 0 ? a.d_logp[row] : 0.0f;
    const float d_entropy = a.d_entropy ? a.d_entropy[row] : 0.0f;
    const float d_kl = REF ? a.d_kl[row] : 0.0f;
    const int id_bits = rlhf__dist_id_bits(a.n);
    __syncthreads(); // read the target's logit before it is overwritten
    for (uint64_t c = threadIdx.x; 4 * c < a.ld; c += blockDim.x) {
        float v[4], q[4], g[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        const int32_t first = 4 * (int32_t)c;
        if (first < a.n) {                                   // skips reads past n
            const float4 u = *(const float4 *)(r.z + first); // z may be dz
            v[0] = u.x, v[1] = u.y, v[2] = u.z, v[3] = u.w;
            if (REF) {
                const float4 w = __ldg((const float4 *)(a.ref + row * a.ld + 4 * c));
                q[0] = w.x, q[1] = w.y, q[2] = w.z, q[3] = w.w;
            }
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int32_t id = first + j;
            if (id >= a.n || v[j] == none || !rlhf__dist_in(r, id) ||
                !rlhf__cut_keeps(st.cut, v[j], id, a.n, id_bits))
                continue;
            const float lp = rlhf__dist_log_weight(v[j], st.max, a.it) - st.log_sum;
            const float p = rlhf__expf(lp);
            float f = fmaf(d_entropy, lp + st.entropy, d_logp);
            if (REF) {
                const float lq = rlhf__dist_log_weight(q[j], st.ref_max, a.it) - st.ref_log_sum;
                f = fmaf(-d_kl, lp - lq - st.kl, f);
            }
            const float slope = slope_at(v[j], a);
            g[j] = p == 0.0f ? 0.0f : -slope * (p * f);
            if (id == target) g[j] += slope * d_logp;
        }
        put4(dz + row * a.ld + 4 * c, g);
    }
}

static const float *at(rlhf_dev p, uint32_t i) { return p ? rlhf__cuda_f32(p) + i : NULL; }

// Computes dz[rows, ld] in the act dtype for the rows of the block.
static rlhf_status block_grad(struct rlhf__cuda *cu, const struct rlhf__head_call *c,
                              const struct rlhf__head_block *b, void *dz) {
    const rlhf_lm_head *a = &c->a;
    struct grad_args k = {};
    k.z = b->logits;
    k.ref = b->ref;
    k.ld = c->ld;
    k.support = rlhf__head_support(c, b->first);
    k.words = rlhf_support_words(a->vocab);
    k.first = b->first;
    k.n = a->vocab;
    k.it = c->rule.it;
    k.map = c->map;
    k.stat = b->stat;
    k.target = rlhf__cuda_i32(a->target) + b->first;
    k.d_logp = at(a->d_logp, b->first);
    k.d_entropy = at(a->d_entropy, b->first);
    k.d_kl = at(a->d_kl, b->first);
    k.fault = cu->fault;
    const dim3 threads(rlhf__dist_threads(a->vocab));
    if (a->dtype == RLHF_F32 && b->ref)
        RUN(cu, (head_grad<float, true>), dim3(b->rows), threads, 0, (float *)dz, k);
    else if (a->dtype == RLHF_F32)
        RUN(cu, (head_grad<float, false>), dim3(b->rows), threads, 0, (float *)dz, k);
    else if (b->ref)
        RUN(cu, (head_grad<rlhf__bf16, true>), dim3(b->rows), threads, 0, (rlhf__bf16 *)dz, k);
    else
        RUN(cu, (head_grad<rlhf__bf16, false>), dim3(b->rows), threads, 0, (rlhf__bf16 *)dz, k);
    return RLHF_OK;
}

// The GEMMs that compute d_hidden and d_weight from `rows` rows of dz. The addresses of their
// operands are not set.
static struct rlhf__cuda_product_spec hidden_spec(const struct rlhf__head_call *c,
                                                  const rlhf_weight *w, uint32_t rows) {
    struct rlhf__cuda_product_spec s = {};
    s.in_dtype = s.out_dtype = c->a.dtype;
    s.rows = rows;
    s.cols = (uint32_t)w->k;
    s.depth = (uint32_t)w->n_pad;
    s.left.ld = c->ld;
    s.right = {w->ptr, (uint64_t)w->k_pad, 1};
    s.out_ld = (uint64_t)w->k;
    s.rows_exact = 1;
    return s;
}

static struct rlhf__cuda_product_spec weight_spec(const struct rlhf__head_call *c,
                                                  const rlhf_weight *w, const void *hidden,
                                                  const void *dz, uint32_t rows) {
    const bool out_in = (w->flags & RLHF_WEIGHT_OUT_IN) != 0;
    const struct rlhf__cuda_operand in = {hidden, (uint64_t)w->k, 1}, out = {dz, c->ld, 1};
    struct rlhf__cuda_product_spec s = {};
    s.in_dtype = c->a.dtype;
    s.out_dtype = RLHF_F32;
    s.rows = (uint32_t)(out_in ? w->n : w->k);
    s.cols = (uint32_t)(out_in ? w->k : w->n);
    s.depth = rows;
    s.left = out_in ? out : in;
    s.right = out_in ? in : out;
    s.out_ld = s.cols;
    return s;
}

// Add to d_hidden and d_weight the contribution of `rows` rows, starting at row `first`. dz[rows,
// ld] has the derivatives of these rows' logits.
static rlhf_status products(struct rlhf__cuda *cu, const struct rlhf__head_call *c, const void *dz,
                            uint32_t first, uint32_t rows) {
    const rlhf_lm_head *a = &c->a;
    const rlhf_weight *w = a->weight;
    const uint64_t skip = (uint64_t)first * (uint64_t)a->d * rlhf_dtype_size(a->dtype);
    if (a->d_hidden) {
        struct rlhf__cuda_product_spec s = hidden_spec(c, w, rows);
        RLHF_TRY(rlhf__cuda_weight_values(cu, w, &s.right.ptr));
        s.left.ptr = dz;
        s.out = rlhf__cuda_mem(rlhf_dev_at(a->d_hidden, skip));
        RLHF_TRY(rlhf__cuda_product(cu, &s));
    }
    if (!a->d_weight) return RLHF_OK;
    const void *hidden = rlhf__cuda_mem(rlhf_dev_at(a->hidden, skip));
    struct rlhf__cuda_product_spec s = weight_spec(c, w, hidden, dz, rows);
    s.out = rlhf__cuda_mem(a->d_weight);
    s.addend = (const float *)s.out;
    return rlhf__cuda_product(cu, &s);
}

// Process `rows` rows, starting at row `first`. Their logits are recomputed in blocks of `step`
// rows, and each block is stored in the memory of `all`. If dz is NULL, there is a single block,
// and the derivatives overwrite its logits.
static rlhf_status recompute(struct rlhf__cuda *cu, const struct rlhf__head_call *c,
                             const struct rlhf__head_block *all, uint32_t first, uint32_t rows,
                             uint32_t step, void *dz) {
    const uint64_t line = c->ld * rlhf_dtype_size(c->a.dtype);
    struct rlhf__head_block b = *all;
    if (!dz) dz = b.logits;
    for (uint32_t i = 0; i < rows; i += step) {
        b.first = first + i;
        b.rows = rows - i < step ? rows - i : step;
        RLHF_TRY(rlhf__head_fill(cu, c, &b, 0));
        RLHF_TRY(block_grad(cu, c, &b, (char *)dz + i * line));
    }
    return products(cu, c, dz, first, rows);
}

static rlhf_status kept_backward(struct rlhf__cuda *cu, const struct rlhf__head_call *c,
                                 const struct rlhf__head_block *all, uint32_t chunk, void *dz) {
    for (uint32_t first = 0; first < c->a.rows; first += chunk) {
        struct rlhf__head_block b = *all;
        b.first = first;
        b.rows = c->a.rows - first < chunk ? c->a.rows - first : chunk;
        b.logits += first * c->ld;
        b.stat += first;
        if (b.ref) b.ref += first * c->ld;
        void *to = dz ? dz : b.logits;
        RLHF_TRY(block_grad(cu, c, &b, to));
        RLHF_TRY(products(cu, c, to, first, b.rows));
    }
    return RLHF_OK;
}

namespace {
// The workspaces of a backward call.
struct places {
    void *dz;                    // derivatives of a chunk; NULL: they overwrite the logits
    struct rlhf__head_block all; // logits of `step` rows, or all kept logits
    uint32_t chunk, step;
    int kept;
};
} // namespace

static uint64_t dz_bytes(const struct rlhf__head_call *c, uint32_t chunk) {
    return chunk * c->ld * rlhf_dtype_size(c->a.dtype);
}

// Reserve memory for the derivatives of a whole chunk, because d_weight needs all of them at the
// same time. If memory runs out, give up the logits that lm_head kept.
static rlhf_status place_dz(struct rlhf__cuda *cu, const struct rlhf__head_call *c,
                            struct places *p) {
    const uint64_t bytes = dz_bytes(c, p->chunk);
    const rlhf_status before = cu->recordings.status;
    const rlhf_status st = rlhf__cuda_workspace(cu, RLHF__CUDA_WS_DLOGITS, bytes, &p->dz);
    if (st != RLHF_E_NOMEM) return st;
    rlhf__head_drop(cu, before);
    p->kept = 0;
    return rlhf__cuda_workspace(cu, RLHF__CUDA_WS_DLOGITS, bytes, &p->dz);
}

static int overwrites(const struct rlhf__head_call *c) { return c->a.dtype == RLHF_F32; }

// Returns the number of rows in a block of logits, if the derivatives of a whole chunk must fit in
// the budget as well.
static uint32_t step_beside(uint64_t budget, const struct rlhf__head_call *c, uint32_t chunk) {
    const uint64_t row = rlhf__head_row(c), taken = dz_bytes(c, chunk);
    const uint64_t left = budget > taken ? budget - taken : 0;
    return chunk * row > left ? rlhf__head_fit(left, row) : chunk;
}

// In f32, derivatives overwrite the logits in two cases: if lm_head kept all logits, or if a whole
// chunk fits in the budget and on the card. Otherwise derivatives get separate memory. The logits
// are then processed in blocks that fit in the rest of the budget and of the card.
static rlhf_status place_all(struct rlhf__cuda *cu, const struct rlhf__head_call *c,
                             struct places *p) {
    const uint64_t row = rlhf__head_row(c), budget = cu->workspace_bytes;
    const int over = overwrites(c);
    if (p->kept && over) // the same sizes as in lm_head, so nothing moves
        return rlhf__head_place(cu, c, c->a.rows, &p->all);
    p->step = p->chunk;
    if (!p->kept && over && p->chunk * row <= budget) {
        const rlhf_status before = cu->recordings.status;
        const rlhf_status st = rlhf__head_place(cu, c, p->chunk, &p->all);
        if (st != RLHF_E_NOMEM) return st;
        rlhf__head_drop(cu, before);
    }
    RLHF_TRY(place_dz(cu, c, p));
    if (p->kept) return rlhf__head_place(cu, c, c->a.rows, &p->all); // also the same sizes
    p->step = step_beside(budget, c, p->chunk);
    return rlhf__head_place_fewer(cu, c, &p->step, &p->all);
}

static rlhf_status lm_head_bwd(void *ctx, const rlhf_lm_head *from) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    struct rlhf__head_call c;
    RLHF_TRY(rlhf__head_read(cu, "lm_head_bwd", &c, from, 1));
    const rlhf_lm_head *a = &c.a;
    if (!a->rows) return RLHF_OK;
    const struct rlhf__cuda_kept want = rlhf__head_kept(cu, &c);
    struct places p = {};
    p.chunk = a->rows < RLHF__HEAD_CHUNK ? a->rows : RLHF__HEAD_CHUNK;
    p.kept = rlhf__head_serves(&cu->kept, &want);
    cu->kept.valid = 0; // f32 derivatives overwrite the logits
    rlhf__cuda_wrote(cu, rlhf__cuda_mem(a->d_hidden),
                     a->d_hidden ? (uint64_t)a->rows * (uint64_t)a->d * rlhf_dtype_size(a->dtype)
                                 : 0);
    rlhf__cuda_wrote(cu, rlhf__cuda_mem(a->d_weight),
                     a->d_weight ? (uint64_t)a->d * (uint64_t)a->vocab * sizeof(float) : 0);
    RLHF_TRY(place_all(cu, &c, &p));
    if (p.kept) {
        RLHF_TRY(kept_backward(cu, &c, &p.all, p.chunk, p.dz));
        return rlhf__cuda_done(cu);
    }
    for (uint32_t first = 0; first < a->rows; first += p.chunk)
        RLHF_TRY(recompute(cu, &c, &p.all, first,
                           a->rows - first < p.chunk ? a->rows - first : p.chunk, p.step, p.dz));
    return rlhf__cuda_done(cu);
}

// The workspaces of the GEMMs for the derivatives of one chunk.
static void product_needs(const struct rlhf__cuda *cu, const struct rlhf__head_call *c,
                          const rlhf_weight *w, uint32_t rows, struct rlhf__cuda_needs *n) {
    const struct rlhf__cuda_product_spec dh = hidden_spec(c, w, rows);
    const struct rlhf__cuda_product_spec dw = weight_spec(c, w, NULL, NULL, rows);
    if (c->a.d_hidden) rlhf__cuda_product_needs(cu, &dh, n);
    if (c->a.d_weight) rlhf__cuda_product_needs(cu, &dw, n);
}

// Counts the workspaces of a call that follows lm_head for the same rows.
void rlhf__cuda_needs_head_bwd(struct rlhf__cuda *cu, const rlhf_call *c,
                               struct rlhf__cuda_needs *n) {
    const rlhf_weight w = rlhf__cuda_weight_shape(&c->weight);
    const uint64_t budget = cu->workspace_bytes;
    int kept;
    if (c->op != RLHF_COMPUTE_OP(lm_head_bwd) || !c->head || !c->head->rows) return;
    const struct rlhf__head_call h = rlhf__head_shape(c->head, &c->weight, 1);
    const uint32_t chunk = h.a.rows < RLHF__HEAD_CHUNK ? h.a.rows : RLHF__HEAD_CHUNK;
    rlhf__head_rows(budget, &h, &kept);
    const int over = overwrites(&h) && (kept || chunk * rlhf__head_row(&h) <= budget);
    if (!over) rlhf__cuda_need(n, RLHF__CUDA_WS_DLOGITS, dz_bytes(&h, chunk));
    rlhf__head_needs(cu, &h, &w,
                     kept   ? h.a.rows
                     : over ? chunk
                            : step_beside(budget, &h, chunk),
                     n);
    product_needs(cu, &h, &w, chunk, n);
}

void rlhf__cuda_fill_head_bwd(rlhf_compute *t) { t->lm_head_bwd = lm_head_bwd; }
