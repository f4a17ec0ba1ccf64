// hot/attn_fwd.c: attention of one (row, head) pair, or of a run of rows with one query each that
// share a prefix. Level source, see vec.h.
//
// For each query: all scores (keys in order, a lane a key), the maximum, the exponentials and their
// sum over lanes in key order, then the weighted sum of values, a lane a channel, keys in order,
// divided by the sum at the end. A row of scores fits the first cache, so there is no online
// softmax and the arithmetic of a query depends on its keys alone.
#include "attn_tile.h"

#include <math.h>

// s[0..limit) scores -> exponentials, zeros up to the end of the vector. Returns their sum.
static float softmax_row(float *s, size_t limit, float *max) {
    const vf none = vf_set1(-INFINITY);
    size_t last = (limit - 1) / VF_LANES * VF_LANES; // the vector that holds the last key
    vf tail = vf_keep_n(vf_load(s + last), limit - last, none), m = tail;
    for (size_t j = 0; j < last; j += VF_LANES)
        m = vf_max(m, vf_load(s + j));
    *max = vf_hmax(m);
    m = vf_set1(*max);
    vf sum = vf_zero();
    for (size_t j = 0; j < last; j += VF_LANES) {
        vf p = vf_exp(vf_sub(vf_load(s + j), m));
        vf_store(s + j, p);
        sum = vf_add(sum, p);
    }
    tail = vf_exp(vf_sub(tail, m));
    vf_store(s + last, tail);
    return vf_hsum(vf_add(sum, tail));
}

// Values of keys 0 .. na-1 in a, the others in b.
struct values {
    const void *a, *b;
    size_t na, ld, width;
    int bf16;
};

// The values as f32 rows: in place when they are, else in scratch unless a single query reads them
// only once and whole vectors can be widened on the way.
static struct values values_of(const struct rlhf__attn_item *it, float *scratch) {
    size_t hd = (size_t)it->head_dim, width = round_up(hd, VF_LANES), ld = (size_t)it->kv_stride;
    int bf16 = it->dtype == RLHF_BF16, whole = hd == width;
    if (whole && (!bf16 || it->nq < TILE_ROWS))
        return (struct values){it->pv, it->v, it->np, ld, width, bf16};
    widen_rows(scratch, width, it->pv, bf16, ld, it->np, hd);
    widen_rows(scratch + it->np * width, width, it->v, bf16, ld, it->nk - it->np, hd);
    return (struct values){NULL, scratch, 0, width, width, 0};
}

// o[nr][width] (+)= weights * values of keys j0 .. j1-1, all in a or all in b.
static void mix_keys(float *o, const struct values *val, const float *s, size_t lds, size_t j0,
                     size_t j1, size_t nr) {
    const int in_a = j0 < val->na;
    const size_t base = in_a ? 0 : val->na, from = j0 - base, to = j1 - base;
    const void *v = in_a ? val->a : val->b;
    struct weights w = {s + base, lds, 1};
    if (!val->bf16) {
        axpys(o, val->width, w, v, val->ld, val->width, from, to, j0 > 0, nr);
        return;
    }
    if (nr == TILE_ROWS && j0 == 0) {
        axpys_rows(o, val->width, w, v, 1, val->ld, val->width, from, to, 0, TILE_ROWS);
        return;
    }
    for (size_t r = 0; r < nr; r++, w.w += lds) {
        float * or = o + r * val->width;
        if (j0)
            axpys_rows(or, val->width, w, v, 1, val->ld, val->width, from, to, 1, 1);
        else
            axpys_rows(or, val->width, w, v, 1, val->ld, val->width, from, to, 0, 1);
    }
}

// o[nr][width] = sum of weights * values, keys in order; row r sums keys 0 .. limit[r]-1.
static void mix(float *o, const struct values *val, const float *s, size_t lds, const size_t *limit,
                size_t nr) {
    if (val->na) mix_keys(o, val, s, lds, 0, val->na, nr);
    mix_keys(o, val, s, lds, val->na, limit[0], nr);
    for (size_t r = 1; r < nr; r++)
        if (limit[r] > limit[0])
            mix_keys(o + r * val->width, val, s + r * lds, lds, limit[0], limit[r], 1);
}

// Scores of one query and keys j0 .. n-1 as they lie in memory.
static void dots_row(const struct rlhf__attn_item *it, float *s, const char *q,
                     const struct keys *keys, size_t j0, size_t n, struct ahead *ahead) {
    size_t hd = (size_t)it->head_dim;
    if (it->dtype == RLHF_BF16)
        dots_one(s, q, keys, j0, n, hd / 2, it->scale, 1, ahead);
    else
        dots_one(s, q, keys, j0, n, hd, it->scale, 0, ahead);
}

// Scores of queries t .. t+nr-1, softmaxed; sum and max of each.
static void scores(const struct rlhf__attn_item *it, float *s, size_t lds, const float *kt,
                   size_t t, size_t nr, const size_t *limit, struct ahead *ahead, float *sum,
                   float *max) {
    int pairs = it->dtype == RLHF_BF16;
    size_t es = pairs ? 2 : 4, units = (size_t)it->head_dim * es / 4;
    size_t qs = (size_t)it->q_stride * es;
    const char *q = (const char *)it->q + t * qs;
    struct keys keys = {it->pk, it->k, it->np, (size_t)it->kv_stride * es};
    if (kt) dots(s, lds, q, qs, kt, limit[nr - 1], units, it->scale, pairs, nr);
    for (size_t r = 0; r < nr; r++) {
        if (!kt) dots_row(it, s + r * lds, q + r * qs, &keys, 0, limit[r], ahead);
        sum[r] = softmax_row(s + r * lds, limit[r], &max[r]);
    }
}

