// sample.cu: lm_sample, the next token of each row. One block computes one row. Logits, maxima and
// sums are computed as in lm_head, so the log-prob has the same bits. Sampling uses integer weights
// (dist.h). The sampled id is the first one, in vocabulary order, at which the running sum of
// weights exceeds u times the total.
#include "head/dist_cut.h"
#include "head/head.h"
#include "machine/table.h"

#include <rlhf/rng.h>
#include <string.h>

namespace {
struct sample_args {
    const float *z; // [rows, ld]
    uint64_t ld;
    uint32_t words, first; // support words per row; index of the first row in the call
    int32_t n;
    struct rlhf__dist_rule drawn, scored;
    struct rlhf__head_map map;
    uint64_t seed, stream;
    const uint64_t *counter; // [rows]
    int32_t *id;             // [rows]
    float *logp;             // [rows]
    uint32_t *support;       // [rows, words], or NULL
    struct rlhf__fault *fault;
};

// The state of sampling and scoring a row.
struct sampled_row {
    struct rlhf__dist_row r;
    float max, log_sum;
    uint64_t drawn, scored; // the cuts of the two distributions
    int32_t greedy_id;      // -1: sampled by weight
};
} // namespace

// The upper 64 bits of the product a b.
static __device__ __forceinline__ uint64_t product_high(uint64_t a, uint64_t b) {
    const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    const uint64_t mid = a1 * b0 + (a0 * b0 >> 32), mid2 = a0 * b1 + (uint32_t)mid;
    return a1 * b1 + (mid >> 32) + (mid2 >> 32);
}

// Every thread gets the lowest id whose logit has the key `top`.
static __device__ __forceinline__ int32_t lowest_of(struct rlhf__dist_shared &s,
                                                    const struct rlhf__dist_row &r, unsigned top) {
    unsigned best = ~0u, unused = 0, unused2 = 0;
    rlhf__dist_each(r, [&](int32_t id, float z) {
        if (rlhf__dist_key(z) == top && (unsigned)id < best) best = (unsigned)id;
    });
    __syncthreads(); // after all threads have read the previous extremes
    rlhf__dist_extremes(s, &unused, &best, &unused2);
    return (int32_t)best;
}

static __device__ __forceinline__ bool is_drawn_from(const struct sampled_row &w, int32_t id,
                                                     float z, int id_bits) {
    if (w.greedy_id >= 0) return id == w.greedy_id;
    return rlhf__cut_keeps(w.drawn, z, id, w.r.n, id_bits);
}

// Fills in w->log_sum. Returns the sum of the weights of this thread's warp.
template <bool CUT>
static __device__ __forceinline__ uint64_t row_sums(struct rlhf__dist_shared &s,
                                                    const struct sample_args &a,
                                                    struct sampled_row *w) {
    const float max = w->max, score_it = a.scored.it, draw_it = a.drawn.it;
    const float one = rlhf__pow2(rlhf__dist_weight_bits(a.n));
    const int id_bits = rlhf__dist_id_bits(a.n);
    float sum = 0.0f;
    uint64_t weight = 0;
    rlhf__dist_each<CUT ? 1 : 2>(w->r, [&](int32_t id, float z) {
        const bool drawn = is_drawn_from(*w, id, z, id_bits);
        const bool scored = a.support ? drawn : rlhf__cut_keeps(w->scored, z, id, a.n, id_bits);
        const float e = rlhf__expf(rlhf__dist_log_weight(z, max, draw_it));
        if (drawn) weight += (uint64_t)(e * one);
        if (!scored) return;
        sum += score_it == draw_it ? e : rlhf__expf(rlhf__dist_log_weight(z, max, score_it));
    });
    double total[1] = {(double)sum};
    weight = rlhf__warp_sum(weight);
    rlhf__dist_sum<1>(s, total);
    w->log_sum = rlhf__logf((float)total[0]);
    return weight;
}

static __device__ __forceinline__ void load_any(const struct rlhf__dist_row &r, int32_t c,
                                                float v[4]) {
    if (4 * c + 4 <= r.n) // skips the end: ids past n come after all that can be chosen
        rlhf__dist_load(r, c, v);
    else
        rlhf__dist_load_end(r, c, v);
}

