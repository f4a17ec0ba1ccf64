// hot_attn_bwd.c: backward attention for one row and the query heads that read one key
// head. Compiled once per instruction-set level (vec.h).
//
// With P = exp(cap(scale q k') - lse) and D = sum(dout * out) per query:
//   dP = dout v';  dS = scale P (dP - D) cap';  dq = dS k;  dk = dS' q;  dv = P' dout.
// cap is the softcap (rlhf_attn) and cap' its derivative, or without one the identity and 1.
// Each head's queries are processed in chunks of QUERY_CHUNK. The P and dS of a chunk are stored.
// Then the contributions of the chunk's queries to each key are added, in the order of the queries.
// All sums are f32. The packed keys and the sums of a shared prefix stay in scratch from row to row
// (see hot.h).
#include "attn_tile.h"

enum { QUERY_CHUNK = 64 };

// The layout of an item's scratch memory. It depends on `room`, the number of keys for which there
// is space. All rows that share a prefix have the same `room`, so a row finds the data that the
// previous row left in scratch.
struct bwd {
    const struct rlhf__attn_item *it;
    size_t es, hd, units, width, lds;
    size_t head; // byte offset of the current query head
    const float *lse;
    float *kt, *vt;     // packed keys and values
    float *k, *dk, *dv; // f32 [nk, width]
    float *q, *dout;    // f32 [QUERY_CHUNK, width]
    float *p, *ds;      // [QUERY_CHUNK, lds]
    float *dq;          // [TILE_ROWS, width]
};

static struct bwd layout(const struct rlhf__attn_item *it) {
    struct bwd b = {.it = it, .es = it->dtype == RLHF_BF16 ? 2 : 4, .hd = (size_t)it->head_dim};
    b.units = b.hd * b.es / 4;
    b.width = round_up(b.hd, VF_LANES);
    b.lds = round_up(it->room, KEY_BLOCK);
    float *next = it->scratch;
    b.kt = next, next += b.lds * b.units;
    b.vt = next, next += b.lds * b.units;
    b.k = next, next += it->room * b.width;
    b.dk = next, next += it->room * b.width;
    b.dv = next, next += it->room * b.width;
    b.q = next, next += QUERY_CHUNK * b.width;
    b.dout = next, next += QUERY_CHUNK * b.width;
    b.p = next, next += QUERY_CHUNK * b.lds;
    b.ds = next, next += QUERY_CHUNK * b.lds;
    b.dq = next;
    return b;
}

// D of query t: sum over channels of dout * out, one lane per channel.
static float dout_dot_out(const struct bwd *b, const float *dout, size_t t) {
    const char *o = (const char *)b->it->out + t * (size_t)b->it->out_stride * b->es + b->head;
    vf s = vf_zero();
    for (size_t c = 0; c < b->hd; c += VF_LANES) {
        size_t m = b->hd - c < VF_LANES ? b->hd - c : VF_LANES;
        vf ov = b->es == 2 ? vf_load_bf16_n((const uint16_t *)(const void *)o + c, m)
                           : vf_load_n((const float *)(const void *)o + c, m);
        s = vf_fma(vf_load(dout + c), ov, s);
    }
    return vf_hsum(s);
}

// Turn the scores and dP of keys j0 .. limit-1 of one query into P and dS. j0 is a multiple of
// VF_LANES. P and dS are set to 0 in the rest of the vector of key limit-1.
INLINE void softmax_bwd_keys(const struct rlhf__attn_item *it, float *p, float *ds, size_t j0,
                             size_t limit, float lse, float d, const int cap) {
    const vf l = vf_set1(lse), dv = vf_set1(d), sc = vf_set1(it->scale), c = vf_set1(it->softcap);
    for (size_t j = j0; j < limit; j += VF_LANES) {
        size_t m = limit - j < VF_LANES ? limit - j : VF_LANES;
        vf s = vf_load(p + j), bent = vf_zero();
        if (cap) s = capped(s, c, &bent);
        vf e = vf_keep_n(vf_exp(vf_sub(s, l)), m, vf_zero());
        vf g = vf_mul(vf_mul(e, sc), vf_sub(vf_load(ds + j), dv));
        if (cap) g = vf_mul(g, vf_fnma(bent, bent, vf_set1(1.0f)));
        vf_store(p + j, e);
        vf_store(ds + j, vf_keep_n(g, m, vf_zero()));
    }
}