// Results of query t: sums over keys o, divided by the sum of the weights.
static void put_query(const struct rlhf__attn_item *it, size_t t, const float *o, float sum,
                      float max) {
    int bf16 = it->dtype == RLHF_BF16;
    char *out = (char *)it->out + t * (size_t)it->out_stride * (bf16 ? 2 : 4);
    narrow_row(out, bf16, o, (size_t)it->head_dim, vf_set1(1.0f / sum));
    if (it->lse) it->lse[t * (size_t)it->lse_stride] = max + logf(sum);
}

void RLHF__HOT(attn)(const struct rlhf__attn_item *it) {
    int bf16 = it->dtype == RLHF_BF16, pack = it->nq >= TILE_ROWS;
    size_t es = bf16 ? 2 : 4, hd = (size_t)it->head_dim, units = hd * es / 4;
    size_t lds = round_up(it->nk, KEY_BLOCK), width = round_up(hd, VF_LANES);
    float *kt = it->scratch, *s = kt + lds * units, *o = s + TILE_ROWS * lds;
    size_t steps = round_up(it->nk, VF_LANES) / VF_LANES * (round_up(units, VF_LANES) / VF_LANES);
    struct ahead ahead = {it->ahead_k, it->ahead_v, it->ahead_bytes / 64,
                          it->ahead_bytes / 64 / steps + 1};
    struct keys keys = {it->pk, it->k, it->np, (size_t)it->kv_stride * es};
    if (pack) pack_keys(kt, &keys, 0, it->nk, units);
    struct values val = values_of(it, o + TILE_ROWS * width);
    for (size_t t = 0; t < it->nq; t += TILE_ROWS) {
        size_t nr = it->nq - t < TILE_ROWS ? it->nq - t : TILE_ROWS, limit[TILE_ROWS] = {0};
        float sum[TILE_ROWS], max[TILE_ROWS];
        for (size_t r = 0; r < nr; r++)
            limit[r] = it->causal ? it->start + t + r + 1 : it->nk;
        fetch_next(it, t, nr, es);
        scores(it, s, lds, pack ? kt : NULL, t, nr, limit, &ahead, sum, max);
        mix(o, &val, s, lds, limit, nr);
        for (size_t r = 0; r < nr; r++)
            put_query(it, t + r, o + r * width, sum[r], max[r]);
    }
}

// Queries t .. t+nr-1 of a run. kt holds the prefix as far as whole vectors of it go; the keys from
// there on are read where they lie, as are all values.
static void run_tile(const struct rlhf__attn_run *run, const float *kt, float *s, size_t lds,
                     float *o, size_t t, size_t nr) {
    const struct rlhf__attn_item *it = &run->it;
    int bf16 = it->dtype == RLHF_BF16;
    size_t es = bf16 ? 2 : 4, hd = (size_t)it->head_dim, np = it->np, packed = np / VF_LANES;
    size_t qs = (size_t)it->q_stride * es, ks = (size_t)it->kv_stride * es;
    const char *q = (const char *)it->q + t * qs;
    struct values val = {it->pv, NULL, np, (size_t)it->kv_stride, hd, bf16};
    struct ahead none = {0};
    float sum[TILE_ROWS], max[TILE_ROWS];
    packed *= VF_LANES;
    dots(s, lds, q, qs, kt, packed, hd * es / 4, it->scale, bf16, nr);
    for (size_t r = 0; r < nr; r++) {
        size_t nk = (size_t)run->start[t + r] + 1, own = (size_t)run->base[t + r] * ks;
        struct keys keys = {it->pk, (const char *)it->k + own, np, ks};
        dots_row(it, s + r * lds, q + r * qs, &keys, packed, nk, &none);
        sum[r] = softmax_row(s + r * lds, nk, &max[r]);
    }
    mix_keys(o, &val, s, lds, 0, np, nr);
    for (size_t r = 0; r < nr; r++) {
        val.b = (const char *)it->v + (size_t)run->base[t + r] * ks;
        mix_keys(o + r * hd, &val, s + r * lds, lds, np, (size_t)run->start[t + r] + 1, 1);
        put_query(it, t + r, o + r * hd, sum[r], max[r]);
    }
}

void RLHF__HOT(attn_run)(const struct rlhf__attn_run *run) {
    const struct rlhf__attn_item *it = &run->it;
    size_t es = it->dtype == RLHF_BF16 ? 2 : 4, units = (size_t)it->head_dim * es / 4;
    size_t lds = round_up(it->nk, KEY_BLOCK), ks = (size_t)it->kv_stride * es, np = it->np;
    float *kt = it->scratch, *s = kt + lds * units, *o = s + TILE_ROWS * lds;
    struct keys prefix = {it->pk, NULL, np, ks};
    pack_keys(kt, &prefix, 0, np / VF_LANES * VF_LANES, units);
    for (size_t t = 0; t < it->nq; t += TILE_ROWS) {
        size_t nr = it->nq - t < TILE_ROWS ? it->nq - t : TILE_ROWS;
        run_tile(run, kt, s, lds, o, t, nr);
    }
}