// The sum of the weights of this warp in a span.
static __device__ __forceinline__ uint64_t weight_of(const struct sampled_row &w, float it,
                                                     struct rlhf__dist_span span) {
    const float one = rlhf__pow2(rlhf__dist_weight_bits(w.r.n));
    const int id_bits = rlhf__dist_id_bits(w.r.n);
    uint64_t sum = 0;
    for (int32_t c = span.from + (int32_t)threadIdx.x % 32; c < span.to; c += 32) {
        float v[4];
        load_any(w.r, c, v);
        for (int j = 0; j < 4; j++)
            if (is_drawn_from(w, 4 * c + j, v[j], id_bits))
                sum += rlhf__dist_weight(v[j], w.max, it, one);
    }
    return rlhf__warp_sum(sum);
}

// `sums` has the weight of each warp's part of a span, in vocabulary order. Returns the warp in
// whose part the running sum exceeds *want, and subtracts the sums of the earlier warps from *want.
// If `fraction` is set, *want is a fraction in units of 2^-64, and is first replaced with this
// fraction of the total.
static __device__ __forceinline__ int crossing(const uint64_t *sums, uint64_t *want,
                                               bool fraction) {
    const int warps = (int)blockDim.x / 32;
    uint64_t total = 0, before = 0;
    if (fraction) {
        for (int w = 0; w < warps; w++)
            total += sums[w];
        *want = product_high(*want, total);
    }
    for (int w = 0; w < warps; w++) {
        if (*want < before + sums[w]) {
            *want -= before;
            return w;
        }
        before += sums[w];
    }
    return 0;
}

// Finds the id in a span at which the running sum exceeds `want`. Returns the id in one lane of the
// warp, and -1 in the others.
static __device__ __forceinline__ int32_t walk(const struct sampled_row &w, float it,
                                               struct rlhf__dist_span span, uint64_t want) {
    const float one = rlhf__pow2(rlhf__dist_weight_bits(w.r.n));
    const int id_bits = rlhf__dist_id_bits(w.r.n);
    const int32_t lane = (int32_t)threadIdx.x % 32;
    uint64_t before = 0;
    int32_t id = -1;
    for (int32_t c = span.from; c < span.to; c += 32) {
        uint64_t e[4] = {0, 0, 0, 0}, own = 0;
        float v[4];
        if (c + lane < span.to) { // skips the next span's loads: `want` is in this one
            load_any(w.r, c + lane, v);
            for (int j = 0; j < 4; j++)
                if (is_drawn_from(w, 4 * (c + lane) + j, v[j], id_bits))
                    own += e[j] = rlhf__dist_weight(v[j], w.max, it, one);
        }
        uint64_t reached = own;
        for (int d = 1; d < 32; d <<= 1) {
            const uint64_t o = __shfl_up_sync(~0u, reached, (unsigned)d);
            reached += lane >= d ? o : 0;
        }
        uint64_t at = before + reached - own;
        before += __shfl_sync(~0u, reached, 31);
        if (want < at || want >= at + own) continue;
        for (int j = 3; j >= 0; j--) // the first id that exceeds is set last
            if (want < at + e[0] + (j > 0 ? e[1] : 0) + (j > 1 ? e[2] : 0) + (j > 2 ? e[3] : 0))
                id = 4 * (c + lane) + j;
    }
    return id;
}

// The sampled id. One thread gets it, the others get -1. `own` is the result of row_sums.
static __device__ __forceinline__ int32_t draw(struct rlhf__dist_shared &s,
                                               const struct sample_args &a,
                                               const struct sampled_row &w, uint64_t counter,
                                               uint64_t own) {
    const rlhf_rng at = {a.seed, a.stream, counter};
    const int warp = (int)threadIdx.x / 32, warps = (int)blockDim.x / 32;
    uint32_t word[4];
    rlhf_rng_block(&at, word);
    uint64_t want = ((uint64_t)word[0] << 32 | word[1]) >> 11 << 11; // the 53 bits of a double
    struct rlhf__dist_span span = {0, (a.n + 3) / 4};
    for (int level = 0;; level++) {
        uint64_t *sums = s.rank + RLHF__DIST_WARPS * (level & 1); // two, used in turn
        if (level) own = weight_of(w, a.drawn.it, rlhf__dist_part(span, warp, warps));
        if (threadIdx.x % 32 == 0) sums[warp] = own;
        __syncthreads();
        span = rlhf__dist_part(span, crossing(sums, &want, level == 0), warps);
        if (warps == 1 || span.to - span.from <= 64) break;
    }
    return warp == 0 ? walk(w, a.drawn.it, span, want) : -1;
}

