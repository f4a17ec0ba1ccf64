// embed.cu: token embedding, and position embedding if the model has one, forward and backward.
#include "machine/table.h"
#include "row/lanes.h"

enum { N = 4, THREADS = 256, WARPS = 4, COLUMNS = 32 * N, BATCH = 4 };

// ---- forward: a thread computes 4 columns of one token ----

template <bool WIDE>
static __global__ void __launch_bounds__(THREADS)
    embed_rows(float *out, const int32_t *ids, const int32_t *pos, const float *wte,
               const float *wpe, float scale, uint32_t rows, uint32_t d, uint32_t groups,
               int64_t n_ids, int64_t n_pos, struct rlhf__fault *fault) {
    const uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    const uint64_t t = i / groups, c = i % groups * N;
    if (t >= rows) return;
    const int32_t id = ids[t], p = pos ? pos[t] : 0;
    if (id < 0 || id >= n_ids) {
        rlhf__fault_raise(fault, RLHF__FAULT_EMBED_ID, (long long)t, id, n_ids);
        return;
    }
    if (pos && (p < 0 || p >= n_pos)) {
        rlhf__fault_raise(fault, RLHF__FAULT_EMBED_POS, (long long)t, p, n_pos);
        return;
    }
    float a[N], b[N];
    rlhf__load<WIDE>(a, wte + (uint64_t)id * d, c, d);
    if (pos) {
        rlhf__load<WIDE>(b, wpe + (uint64_t)p * d, c, d);
        for (int j = 0; j < N; j++)
            a[j] = fmaf(a[j], scale, b[j]);
    } else {
        for (int j = 0; j < N; j++)
            a[j] *= scale;
    }
    rlhf__store<WIDE>(out + t * d, a, c, d);
}

// Refuses positions without a position table, and a table without positions.
static rlhf_status check_positions(struct rlhf__cuda *cu, const char *op, rlhf_dev pos,
                                   rlhf_dev table) {
    if (!pos == !table) return RLHF_OK;
    return rlhf__cuda_fail(cu, RLHF_E_INVALID,
                           "%s: positions and their table must both be NULL or none", op);
}

static rlhf_status embed(void *ctx, rlhf_dev out, rlhf_dev ids, rlhf_dev pos, rlhf_dev wte,
                         rlhf_dev wpe, double scale, uint32_t rows, int32_t d) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    RLHF_TRY(rlhf__cuda_check_d(cu, "embed", d));
    RLHF_TRY(check_positions(cu, "embed", pos, wpe));
    if (!rows) return RLHF_OK;
    const uint64_t width = (uint64_t)d, row_bytes = width * sizeof(float);
    const uint32_t groups = ((uint32_t)d + N - 1) / N;
    float *const o = rlhf__cuda_f32(out), *const e = rlhf__cuda_f32(wte),
                 *const p = rlhf__cuda_f32(wpe);
    // The size of the vocabulary is unknown here. Ids whose row would be outside of the table's
    // memory raise a fault.
    const int64_t n_ids = (int64_t)(rlhf__cuda_extent(cu, e) / row_bytes);
    const int64_t n_pos = p ? (int64_t)(rlhf__cuda_extent(cu, p) / row_bytes) : 0;
    const bool wide =
        rlhf__aligned<N>(o, width) && rlhf__aligned<N>(e, width) && rlhf__aligned<N>(p, width);
    const dim3 grid((unsigned)(((uint64_t)rows * groups + THREADS - 1) / THREADS));
    rlhf__cuda_wrote(cu, o, rows * row_bytes);
    RUN(cu, (wide ? embed_rows<true> : embed_rows<false>), grid, dim3(THREADS), 0, o,
        rlhf__cuda_i32(ids), rlhf__cuda_i32(pos), e, p, (float)scale, rows, (uint32_t)d, groups,
        n_ids, n_pos, cu->fault);
    return rlhf__cuda_done(cu);
}

// ---- backward ----
//
// dtable[idx[t]] += scale dout[t]. One warp processes one token and 128 columns. The warp of the
// first token with an id searches for the other tokens with this id, and adds all their rows in
// order. The warp of a later token finds an earlier one and returns. This needs no sorting and no
// atomics, and it adds the rows in the order of the tokens.

// True if a token before t has this id. Searches backwards from t, because repeated tokens are
// usually near each other.
static __device__ __forceinline__ bool seen_before(const int32_t *idx, uint32_t t, int32_t id) {
    const unsigned lane = threadIdx.x % 32;
    for (uint32_t end = t; end > 0; end = end > 128 ? end - 128 : 0) {
        bool same = false;
        for (uint32_t k = 0; k < 128; k += 32)
            if (k + lane < end) same |= idx[end - 1 - k - lane] == id;
        if (__ballot_sync(~0u, same)) return true;
    }
    return false;
}

