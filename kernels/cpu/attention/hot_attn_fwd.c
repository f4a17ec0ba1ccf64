// hot_attn_fwd.c: forward attention. One call computes the query heads that read one key
// head, in one row or in a run of rows. The rows of a run share a prefix and have one query each.
// Compiled once per instruction-set level (vec.h).
//
// The steps for each query:
//   - compute all scores, keys in order, one lane per key, and cap them
//   - find their maximum
//   - compute the exponentials, and their sum over lanes in key order
//   - add up the values, weighted with the exponentials, keys in order, one lane per channel
//   - divide the result by the sum of the exponentials
//
// A row of scores fits in the L1 cache, so an online softmax is not needed. The arithmetic of a
// query depends only on its keys.
#include "attn_tile.h"

#include <math.h>
#include <rlhf/exact.h>

// Caps the scores s[from..limit), and others in their vectors.
static void cap_row(float *s, size_t from, size_t limit, float softcap) {
    vf bent, cap = vf_set1(softcap);
    for (size_t j = from / VF_LANES * VF_LANES; j < limit; j += VF_LANES)
        vf_store(s + j, capped(vf_load(s + j), cap, &bent));
}

// Replaces the scores s[from..limit) with exponentials, and writes zeros into the rest of the first
// and of the last vector. Returns the sum of the exponentials.
static float softmax_row(float *s, size_t from, size_t limit, float *max) {
    const vf none = vf_set1(-INFINITY);
    const size_t first = from / VF_LANES * VF_LANES;
    size_t last = (limit - 1) / VF_LANES * VF_LANES; // the vector with the last key
    for (size_t j = first; j < from; j++)
        s[j] = -INFINITY;
    vf tail = vf_keep_n(vf_load(s + last), limit - last, none), m = tail;
    for (size_t j = first; j < last; j += VF_LANES)
        m = vf_max(m, vf_load(s + j));
    *max = vf_hmax(m);
    m = vf_set1(*max);
    vf sum = vf_zero();
    for (size_t j = first; j < last; j += VF_LANES) {
        vf p = vf_exp(vf_sub(vf_load(s + j), m));
        vf_store(s + j, p);
        sum = vf_add(sum, p);
    }
    tail = vf_exp(vf_sub(tail, m));
    vf_store(s + last, tail);
    return vf_hsum(vf_add(sum, tail));
}

// The values of keys 0 .. na-1 are in `a`, and the values of the other keys are in `b`.
struct values {
    const void *a, *b;
    size_t na, ld, width;
    int bf16;
};

// Prepares the values from key `first` on. Rows of values that consist of whole vectors are used in
// place if they are f32, or if they are bf16 and there are fewer than TILE_ROWS queries. (bf16
// values are then widened while they are read.) All other values are copied to scratch as f32 rows.
static struct values values_of(const struct rlhf__attn_item *it, size_t first, float *scratch) {
    size_t hd = (size_t)it->head_dim, width = round_up(hd, VF_LANES), ld = (size_t)it->kv_stride;
    size_t np = it->np, at = first < np ? first : np, own = first - at;
    int bf16 = it->dtype == RLHF_BF16, whole = hd == width;
    size_t row = ld * (bf16 ? 2 : 4);
    if (whole && (!bf16 || it->nq < TILE_ROWS))
        return (struct values){it->pv, it->v, it->np, ld, width, bf16};
    if (at < np)
        widen_rows(scratch + at * width, width, (const char *)it->pv + at * row, bf16, ld, np - at,
                   hd);
    widen_rows(scratch + (np + own) * width, width, (const char *)it->v + own * row, bf16, ld,
               it->nk - np - own, hd);
    return (struct values){NULL, scratch, 0, width, width, 0};
}

// The queries that are processed together: either one head's queries at consecutive tokens, or the
// queries of consecutive heads at one token. Query r sees keys first_of(r) .. limit + r * grow - 1.
struct tile {
    const char *q;
    char *out;
    float *lse;              // may be NULL
    size_t q_step, out_step; // distance from one query to the next, in bytes
    size_t lse_step;         // the same, in floats
    size_t n, limit, grow;   // n <= TILE_ROWS
};

// Compute the sum of weights * values over keys j0 .. j1-1. With `add`, the sum is added to the old
// contents of o[nr][width], otherwise it replaces them. The values of these keys must either all be
// in val->a or all be in val->b.
static void mix_keys(float *o, const struct values *val, const float *s, size_t lds, size_t j0,
                     size_t j1, int add, size_t nr) {
    const int in_a = j0 < val->na;
    const size_t base = in_a ? 0 : val->na;
    axpys(o, val->width, (struct weights){s + base, lds, 1}, in_a ? val->a : val->b, val->bf16,
          val->ld, val->width, j0 - base, j1 - base, add, nr);
}

