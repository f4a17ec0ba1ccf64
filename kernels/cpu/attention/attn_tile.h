// attn_tile.h: the two register-blocked GEMMs of attention, and the packing of keys.
// Included by hot_attn_fwd.c and hot_attn_bwd.c, which are compiled once per instruction-set level
// (vec.h).
//
// The score of a query row and a key does not depend on other rows or keys. For each row, a tile of
// four rows performs the same operations in the same order as a tile of one row. So decoding one
// query at a time and scoring a whole sequence give the same bits.
//
// A unit is 32 bits of a key or query: one f32, or two adjacent bf16.
#ifndef RLHF_CPU_ATTENTION_ATTN_TILE_H
#define RLHF_CPU_ATTENTION_ATTN_TILE_H

#include "machine/any.h"
#include "machine/hot.h"

#include <rlhf/compute.h>

enum {
    TILE_ROWS = 4,
    TILE_VECS = VP_LANES == 16 ? 4 : 1, // vectors per tile row; chosen to fit in the registers
    KEY_BLOCK = TILE_VECS * VF_LANES
};

INLINE size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

// The first key that the query with the keys 0 .. limit-1 up to its own sees.
INLINE size_t first_key(const struct rlhf__attn_item *it, size_t limit) {
    return it->window && limit > it->window ? limit - it->window : 0;
}

// The capped score cap * tanh(s / cap). *bent is the tanh.
INLINE vf capped(vf s, vf cap, vf *bent) {
    *bent = vf_tanh(vf_div(s, cap));
    return vf_mul(cap, *bent);
}

INLINE vf set1_unit(const char *p) {
    float f;
    memcpy(&f, p, sizeof f);
    return vf_set1(f);
}

// Prefetch rows t .. t+n-1 of head g of the item that this thread will probably process next. An
// element has `es` bytes. The rows of a head are short and far apart, so the hardware prefetcher
// does not fetch them.
static inline void fetch_next(const struct rlhf__attn_item *it, size_t g, size_t t, size_t n,
                              size_t es) {
    if (!it->next_q) return;
    size_t bytes = (size_t)it->head_dim * es, qs = (size_t)it->q_stride * es;
    size_t ks = (size_t)it->kv_stride * es, os = (size_t)it->out_stride * es;
    for (size_t r = t; r < t + n; r++)
        for (size_t c = 0; c < bytes; c += 64) {
            size_t at = g * bytes + c;
            __builtin_prefetch((const char *)it->q + it->next_q + r * qs + at, 0, 2);
            if (!g) {
                __builtin_prefetch((const char *)it->k + it->next_kv + r * ks + c, 0, 2);
                __builtin_prefetch((const char *)it->v + it->next_kv + r * ks + c, 0, 2);
            }
            if (!it->dout) continue;
            __builtin_prefetch((const char *)it->dout + it->next_out + r * os + at, 0, 2);
            __builtin_prefetch((const char *)it->out + it->next_out + r * os + at, 0, 2);
        }
}

// Cache lines to prefetch during other work: in each step, `each` lines of k and `each` lines of v.
struct ahead {
    const char *k, *v;
    size_t left, each;
};

INLINE void ahead_step(struct ahead *a) {
    size_t n = a->each < a->left ? a->each : a->left;
    a->left -= n;
    for (; n; n--, a->k += 64, a->v += 64) {
        __builtin_prefetch(a->k, 0, 2);
        __builtin_prefetch(a->v, 0, 2);
    }
}

// The keys of one head in one row. Keys 0 .. na-1 start at `a`, and the later keys start at `b`.
// Keys are `stride` bytes apart.
struct keys {
    const char *a, *b;
    size_t na, stride;
};

INLINE const char *key_at(const struct keys *k, size_t j) {
    return j < k->na ? k->a + j * k->stride : k->b + (j - k->na) * k->stride;
}

// True if some of the keys j .. j+rows-1 are in k->a and some are in k->b.
INLINE int keys_split(const struct keys *k, size_t j, size_t rows) {
    return j < k->na && j + rows > k->na;
}