// For each bit i that is set in `hits`, from the lowest onward, add row at + i of dout, scaled.
// BATCH rows are loaded together.
template <bool WIDE>
static __device__ __forceinline__ void add_hits(float (&sum)[N], const float *dout, uint32_t at,
                                                unsigned hits, uint64_t c, uint32_t d,
                                                float scale) {
    while (hits) {
        float v[BATCH][N];
        bool has[BATCH];
        for (int b = 0; b < BATCH; b++) {
            has[b] = hits != 0;
            if (!has[b]) continue;
            const uint32_t t = at + (uint32_t)__ffs((int)hits) - 1;
            hits &= hits - 1;
            rlhf__load<WIDE>(v[b], dout + (uint64_t)t * d, c, d);
        }
        for (int b = 0; b < BATCH; b++)
            for (int j = 0; has[b] && j < N; j++)
                sum[j] = fmaf(v[b][j], scale, sum[j]);
    }
}

template <bool WIDE>
static __global__ void __launch_bounds__(32 * WARPS)
    embed_bwd_rows(float *dtable, const float *dout, const int32_t *idx, float scale, uint32_t rows,
                   uint32_t d, int32_t limit, int code, struct rlhf__fault *fault) {
    const uint32_t t = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (t >= rows) return;
    const int32_t id = idx[t];
    if (id < 0 || id >= limit) {
        if (lane == 0) rlhf__fault_raise(fault, code, t, id, limit);
        return;
    }
    if (seen_before(idx, t, id)) return;
    const uint64_t c = (uint64_t)blockIdx.y * COLUMNS + lane * N;
    float sum[N];
    float *const to = dtable + (uint64_t)id * d;
    rlhf__load<WIDE>(sum, to, c, d);
    for (uint32_t at = t; at < rows; at += 128) {
        int32_t there[4];
        for (int k = 0; k < 4; k++) {
            const uint64_t i = (uint64_t)at + (unsigned)(32 * k) + lane;
            there[k] = i < rows ? idx[i] : -1;
        }
        for (int k = 0; k < 4; k++)
            add_hits<WIDE>(sum, dout, at + (unsigned)(32 * k), __ballot_sync(~0u, there[k] == id),
                           c, d, scale);
    }
    rlhf__store<WIDE>(to, sum, c, d);
}

static rlhf_status one_table(struct rlhf__cuda *cu, rlhf_dev dtable, rlhf_dev dout, rlhf_dev idx,
                             float scale, uint32_t rows, int32_t d, int32_t limit, int code) {
    const uint64_t width = (uint64_t)d;
    float *const to = rlhf__cuda_f32(dtable);
    const float *const from = rlhf__cuda_f32(dout);
    const bool wide = rlhf__aligned<N>(to, width) && rlhf__aligned<N>(from, width);
    const dim3 grid((rows + WARPS - 1) / WARPS, ((unsigned)d + COLUMNS - 1) / COLUMNS);
    rlhf__cuda_wrote(cu, to, (uint64_t)limit * width * sizeof *to);
    RUN(cu, (wide ? embed_bwd_rows<true> : embed_bwd_rows<false>), grid, dim3(32 * WARPS), 0, to,
        from, rlhf__cuda_i32(idx), scale, rows, (uint32_t)d, limit, code, cu->fault);
    return RLHF_OK;
}

static rlhf_status embed_bwd(void *ctx, rlhf_dev dwte, rlhf_dev dwpe, rlhf_dev dout, rlhf_dev ids,
                             rlhf_dev pos, double scale, uint32_t rows, int32_t d, int32_t vocab,
                             int32_t n_pos) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    RLHF_TRY(rlhf__cuda_check_d(cu, "embed_bwd", d));
    RLHF_TRY(check_positions(cu, "embed_bwd", pos, dwpe));
    if (pos ? n_pos < 1 : n_pos != 0)
        return rlhf__cuda_fail(cu, RLHF_E_INVALID, "embed_bwd: n_pos is %d, %s", n_pos,
                               pos ? "must be at least 1" : "without positions it is 0");
    if (!rows) return RLHF_OK;
    RLHF_TRY(
        one_table(cu, dwte, dout, ids, (float)scale, rows, d, vocab, RLHF__FAULT_EMBED_BWD_ID));
    if (pos)
        RLHF_TRY(one_table(cu, dwpe, dout, pos, 1.0f, rows, d, n_pos, RLHF__FAULT_EMBED_BWD_POS));
    return rlhf__cuda_done(cu);
}

void rlhf__cuda_fill_embed(rlhf_compute *t) {
    t->embed = embed;
    t->embed_bwd = embed_bwd;
}
