// head_fwd.cu: lm_head. Computes the log-prob of the target, the entropy, and the KL to a
// reference. One block computes one row.
#include "head/dist_cut.h"
#include "head/head.h"
#include "machine/table.h"

#include <math.h>

namespace {
struct rows_args {
    const float *z, *ref; // [rows, ld]
    uint64_t ld;
    const uint32_t *support; // [rows, words], or NULL
    uint32_t words, first;   // first: index of the first row in the call
    int32_t n;
    struct rlhf__dist_rule rule;
    struct rlhf__cuda_head_stat *stat; // [rows]
    const int32_t *target;             // [rows]; NULL: only statistics
    float *logp, *entropy, *kl;        // [rows]; entropy and kl may be NULL
    struct rlhf__fault *fault;
};
} // namespace

// The log-prob of the row's target. An invalid target raises a fault.
static __device__ __forceinline__ float target_logp(const struct rows_args &a, unsigned row,
                                                    const struct rlhf__dist_row &r,
                                                    const struct rlhf__cuda_head_stat &st) {
    const int32_t id = a.target[row];
    const float low = -__uint_as_float(0x7f800000u);
    if (id < 0 || id >= a.n) {
        rlhf__fault_raise(a.fault, RLHF__FAULT_HEAD_TARGET, a.first + row, id, a.n);
        return low;
    }
    if (!rlhf__dist_in(r, id)) {
        rlhf__fault_raise(a.fault, RLHF__FAULT_HEAD_SUPPORT, a.first + row, id, 0);
        return low;
    }
    if (!rlhf__cut_keeps(st.cut, r.z[id], id, a.n, rlhf__dist_id_bits(a.n))) return low;
    return rlhf__dist_logp(r.z[id], st.max, a.rule.it, st.log_sum);
}

// Computes the keys of the largest and the smallest logit. With REF, also computes the key of the
// reference's largest logit, among the ids whose policy logit is not -inf.
template <bool REF, bool CUT>
static __device__ __forceinline__ void
row_extremes(struct rlhf__dist_shared &s, const struct rlhf__dist_row &r, const float *ref,
             unsigned *top, unsigned *low, unsigned *ref_top) {
    const float none = -__uint_as_float(0x7f800000u);
    unsigned most = 0, least = ~0u, most_ref = 0;
    auto add = [&](float z) {
        const unsigned k = rlhf__dist_key(z);
        most = k > most ? k : most;
        least = k < least ? k : least;
    };
    if (REF)
        rlhf__dist_each_pair<CUT ? 1 : 2>(r, ref, [&](int32_t, float z, float q) {
            add(z);
            const unsigned k = z == none ? 0 : rlhf__dist_key(q);
            most_ref = k > most_ref ? k : most_ref;
        });
    else
        rlhf__dist_each<CUT ? 1 : 2>(r, [&](int32_t, float z) { add(z); });
    rlhf__dist_extremes(s, &most, &least, &most_ref);
    *top = most, *low = least, *ref_top = most_ref;
}

// The key of the reference's largest logit in the policy's kept set.
static __device__ __forceinline__ unsigned kept_ref_top(struct rlhf__dist_shared &s,
                                                        const struct rlhf__dist_row &r,
                                                        const float *ref, uint64_t cut) {
    const int id_bits = rlhf__dist_id_bits(r.n);
    unsigned most = 0, unused = 0, unused2 = 0;
    rlhf__dist_each_pair(r, ref, [&](int32_t id, float z, float q) {
        const unsigned k = rlhf__cut_keeps(cut, z, id, r.n, id_bits) ? rlhf__dist_key(q) : 0;
        most = k > most ? k : most;
    });
    rlhf__dist_extremes(s, &most, &unused, &unused2);
    return most;
}