// Load units u .. u+m-1 of keys j .. j+rows-1, transposed, into r. Lanes past `rows` are 0. If
// `split` is set, the address of each key is looked up, because these keys begin in k->a and end in
// k->b, or because the first `skip` of them must not be read: their lanes are 0. Otherwise the keys
// are adjacent, and src points to key j.
INLINE void load_keys(vf r[VF_LANES], const struct keys *k, const char *src, int split, size_t j,
                      size_t skip, size_t rows, size_t u, size_t m) {
    const size_t stride = k->stride;
    if (rows == VF_LANES && m == VF_LANES && !split)
        for (size_t i = 0; i < VF_LANES; i++)
            r[i] = vf_load((const float *)(const void *)(src + i * stride + u * 4));
    else
        for (size_t i = 0; i < VF_LANES; i++) {
            r[i] = vf_zero();
            if (i >= rows || (split && i < skip)) continue;
            const float *row =
                (const void *)((split ? key_at(k, j + i) : src + i * stride) + u * 4);
            r[i] = m == VF_LANES ? vf_load(row) : vf_load_n(row, m);
        }
    vf_transpose_n(r, rows, m);
}

// Pack keys: dst[block][unit][KEY_BLOCK] is the transpose of keys j0 .. n-1. A key has `units`
// units of 32 bits. Packing works on whole vectors of keys: in the first and the last vector, the
// keys before j0 and after n-1 are zeros. Also issues the prefetches of `ahead`.
static inline void pack_keys(float *dst, const struct keys *k, size_t j0, size_t n, size_t units,
                             struct ahead *ahead) {
    const struct keys keys = *k; // a copy, which the stores below cannot change
    for (size_t j = j0 / VF_LANES * VF_LANES; j < n; j += VF_LANES) {
        const size_t skip = j < j0 ? j0 - j : 0;
        float *block = dst + j / KEY_BLOCK * KEY_BLOCK * units + j % KEY_BLOCK;
        size_t rows = n - j < VF_LANES ? n - j : VF_LANES;
        const char *src = key_at(&keys, j);
        const int split = skip || keys_split(&keys, j, rows);
        for (size_t u = 0; u < units; u += VF_LANES) {
            size_t m = units - u < VF_LANES ? units - u : VF_LANES;
            vf r[VF_LANES];
            load_keys(r, &keys, src, split, j, skip, rows, u, m);
            ahead_step(ahead);
            for (size_t i = 0; i < m; i++)
                vf_store(block + (u + i) * KEY_BLOCK, r[i]);
        }
    }
}

// s[j] = mul * (q . key j) for one query and keys j0 .. n-1, which are read from memory without
// packing. Writes whole vectors. Also issues the prefetches of `ahead`.
INLINE void dots_one(float *s, const char *q, const struct keys *k, size_t j0, size_t n,
                     size_t units, float mul, const int pairs, struct ahead *ahead) {
    const struct keys keys = *k; // a copy, which the stores below cannot change
    for (size_t j = j0 / VF_LANES * VF_LANES; j < n; j += VF_LANES) {
        const size_t skip = j < j0 ? j0 - j : 0;
        size_t rows = n - j < VF_LANES ? n - j : VF_LANES;
        const char *src = key_at(&keys, j);
        const int split = skip || keys_split(&keys, j, rows);
        vf acc = vf_zero();
        const unsigned mode = pairs ? vf_flush_on() : 0;
        if (pairs) VF_PIN(acc);
        for (size_t u = 0; u < units; u += VF_LANES) {
            size_t m = units - u < VF_LANES ? units - u : VF_LANES;
            vf r[VF_LANES];
            load_keys(r, &keys, src, split, j, skip, rows, u, m);
            ahead_step(ahead);
            for (size_t i = 0; i < m; i++) {
                vf qv = set1_unit(q + (u + i) * 4);
                acc = pairs ? vf_dp2(acc, qv, r[i]) : vf_fma(qv, r[i], acc);
            }
        }
        if (pairs) {
            VF_PIN(acc);
            vf_flush_off(mode);
        }
        vf_store(s + j, vf_mul(acc, vf_set1(mul)));
    }
}

// Stops the compiler from moving the sums across a change of the flush mode.
INLINE void pin(vf acc[TILE_ROWS][TILE_VECS], const int nr, const int nv) {
    for (int r = 0; r < nr; r++)
        for (int j = 0; j < nv; j++)
            VF_PIN(acc[r][j]);
}