static __device__ __forceinline__ void put_support(uint32_t *bits, const struct sampled_row &w) {
    const int id_bits = rlhf__dist_id_bits(w.r.n);
    for (int32_t from = (int32_t)threadIdx.x / 32 * 32; from < w.r.n; from += (int32_t)blockDim.x) {
        const int32_t id = from + (int32_t)threadIdx.x % 32;
        const unsigned in =
            __ballot_sync(~0u, id < w.r.n && is_drawn_from(w, id, w.r.z[id], id_bits));
        if (threadIdx.x % 32 == 0) bits[from / 32] = in;
    }
}

// Computes the cuts of w.
static __device__ __forceinline__ void cut_row(struct rlhf__dist_shared &s,
                                               const struct sample_args &a, struct sampled_row *w,
                                               unsigned top, unsigned low) {
    if (!a.drawn.greedy) w->drawn = rlhf__cut_of(s, w->r, a.drawn, top, low);
    const bool same = !a.drawn.greedy && a.drawn.top_k == a.scored.top_k &&
                      a.drawn.top_p == a.scored.top_p && a.drawn.has_least == a.scored.has_least &&
                      a.drawn.least == a.scored.least && a.drawn.it == a.scored.it;
    w->scored = same ? w->drawn : rlhf__cut_of(s, w->r, a.scored, top, low);
}

// CUT: top-k, top-p or min-p is on in either distribution.
template <bool CUT>
static __global__ void __launch_bounds__(RLHF__DIST_THREADS) sample_rows(struct sample_args a) {
    SHARED(struct rlhf__dist_shared, s);
    const unsigned row = blockIdx.x;
    struct sampled_row w = {{a.z + row * a.ld, NULL, a.n}, 0.0f, 0.0f, 0, 0, -1};
    unsigned top = 0, low = ~0u, unused = 0;
    rlhf__dist_each<CUT ? 1 : 2>(w.r, [&](int32_t, float z) {
        const unsigned k = rlhf__dist_key(z);
        top = k > top ? k : top;
        low = k < low ? k : low;
    });
    rlhf__dist_extremes(s, &top, &low, &unused);
    if (top >= RLHF__DIST_KEY_INF || low <= RLHF__DIST_KEY_LOW) { // the whole block returns
        if (threadIdx.x) return;
        rlhf__fault_raise(a.fault, RLHF__FAULT_SAMPLE_ROW, a.first + row, 0, 0);
        a.id[row] = 0;
        a.logp[row] = __uint_as_float(0x7fc00000u);
        return;
    }
    w.max = rlhf__dist_unkey(top);
    if (a.drawn.greedy) w.greedy_id = lowest_of(s, w.r, top);
    if (CUT) cut_row(s, a, &w, top, low);
    const uint64_t own = row_sums<CUT>(s, a, &w);
    const int32_t drawn = draw(s, a, w, a.counter[row], own);
    if (a.support) put_support(a.support + (uint64_t)row * a.words, w);
    if (drawn < 0) return;
    const float z = w.r.z[drawn];
    const bool scored =
        a.support || rlhf__cut_keeps(w.scored, z, drawn, a.n, rlhf__dist_id_bits(a.n));
    a.id[row] = drawn;
    a.logp[row] =
        scored ? rlhf__dist_logp(z, w.max, a.scored.it, w.log_sum) : -__uint_as_float(0x7f800000u);
}