// Fills in st except its cut and its maxima, which are already set.
template <bool REF, bool CUT>
static __device__ __forceinline__ void row_sums(struct rlhf__dist_shared &s,
                                                const struct rlhf__dist_row &r, const float *ref,
                                                float it, struct rlhf__cuda_head_stat &st) {
    const float none = -__uint_as_float(0x7f800000u);
    const int id_bits = rlhf__dist_id_bits(r.n);
    float sum = 0.0f, dot = 0.0f, ref_sum = 0.0f, ref_dot = 0.0f;
    auto add = [&](int32_t id, float z, float q) {
        if (z == none || (CUT && !rlhf__cut_keeps(st.cut, z, id, r.n, id_bits))) return;
        const float a = rlhf__dist_log_weight(z, st.max, it), e = rlhf__expf(a);
        sum += e;
        dot = fmaf(e, a, dot);
        if (!REF) return;
        const float c = rlhf__dist_log_weight(q, st.ref_max, it);
        ref_sum += rlhf__expf(c);
        ref_dot = fmaf(e, a - c, ref_dot);
    };
    if (REF)
        rlhf__dist_each_pair<CUT ? 1 : 2>(r, ref, add);
    else
        rlhf__dist_each<CUT ? 1 : 2>(r, [&](int32_t id, float z) { add(id, z, 0.0f); });
    double v[REF ? 4 : 2];
    v[0] = (double)sum;
    v[1] = (double)dot;
    if (REF) v[2] = (double)ref_sum, v[3] = (double)ref_dot;
    rlhf__dist_sum<REF ? 4 : 2>(s, v);
    st.log_sum = rlhf__logf((float)v[0]);
    st.entropy = (float)((double)st.log_sum - v[1] / v[0]);
    st.kl = st.ref_log_sum = 0.0f;
    if (!REF) return;
    st.ref_log_sum = rlhf__logf((float)v[2]);
    st.kl = (float)(v[3] / v[0] + (double)rlhf__logf((float)(v[2] / v[0])));
}

// REF: there is a reference; CUT: top-k or top-p is on.
template <bool REF, bool CUT>
static __global__ void __launch_bounds__(RLHF__DIST_THREADS) head_rows(struct rows_args a) {
    SHARED(struct rlhf__dist_shared, s);
    const unsigned row = blockIdx.x;
    const struct rlhf__dist_row r = {a.z + row * a.ld,
                                     a.support ? a.support + (uint64_t)row * a.words : NULL, a.n};
    const float *ref = REF ? a.ref + row * a.ld : NULL;
    struct rlhf__cuda_head_stat st = {};
    unsigned top, low, ref_top;
    row_extremes<REF, CUT>(s, r, ref, &top, &low, &ref_top);
    if (CUT) st.cut = rlhf__cut_of(s, r, a.rule, top, low);
    if (REF && CUT && st.cut) ref_top = kept_ref_top(s, r, ref, st.cut);
    st.max = rlhf__dist_unkey(top);
    if (REF) st.ref_max = rlhf__dist_unkey(ref_top);
    row_sums<REF, CUT>(s, r, ref, a.rule.it, st);
    if (threadIdx.x) return;
    a.stat[row] = st;
    if (!a.target) return;
    a.logp[row] = target_logp(a, row, r, st);
    if (a.entropy) a.entropy[row] = st.entropy;
    if (a.kl) a.kl[row] = st.kl;
}

static float *at(rlhf_dev p, uint32_t i) { return p ? rlhf__cuda_f32(p) + i : NULL; }