// s[r][j] = mul * (q row r . key j) for one packed block with nv vectors of keys.
INLINE void dots_tile(float *s, size_t lds, const char *q, size_t q_stride, const float *kt,
                      size_t units, vf mul, const int pairs, const int nr, const int nv) {
    vf acc[TILE_ROWS][TILE_VECS];
    for (int r = 0; r < nr; r++)
        for (int j = 0; j < nv; j++)
            acc[r][j] = vf_zero();
    const unsigned mode = pairs ? vf_flush_on() : 0;
    if (pairs) pin(acc, nr, nv);
    for (size_t u = 0; u < units; u++) {
        vf kv[TILE_VECS];
        for (int j = 0; j < nv; j++)
            kv[j] = vf_load(kt + u * KEY_BLOCK + j * VF_LANES);
        for (int r = 0; r < nr; r++) {
            vf qv = set1_unit(q + (size_t)r * q_stride + u * 4);
            for (int j = 0; j < nv; j++)
                acc[r][j] = pairs ? vf_dp2(acc[r][j], qv, kv[j]) : vf_fma(qv, kv[j], acc[r][j]);
        }
    }
    if (pairs) {
        pin(acc, nr, nv);
        vf_flush_off(mode);
    }
    for (int r = 0; r < nr; r++)
        for (int j = 0; j < nv; j++)
            vf_store(s + (size_t)r * lds + j * VF_LANES, vf_mul(acc[r][j], mul));
}

INLINE void dots_rows(float *s, size_t lds, const char *q, size_t q_stride, const float *kt,
                      size_t n, size_t units, float mul, const int pairs, const int nr) {
    vf m = vf_set1(mul);
    for (size_t j = 0; j < n; j += KEY_BLOCK) {
        const float *block = kt + j * units;
        size_t left = (n - j + VF_LANES - 1) / VF_LANES;
        if (left >= TILE_VECS)
            dots_tile(s + j, lds, q, q_stride, block, units, m, pairs, nr, TILE_VECS);
        else if (left == 3)
            dots_tile(s + j, lds, q, q_stride, block, units, m, pairs, nr, TILE_VECS > 3 ? 3 : 1);
        else if (left == 2)
            dots_tile(s + j, lds, q, q_stride, block, units, m, pairs, nr, TILE_VECS > 2 ? 2 : 1);
        else
            dots_tile(s + j, lds, q, q_stride, block, units, m, pairs, nr, 1);
    }
}

// s[r][j] = mul * (q row r . key j) for nr <= TILE_ROWS rows and keys j0 .. n-1. Writes from the
// start of the block of key j0 to the end of the last vector. q_stride is in bytes.
static inline void dots(float *s, size_t lds, const char *q, size_t q_stride, const float *kt,
                        size_t j0, size_t n, size_t units, float mul, int pairs, size_t nr) {
    const size_t before = j0 / KEY_BLOCK * KEY_BLOCK;
    s += before, kt += before * units, n -= before;
#define DOTS(pairs, nr) dots_rows(s, lds, q, q_stride, kt, n, units, mul, pairs, nr)
    switch (nr) {
    case 4:
        pairs ? DOTS(1, 4) : DOTS(0, 4);
        break;
    case 3:
        pairs ? DOTS(1, 3) : DOTS(0, 3);
        break;
    case 2:
        pairs ? DOTS(1, 2) : DOTS(0, 2);
        break;
    default:
        pairs ? DOTS(1, 1) : DOTS(0, 1);
        break;
    }
#undef DOTS
}

// The weights of a sum over j: row r and index j have the weight w[r * row + j * col].
struct weights {
    const float *w;
    size_t row, col;
};

INLINE void axpys_tile(float *o, size_t ldo, struct weights w, const void *x, const int bf16,
                       size_t ldx, size_t j0, size_t j1, int add, const int nr, const int nv) {
    vf acc[TILE_ROWS][TILE_VECS];
    for (int r = 0; r < nr; r++)
        for (int c = 0; c < nv; c++)
            acc[r][c] = vf_zero();
    if (add)
        for (int r = 0; r < nr; r++)
            for (int c = 0; c < nv; c++)
                acc[r][c] = vf_load(o + (size_t)r * ldo + c * VF_LANES);
    for (size_t j = j0; j < j1; j++) {
        vf xv[TILE_VECS];
        for (int c = 0; c < nv; c++)
            xv[c] = bf16 ? vf_load_bf16((const uint16_t *)x + j * ldx + c * VF_LANES)
                         : vf_load((const float *)x + j * ldx + c * VF_LANES);
        for (int r = 0; r < nr; r++) {
            vf wv = vf_set1(w.w[(size_t)r * w.row + j * w.col]);
            for (int c = 0; c < nv; c++)
                acc[r][c] = vf_fma(wv, xv[c], acc[r][c]);
        }
    }
    for (int r = 0; r < nr; r++)
        for (int c = 0; c < nv; c++)
            vf_store(o + (size_t)r * ldo + c * VF_LANES, acc[r][c]);
}