// Turn the scores and dP of one query into P and dS. The query sees keys first .. limit-1. Around
// these keys, P is set to 0 in the rest of the vectors of key `first` and key limit-1, and dS is
// set to 0 from key `from` to key last-1.
static void softmax_bwd_row(const struct rlhf__attn_item *it, float *p, float *ds, size_t from,
                            size_t first, size_t limit, size_t last, float lse, float d) {
    const size_t begin = first / VF_LANES * VF_LANES;
    if (it->softcap > 0.0f)
        softmax_bwd_keys(it, p, ds, begin, limit, lse, d, 1);
    else
        softmax_bwd_keys(it, p, ds, begin, limit, lse, d, 0);
    for (size_t j = from / VF_LANES * VF_LANES; j < begin; j += VF_LANES)
        vf_store(ds + j, vf_zero());
    for (size_t j = begin; j < first; j++)
        p[j] = ds[j] = 0.0f;
    for (size_t j = round_up(limit, VF_LANES); j < last; j += VF_LANES)
        vf_store(ds + j, vf_zero());
}

// Computes P, dS and dq of queries t .. t+nr-1. row0 is the index of query t in the chunk.
static void query_rows(const struct bwd *b, size_t t, size_t row0, size_t nr) {
    const struct rlhf__attn_item *it = b->it;
    size_t qs = (size_t)it->q_stride * b->es, os = (size_t)it->out_stride * b->es;
    size_t last = it->causal ? it->start + t + nr : it->nk;
    size_t from = it->causal ? first_key(it, it->start + t + 1) : 0;
    float *p = b->p + row0 * b->lds, *ds = b->ds + row0 * b->lds;
    int pairs = b->es == 2;
    dots(p, b->lds, (const char *)it->q + t * qs + b->head, qs, b->kt, from, last, b->units,
         it->scale, pairs, nr);
    dots(ds, b->lds, (const char *)it->dout + t * os + b->head, os, b->vt, from, last, b->units,
         1.0f, pairs, nr);
    for (size_t r = 0; r < nr; r++) {
        float d = dout_dot_out(b, b->dout + (row0 + r) * b->width, t + r);
        size_t limit = it->causal ? it->start + t + r + 1 : it->nk;
        softmax_bwd_row(it, p + r * b->lds, ds + r * b->lds, from, first_key(it, limit), limit,
                        last, b->lse[(t + r) * (size_t)it->lse_stride], d);
    }
    axpys(b->dq, b->width, (struct weights){ds, b->lds, 1}, b->k, 0, b->width, b->width, from, last,
          0, nr);
    for (size_t r = 0; r < nr; r++)
        narrow_row((char *)it->dq + (t + r) * qs + b->head, pairs, b->dq + r * b->width, b->hd,
                   vf_set1(1.0f));
}

// For every key that a query of the chunk q0 .. q0+nq-1 sees, add the chunk's contribution to dk
// and dv. Keys are processed in tiles of TILE_ROWS, and a query may see only a part of a tile. For
// the other keys of that tile, P and dS are 0: softmax_bwd_row has set them to 0 in the vectors of
// the first and the last key that the query sees. No tile extends past these vectors, because
// TILE_ROWS divides VF_LANES.
static void key_rows(const struct bwd *b, size_t q0, size_t nq) {
    const struct rlhf__attn_item *it = b->it;
    size_t first = it->start + q0, keys = it->causal ? first + nq : it->nk;
    size_t seen = it->causal ? first_key(it, first + 1) / TILE_ROWS * TILE_ROWS : 0;
    for (size_t j = seen; j < keys; j += TILE_ROWS) {
        size_t nr = keys - j < TILE_ROWS ? keys - j : TILE_ROWS;
        size_t from = it->causal && j > first ? j - first : 0, to = nq;
        if (it->window && j + nr - 1 + it->window < first + nq)
            to = j + nr - 1 + it->window - first;
        axpys(b->dk + j * b->width, b->width, (struct weights){b->ds + j, 1, b->lds}, b->q, 0,
              b->width, b->width, from, to, 1, nr);
        axpys(b->dv + j * b->width, b->width, (struct weights){b->p + j, 1, b->lds}, b->dout, 0,
              b->width, b->width, from, to, 1, nr);
    }
}