// The first key that query r of the tile sees.
static size_t first_of(const struct rlhf__attn_item *it, const struct tile *q, size_t r) {
    return first_key(it, q->limit + r * q->grow);
}

// o[nr][width] += sum of weights * values over keys j0 .. j1-1; nothing if j0 >= j1.
static void mix_more(float *o, const struct values *val, const float *s, size_t lds, size_t j0,
                     size_t j1, size_t nr) {
    const size_t cut = j1 < val->na   ? j1
                       : j0 > val->na ? j0
                                      : val->na; // the end of those in val->a
    if (j0 < cut) mix_keys(o, val, s, lds, j0, cut, 1, nr);
    if (cut < j1) mix_keys(o, val, s, lds, cut, j1, 1, nr);
}

// The same as mix() if some queries do not see the first keys. The keys that all queries see are
// added to all sums together. Before them come those that only the first queries see, after them
// those that only the last queries see.
static void mix_window(const struct rlhf__attn_item *it, float *o, const struct values *val,
                       const float *s, size_t lds, const struct tile *q) {
    const size_t all = first_of(it, q, q->n - 1), from = all < q->limit ? all : q->limit;
    memset(o, 0, q->n * val->width * sizeof *o);
    for (size_t r = 0; r < q->n; r++)
        mix_more(o + r * val->width, val, s + r * lds, lds, first_of(it, q, r), from, 1);
    mix_more(o, val, s, lds, from, q->limit, q->n);
    for (size_t r = 1; q->grow && r < q->n; r++) {
        const size_t first = first_of(it, q, r);
        mix_more(o + r * val->width, val, s + r * lds, lds, first < q->limit ? q->limit : first,
                 q->limit + r * q->grow, 1);
    }
}

// o[n][width] = sum of weights * values, keys in order.
static void mix(const struct rlhf__attn_item *it, float *o, const struct values *val,
                const float *s, size_t lds, const struct tile *q) {
    if (first_of(it, q, q->n - 1)) {
        mix_window(it, o, val, s, lds, q);
        return;
    }
    if (val->na) mix_keys(o, val, s, lds, 0, val->na, 0, q->n);
    mix_keys(o, val, s, lds, val->na, q->limit, val->na > 0, q->n);
    for (size_t r = 1; q->grow && r < q->n; r++)
        mix_keys(o + r * val->width, val, s + r * lds, lds, q->limit, q->limit + r * q->grow, 1, 1);
}

// Scores of one query with keys j0 .. n-1, which are read directly from memory.
static void dots_row(const struct rlhf__attn_item *it, float *s, const char *q,
                     const struct keys *keys, size_t j0, size_t n, struct ahead *ahead) {
    size_t hd = (size_t)it->head_dim;
    if (it->dtype == RLHF_BF16)
        dots_one(s, q, keys, j0, n, hd / 2, it->scale, 1, ahead);
    else
        dots_one(s, q, keys, j0, n, hd, it->scale, 0, ahead);
}

// Computes the scores of a tile's queries and replaces them with exponentials. Sets sum[r] to the
// sum of the exponentials of query r, and max[r] to its largest score. kt points to the packed
// keys. If kt is NULL, the keys are read from memory.
static void scores(const struct rlhf__attn_item *it, float *s, size_t lds, const float *kt,
                   const struct tile *q, struct ahead *ahead, float *sum, float *max) {
    int pairs = it->dtype == RLHF_BF16;
    size_t es = pairs ? 2 : 4, units = (size_t)it->head_dim * es / 4;
    struct keys keys = {it->pk, it->k, it->np, (size_t)it->kv_stride * es};
    if (kt)
        dots(s, lds, q->q, q->q_step, kt, first_of(it, q, 0), q->limit + (q->n - 1) * q->grow,
             units, it->scale, pairs, q->n);
    for (size_t r = 0; r < q->n; r++) {
        size_t limit = q->limit + r * q->grow, first = first_of(it, q, r);
        if (!kt) dots_row(it, s + r * lds, q->q + r * q->q_step, &keys, first, limit, ahead);
        if (it->softcap > 0.0f) cap_row(s + r * lds, first, limit, it->softcap);
        sum[r] = softmax_row(s + r * lds, first, limit, &max[r]);
    }
}