INLINE void axpys_rows(float *o, size_t ldo, struct weights w, const void *x, const int bf16,
                       size_t ldx, size_t width, size_t j0, size_t j1, int add, const int nr) {
    for (size_t c = 0; c < width; c += TILE_VECS * VF_LANES) {
        const void *xc =
            bf16 ? (const void *)((const uint16_t *)x + c) : (const void *)((const float *)x + c);
        size_t left = (width - c) / VF_LANES;
        if (left >= TILE_VECS)
            axpys_tile(o + c, ldo, w, xc, bf16, ldx, j0, j1, add, nr, TILE_VECS);
        else if (left == 3)
            axpys_tile(o + c, ldo, w, xc, bf16, ldx, j0, j1, add, nr, TILE_VECS > 3 ? 3 : 1);
        else if (left == 2)
            axpys_tile(o + c, ldo, w, xc, bf16, ldx, j0, j1, add, nr, TILE_VECS > 2 ? 2 : 1);
        else
            axpys_tile(o + c, ldo, w, xc, bf16, ldx, j0, j1, add, nr, 1);
    }
}

// For each of nr <= TILE_ROWS rows r, set o[r][0..width) to the sum of weight(r, j) *
// x[j][0..width) over j = j0 .. j1-1, in that order. With `add`, the sum starts with the old
// contents of o. width is a multiple of VF_LANES. x is bf16 or f32, with ldx elements per row.
static inline void axpys(float *o, size_t ldo, struct weights w, const void *x, int bf16,
                         size_t ldx, size_t width, size_t j0, size_t j1, int add, size_t nr) {
#define AXPYS(bf16, nr)  axpys_rows(o, ldo, w, x, bf16, ldx, width, j0, j1, add, nr)
#define AXPYS_EITHER(nr) bf16 ? AXPYS(1, nr) : AXPYS(0, nr)
    switch (nr) {
    case 4:
        AXPYS_EITHER(4);
        break;
    case 3:
        AXPYS_EITHER(3);
        break;
    case 2:
        AXPYS_EITHER(2);
        break;
    default:
        AXPYS_EITHER(1);
        break;
    }
#undef AXPYS_EITHER
#undef AXPYS
}

// Widen n rows of hd elements (bf16 or f32), which are `stride` elements apart, to dst[n][width] in
// f32. Lanes past hd are 0.
static inline void widen_rows(float *dst, size_t width, const void *src, int bf16, size_t stride,
                              size_t n, size_t hd) {
    for (size_t t = 0; t < n; t++)
        for (size_t c = 0; c < width; c += VF_LANES) {
            size_t m = hd - c < VF_LANES ? hd - c : VF_LANES;
            vf v;
            if (bf16) {
                const uint16_t *p = (const uint16_t *)src + t * stride + c;
                v = m == VF_LANES ? vf_load_bf16(p) : vf_load_bf16_n(p, m);
            } else {
                const float *p = (const float *)src + t * stride + c;
                v = m == VF_LANES ? vf_load(p) : vf_load_n(p, m);
            }
            vf_store(dst + t * width + c, v);
        }
}

// The inverse of widen_rows for one row: multiply the f32 row src by mul, and store its hd elements
// in the dtype.
static inline void narrow_row(void *dst, int bf16, const float *src, size_t hd, vf mul) {
    for (size_t c = 0; c < hd; c += VF_LANES) {
        size_t m = hd - c < VF_LANES ? hd - c : VF_LANES;
        vf v = vf_mul(vf_load(src + c), mul);
        if (bf16)
            vf_store_bf16_n((uint16_t *)dst + c, v, m);
        else if (m == VF_LANES)
            vf_store((float *)dst + c, v);
        else
            vf_store_n((float *)dst + c, v, m);
    }
}

#endif