// Pack the keys and values after the prefix, widen these keys, and set the sums of their dk and dv
// to 0. Packing works on whole vectors of keys. If the prefix ends inside a vector, its keys in
// that vector are packed again.
static void take_keys(const struct bwd *b) {
    const struct rlhf__attn_item *it = b->it;
    size_t np = it->np, own = it->nk - np, ks = (size_t)it->kv_stride;
    struct keys k = {it->pk, it->k, np, ks * b->es}, v = {it->pv, it->v, np, ks * b->es};
    struct ahead none = {0};
    pack_keys(b->kt, &k, np / VF_LANES * VF_LANES, it->nk, b->units, &none);
    pack_keys(b->vt, &v, np / VF_LANES * VF_LANES, it->nk, b->units, &none);
    widen_rows(b->k + np * b->width, b->width, it->k, b->es == 2, ks, own, b->hd);
    memset(b->dk + np * b->width, 0, own * b->width * sizeof *b->dk);
    memset(b->dv + np * b->width, 0, own * b->width * sizeof *b->dv);
}

// Stores the sums of n keys, starting at key j.
static void put_keys(const struct bwd *b, char *dk, char *dv, size_t j, size_t n) {
    const float *k = b->dk + j * b->width, *v = b->dv + j * b->width;
    size_t row = (size_t)b->it->kv_stride * b->es;
    for (size_t i = 0; i < n; i++) {
        narrow_row(dk + i * row, b->es == 2, k + i * b->width, b->hd, vf_set1(1.0f));
        narrow_row(dv + i * row, b->es == 2, v + i * b->width, b->hd, vf_set1(1.0f));
    }
}

// Processes the queries of head g.
static void head_rows(struct bwd *b, size_t g) {
    const struct rlhf__attn_item *it = b->it;
    size_t qs = (size_t)it->q_stride, os = (size_t)it->out_stride;
    int bf16 = b->es == 2;
    b->head = g * b->hd * b->es;
    b->lse = it->lse + g;
    for (size_t t = 0; t < it->nq; t += QUERY_CHUNK) {
        size_t nq = it->nq - t < QUERY_CHUNK ? it->nq - t : QUERY_CHUNK;
        widen_rows(b->q, b->width, (const char *)it->q + t * qs * b->es + b->head, bf16, qs, nq,
                   b->hd);
        widen_rows(b->dout, b->width, (const char *)it->dout + t * os * b->es + b->head, bf16, os,
                   nq, b->hd);
        for (size_t r = 0; r < nq; r += TILE_ROWS) {
            size_t nr = nq - r < TILE_ROWS ? nq - r : TILE_ROWS;
            fetch_next(it, g, t + r, nr, b->es);
            query_rows(b, t + r, r, nr);
        }
        key_rows(b, t, nq);
    }
}

void RLHF__HOT(attn_bwd)(const struct rlhf__attn_item *it) {
    struct bwd b = layout(it);
    take_keys(&b);
    for (size_t g = 0; g < (size_t)it->group; g++)
        head_rows(&b, g);
    if (!it->sum_on) put_keys(&b, it->dk, it->dv, it->np, it->nk - it->np);
    if (it->sum_out) put_keys(&b, it->pdk, it->pdv, 0, it->np);
}