rlhf_status rlhf__head_fill(struct rlhf__cuda *cu, const struct rlhf__head_call *c,
                            const struct rlhf__head_block *b, int scores) {
    const rlhf_lm_head *a = &c->a;
    const uint64_t skip = (uint64_t)b->first * (uint64_t)a->d * rlhf_dtype_size(a->dtype);
    RLHF_TRY(rlhf__head_logits(cu, b->logits, rlhf__cuda_mem(rlhf_dev_at(a->hidden, skip)),
                               a->weight, b->rows, c->map));
    if (b->ref)
        RLHF_TRY(rlhf__head_logits(cu, b->ref, rlhf__cuda_mem(rlhf_dev_at(a->ref_hidden, skip)),
                                   a->ref_weight, b->rows, c->ref_map));
    struct rows_args k = {};
    k.z = b->logits;
    k.ref = b->ref;
    k.ld = c->ld;
    k.support = rlhf__head_support(c, b->first);
    k.words = rlhf_support_words(a->vocab);
    k.first = b->first;
    k.n = a->vocab;
    k.rule = c->rule;
    k.stat = b->stat;
    k.fault = cu->fault;
    if (scores) {
        k.target = rlhf__cuda_i32(a->target) + b->first;
        k.logp = at(a->logp, b->first);
        k.entropy = at(a->entropy, b->first);
        k.kl = at(a->kl, b->first);
    }
    const dim3 threads(rlhf__dist_threads(a->vocab));
    const bool cut = rlhf__head_cuts(c->rule);
    if (b->ref && cut)
        RUN(cu, (head_rows<true, true>), dim3(b->rows), threads, 0, k);
    else if (b->ref)
        RUN(cu, (head_rows<true, false>), dim3(b->rows), threads, 0, k);
    else if (cut)
        RUN(cu, (head_rows<false, true>), dim3(b->rows), threads, 0, k);
    else
        RUN(cu, (head_rows<false, false>), dim3(b->rows), threads, 0, k);
    return RLHF_OK;
}

static rlhf_status lm_head(void *ctx, const rlhf_lm_head *from) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    struct rlhf__head_call c;
    RLHF_TRY(rlhf__head_read(cu, "lm_head", &c, from, 0));
    const rlhf_lm_head *a = &c.a;
    cu->kept.valid = 0;
    if (!a->rows) return RLHF_OK;
    rlhf__cuda_wrote(cu, rlhf__cuda_mem(a->logp), a->rows * sizeof(float));
    rlhf__cuda_wrote(cu, rlhf__cuda_mem(a->entropy), a->entropy ? a->rows * sizeof(float) : 0);
    rlhf__cuda_wrote(cu, rlhf__cuda_mem(a->kl), a->kl ? a->rows * sizeof(float) : 0);
    const uint32_t chunk = a->rows < RLHF__HEAD_CHUNK ? a->rows : RLHF__HEAD_CHUNK;
    int fits;
    uint32_t rows = rlhf__head_rows(cu->workspace_bytes, &c, &fits);
    struct rlhf__head_block all;
    RLHF_TRY(rlhf__head_place_fewer(cu, &c, &rows, &all));
    const int keep = fits && rows == a->rows;
    const uint32_t step = rows < chunk ? rows : chunk;
    for (uint32_t first = 0; first < a->rows; first += step) {
        struct rlhf__head_block b = all;
        b.first = first;
        b.rows = a->rows - first < step ? a->rows - first : step;
        if (keep) {
            b.logits += first * c.ld;
            b.stat += first;
            if (b.ref) b.ref += first * c.ld;
        }
        RLHF_TRY(rlhf__head_fill(cu, &c, &b, 1));
    }
    if (keep) cu->kept = rlhf__head_kept(cu, &c);
    return rlhf__cuda_done(cu);
}

void rlhf__cuda_needs_head_fwd(struct rlhf__cuda *cu, const rlhf_call *c,
                               struct rlhf__cuda_needs *n) {
    const rlhf_weight w = rlhf__cuda_weight_shape(&c->weight);
    int keep;
    if (c->op != RLHF_COMPUTE_OP(lm_head) || !c->head || !c->head->rows) return;
    const struct rlhf__head_call h = rlhf__head_shape(c->head, &c->weight, 0);
    rlhf__head_needs(cu, &h, &w, rlhf__head_rows(cu->workspace_bytes, &h, &keep), n);
}

void rlhf__cuda_fill_head_fwd(rlhf_compute *t) { t->lm_head = lm_head; }