// Store the result of query r: the weighted sum o, divided by the sum of the weights.
static void put_query(const struct rlhf__attn_item *it, const struct tile *q, size_t r,
                      const float *o, float sum, float max) {
    narrow_row(q->out + r * q->out_step, it->dtype == RLHF_BF16, o, (size_t)it->head_dim,
               vf_set1(1.0f / sum));
    if (q->lse) q->lse[r * q->lse_step] = max + rlhf_log_f32(sum);
}

// Working memory of an item's tiles: packed keys (or NULL), scores, and sums over keys.
struct work {
    float *kt, *s, *o;
    size_t lds;
};

static void do_tile(const struct rlhf__attn_item *it, const struct work *w,
                    const struct values *val, const struct tile *q, struct ahead *ahead) {
    float sum[TILE_ROWS], max[TILE_ROWS];
    scores(it, w->s, w->lds, w->kt, q, ahead, sum, max);
    mix(it, w->o, val, w->s, w->lds, q);
    for (size_t r = 0; r < q->n; r++)
        put_query(it, q, r, w->o + r * val->width, sum[r], max[r]);
}

// The first query of a tile: head g at token t.
static struct tile tile_at(const struct rlhf__attn_item *it, size_t g, size_t t) {
    size_t es = it->dtype == RLHF_BF16 ? 2 : 4, head = g * (size_t)it->head_dim * es;
    return (struct tile){
        .q = (const char *)it->q + t * (size_t)it->q_stride * es + head,
        .out = (char *)it->out + t * (size_t)it->out_stride * es + head,
        .lse = it->lse ? it->lse + t * (size_t)it->lse_stride + g : NULL,
    };
}

// Processes queries of head g, in tiles of consecutive tokens.
static void tokens_of(const struct rlhf__attn_item *it, const struct work *w,
                      const struct values *val, size_t g, struct ahead *ahead) {
    size_t es = it->dtype == RLHF_BF16 ? 2 : 4;
    for (size_t t = 0; t < it->nq; t += TILE_ROWS) {
        struct tile q = tile_at(it, g, t);
        q.q_step = (size_t)it->q_stride * es;
        q.out_step = (size_t)it->out_stride * es;
        q.lse_step = (size_t)it->lse_stride;
        q.n = it->nq - t < TILE_ROWS ? it->nq - t : TILE_ROWS;
        q.limit = it->causal ? it->start + t + 1 : it->nk;
        q.grow = it->causal != 0;
        fetch_next(it, g, t, q.n, es);
        do_tile(it, w, val, &q, ahead);
    }
}

// Processes the queries of token t. A tile has consecutive heads, and all tiles have nearly the
// same size.
static void heads_of(const struct rlhf__attn_item *it, const struct work *w,
                     const struct values *val, size_t t, size_t limit) {
    size_t group = (size_t)it->group, tiles = (group + TILE_ROWS - 1) / TILE_ROWS;
    struct ahead none = {0};
    for (size_t g = 0; tiles; tiles--) {
        struct tile q = tile_at(it, g, t);
        q.q_step = q.out_step = (size_t)it->head_dim * (it->dtype == RLHF_BF16 ? 2 : 4);
        q.lse_step = 1;
        q.n = (group - g + tiles - 1) / tiles;
        q.limit = limit;
        do_tile(it, w, val, &q, &none);
        g += q.n;
    }
}

// Divides the scratch memory of an item with nk keys.
static struct work work_of(const struct rlhf__attn_item *it) {
    size_t units = (size_t)it->head_dim * (it->dtype == RLHF_BF16 ? 2 : 4) / 4;
    size_t lds = round_up(it->nk, KEY_BLOCK);
    float *kt = it->scratch, *s = kt + lds * units;
    return (struct work){kt, s, s + TILE_ROWS * lds, lds};
}

void RLHF__HOT(attn)(const struct rlhf__attn_item *it) {
    size_t es = it->dtype == RLHF_BF16 ? 2 : 4, units = (size_t)it->head_dim * es / 4;
    size_t width = round_up((size_t)it->head_dim, VF_LANES);
    struct work w = work_of(it);
    size_t steps = round_up(it->nk, VF_LANES) / VF_LANES * (round_up(units, VF_LANES) / VF_LANES);
    struct ahead ahead = {it->ahead_k, it->ahead_v, it->ahead_bytes / 64,
                          it->ahead_bytes / 64 / steps + 1};
    struct keys keys = {it->pk, it->k, it->np, (size_t)it->kv_stride * es};
    const size_t first = it->causal ? first_key(it, it->start + 1) : 0;
    struct values val = values_of(it, first, w.o + TILE_ROWS * width);
    if (it->group > 1 || it->nq >= TILE_ROWS)
        pack_keys(w.kt, &keys, first, it->nk, units, &ahead);
    else
        w.kt = NULL;
    if (it->nq >= TILE_ROWS || it->group == 1)
        for (size_t g = 0; g < (size_t)it->group; g++)
            tokens_of(it, &w, &val, g, &ahead);
    else
        for (size_t t = 0; t < it->nq; t++)
            heads_of(it, &w, &val, t, it->causal ? it->start + t + 1 : it->nk);
}