static rlhf_status sample_read(struct rlhf__cuda *cu, rlhf_lm_sample *a, rlhf_dist dist[2],
                               struct sample_args *k, const rlhf_lm_sample *from) {
    const char *const op = "lm_sample";
    RLHF_TRY(
        rlhf__cuda_copy_in(cu, op, a, sizeof *a, from, RLHF_SIZE_TO(rlhf_lm_sample, host_logp)));
    RLHF_TRY(rlhf__head_dist(cu, op, &dist[0], a->dist, a->vocab, &k->drawn));
    RLHF_TRY(rlhf__head_dist(cu, op, &dist[1], a->logp_dist, a->vocab, &k->scored));
    if ((a->id ? a->support != NULL : a->host_support != NULL) && rlhf__head_cuts(k->scored))
        return rlhf__cuda_fail(cu, RLHF_E_INVALID,
                               "lm_sample: logp_dist's top_k, top_p and min_p must be off when the "
                               "support is requested");
    if (a->id && !(a->counter && a->logp))
        return rlhf__cuda_fail(cu, RLHF_E_INVALID,
                               "lm_sample: %s is NULL; with id set, counter and logp are too",
                               a->counter ? "logp" : "counter");
    RLHF_TRY(rlhf__head_map_read(cu, op, &k->map, a->logit_scale, a->softcap));
    return rlhf__head_weight(cu, op, a->weight, a->d, a->vocab, a->dtype);
}

// The number of rows in a block of logits that fits in the budget.
static uint32_t step_of(const struct rlhf__cuda *cu, const rlhf_weight *w, uint32_t rows) {
    const uint32_t fit = rlhf__head_fit(cu->workspace_bytes, (uint64_t)w->n_pad * sizeof(float));
    return rows < fit ? rows : fit;
}

// Samples all rows. The logits are computed in blocks that fit in the budget.
static rlhf_status sample_all(struct rlhf__cuda *cu, const rlhf_lm_sample *a,
                              const struct sample_args *args) {
    const uint64_t row = (uint64_t)a->weight->n_pad * sizeof(float);
    const uint32_t step = step_of(cu, a->weight, a->rows);
    const dim3 threads(rlhf__dist_threads(a->vocab));
    void *z = NULL;
    RLHF_TRY(rlhf__cuda_workspace(cu, RLHF__CUDA_WS_LOGITS, step * row, &z));
    for (uint32_t first = 0; first < a->rows; first += step) {
        const uint32_t rows = a->rows - first < step ? a->rows - first : step;
        const uint64_t skip = (uint64_t)first * (uint64_t)a->d * rlhf_dtype_size(a->dtype);
        struct sample_args k = *args;
        k.z = (const float *)z;
        k.first = first;
        k.counter += first;
        k.id += first;
        k.logp += first;
        if (k.support) k.support += (uint64_t)first * k.words;
        RLHF_TRY(rlhf__head_logits(cu, (float *)z, rlhf__cuda_mem(rlhf_dev_at(a->hidden, skip)),
                                   a->weight, rows, k.map));
        if (rlhf__head_cuts(k.drawn) || rlhf__head_cuts(k.scored))
            RUN(cu, sample_rows<true>, dim3(rows), threads, 0, k);
        else
            RUN(cu, sample_rows<false>, dim3(rows), threads, 0, k);
    }
    return RLHF_OK;
}

// ---- results on the host ----

// Get pinned host memory of the context, to which results are transferred. The call waits before it
// reads them.
static rlhf_status staging(struct rlhf__cuda *cu, uint64_t bytes, void **out) {
    if (cu->staging.bytes < bytes) {
        if (cu->staging.ptr) cudaFreeHost(cu->staging.ptr);
        cu->staging.ptr = NULL;
        cu->staging.bytes = 0;
        RLHF_TRY(rlhf__cuda_check(cu, "lm_sample: host memory for results",
                                  cudaMallocHost(&cu->staging.ptr, bytes)));
        cu->staging.bytes = bytes;
    }
    *out = cu->staging.ptr;
    return RLHF_OK;
}

// The size in bytes of the rows' supports, and of all arrays on the device.
static uint64_t support_bytes(const rlhf_lm_sample *a) {
    return a->host_support ? (uint64_t)a->rows * rlhf_support_words(a->vocab) * sizeof(uint32_t)
                           : 0;
}

static uint64_t arrays_bytes(const rlhf_lm_sample *a) {
    return a->rows * (sizeof(uint64_t) + 8ull) + support_bytes(a);
}

void rlhf__cuda_needs_sample(struct rlhf__cuda *cu, const rlhf_call *c,
                             struct rlhf__cuda_needs *n) {
    const rlhf_weight w = rlhf__cuda_weight_shape(&c->weight);
    const rlhf_lm_sample *a = c->sample;
    rlhf_lm_sample own;
    if (c->op != RLHF_COMPUTE_OP(lm_sample) || !a || !a->rows) return;
    const uint32_t step = step_of(cu, &w, a->rows);
    rlhf__cuda_need(n, RLHF__CUDA_WS_LOGITS, step * (uint64_t)w.n_pad * sizeof(float));
    rlhf__head_logits_needs(cu, &w, step, n);
    if (rlhf_copy_in(&own, sizeof own, a, RLHF_SIZE_TO(rlhf_lm_sample, host_logp)) == RLHF_OK &&
        !own.id)
        rlhf__cuda_need(n, RLHF__CUDA_WS_ROWS, arrays_bytes(&own));
}

// The arrays on the device are contiguous (counters, ids, log-probs, supports), so one copy in each
// direction is enough.
static rlhf_status sample_to_host(struct rlhf__cuda *cu, const rlhf_lm_sample *a,
                                  struct sample_args *k) {
    const uint64_t rows = a->rows, counters = rows * sizeof(uint64_t), each = rows * 4;
    const uint64_t bits = support_bytes(a);
    void *dev = NULL, *host = NULL;
    RLHF_TRY(rlhf__cuda_workspace(cu, RLHF__CUDA_WS_ROWS, arrays_bytes(a), &dev));
    RLHF_TRY(staging(cu, 2 * each + bits, &host));
    RLHF_TRY(rlhf__cuda_check(
        cu, "lm_sample: counters",
        cudaMemcpyAsync(dev, a->host_counter, counters, cudaMemcpyHostToDevice, cu->stream)));
    char *const out = (char *)dev + counters;
    k->counter = (const uint64_t *)dev;
    k->id = (int32_t *)out;
    k->logp = (float *)(out + each);
    k->support = bits ? (uint32_t *)(out + 2 * each) : NULL;
    RLHF_TRY(sample_all(cu, a, k));
    RLHF_TRY(rlhf__cuda_check(
        cu, "lm_sample: results",
        cudaMemcpyAsync(host, out, 2 * each + bits, cudaMemcpyDeviceToHost, cu->stream)));
    RLHF_TRY(rlhf__cuda_wait(cu));
    memcpy(a->host_id, host, each);
    memcpy(a->host_logp, (char *)host + each, each);
    if (bits) memcpy(a->host_support, (char *)host + 2 * each, bits);
    return RLHF_OK;
}

static rlhf_status lm_sample(void *ctx, const rlhf_lm_sample *from) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    rlhf_lm_sample a;
    rlhf_dist dist[2];
    struct sample_args k = {};
    RLHF_TRY(sample_read(cu, &a, dist, &k, from));
    cu->kept.valid = 0;
    if (!a.rows) return RLHF_OK;
    k.ld = (uint64_t)a.weight->n_pad;
    k.words = rlhf_support_words(a.vocab);
    k.n = a.vocab;
    k.seed = a.seed;
    k.stream = a.stream;
    k.fault = cu->fault;
    if (!a.id) return sample_to_host(cu, &a, &k);
    k.counter = rlhf__cuda_mem<const uint64_t>(a.counter);
    k.id = rlhf__cuda_mem<int32_t>(a.id);
    k.logp = rlhf__cuda_f32(a.logp);
    k.support = rlhf__cuda_mem<uint32_t>(a.support);
    const uint64_t bits = a.support ? (uint64_t)a.rows * k.words * sizeof(uint32_t) : 0;
    rlhf__cuda_wrote(cu, k.id, a.rows * sizeof *k.id);
    rlhf__cuda_wrote(cu, k.logp, a.rows * sizeof *k.logp);
    rlhf__cuda_wrote(cu, k.support, bits);
    RLHF_TRY(sample_all(cu, &a, &k));
    return rlhf__cuda_done(cu);
}

void rlhf__cuda_fill_sample(rlhf_compute *t) { t->lm_sample = lm_sample; }