// Process queries t .. t+n-1 of a run for one head. w->kt holds the packed keys of the
// prefix, up to the last whole vector of keys. The other keys and all values are read from memory.
static void run_tile(const struct rlhf__attn_run *run, const struct work *w, struct values val,
                     size_t t, size_t n) {
    const struct rlhf__attn_item *it = &run->it;
    int bf16 = it->dtype == RLHF_BF16;
    size_t es = bf16 ? 2 : 4, hd = (size_t)it->head_dim, np = it->np;
    size_t packed = np / VF_LANES * VF_LANES, ks = (size_t)it->kv_stride * es;
    struct tile q = tile_at(it, 0, t);
    struct ahead none = {0};
    float sum[TILE_ROWS], max[TILE_ROWS];
    q.q_step = (size_t)it->q_stride * es;
    q.out_step = (size_t)it->out_stride * es;
    q.lse_step = (size_t)it->lse_stride;
    dots(w->s, w->lds, q.q, q.q_step, w->kt, 0, packed, hd * es / 4, it->scale, bf16, n);
    for (size_t r = 0; r < n; r++) {
        size_t nk = (size_t)run->start[t + r] + 1, own = (size_t)run->base[t + r] * ks;
        struct keys keys = {it->pk, (const char *)it->k + own, np, ks};
        dots_row(it, w->s + r * w->lds, q.q + r * q.q_step, &keys, packed, nk, &none);
        if (it->softcap > 0.0f) cap_row(w->s + r * w->lds, 0, nk, it->softcap);
        sum[r] = softmax_row(w->s + r * w->lds, 0, nk, &max[r]);
    }
    mix_keys(w->o, &val, w->s, w->lds, 0, np, 0, n);
    for (size_t r = 0; r < n; r++) {
        val.b = (const char *)it->v + (size_t)run->base[t + r] * ks;
        mix_keys(w->o + r * hd, &val, w->s + r * w->lds, w->lds, np, (size_t)run->start[t + r] + 1,
                 1, 1);
        put_query(it, &q, r, w->o + r * hd, sum[r], max[r]);
    }
}

// Processes row t of a run, for all heads of the group (at least two). The row's own keys are
// packed after the keys of the prefix.
static void run_heads(const struct rlhf__attn_run *run, const struct work *w, struct values val,
                      size_t t) {
    const struct rlhf__attn_item *it = &run->it;
    size_t es = it->dtype == RLHF_BF16 ? 2 : 4, ks = (size_t)it->kv_stride * es;
    size_t own = (size_t)run->base[t] * ks, np = it->np, nk = (size_t)run->start[t] + 1;
    struct keys keys = {it->pk, (const char *)it->k + own, np, ks};
    struct ahead none = {0};
    pack_keys(w->kt, &keys, np / VF_LANES * VF_LANES, nk, (size_t)it->head_dim * es / 4, &none);
    val.b = (const char *)it->v + own;
    heads_of(it, w, &val, t, nk);
}

void RLHF__HOT(attn_run)(const struct rlhf__attn_run *run) {
    const struct rlhf__attn_item *it = &run->it;
    size_t es = it->dtype == RLHF_BF16 ? 2 : 4, np = it->np, hd = (size_t)it->head_dim;
    struct work w = work_of(it);
    struct keys prefix = {it->pk, NULL, np, (size_t)it->kv_stride * es};
    struct values val = {it->pv, NULL, np, (size_t)it->kv_stride, hd, es == 2};
    struct ahead none = {0};
    pack_keys(w.kt, &prefix, 0, np / VF_LANES * VF_LANES, hd * es / 4, &none);
    for (size_t t = 0; it->group == 1 && t < it->nq; t += TILE_ROWS)
        run_tile(run, &w, val, t, it->nq - t < TILE_ROWS ? it->nq - t : TILE_ROWS);
    for (size_t t = 0; it->group > 1 && t < it->nq; t++)
        run_heads(run, &w, val, t);
}
