// hot_amx_tile.c: the GEMM loops of amx.h. Of the eight tile registers, four hold sums (32
// rows by 32 columns), two hold A and two hold B.
#include "amx.h"
#include "bf16.h"
#include "machine/vec.h"

#define NC    ((size_t)RLHF__BF16_NC)
#define STEP  ((size_t)RLHF__AMX_K)
#define HALF  ((size_t)16) // rows or columns of one tile
#define BYTES ((size_t)64) // per tile row
#define TILE  (16 * 64)    // bytes per tile

#define INLINE static inline __attribute__((always_inline))

// GCC 12 does not know that tile loads read memory. STORED() makes it complete all stores that come
// before the loads.
#define STORED() __asm__ volatile("" ::: "memory")

struct shapes {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

// Tiles 0 to 3 are sums, 4 and 5 are A, 6 and 7 are B. `top` and `bottom` are the numbers of rows
// of A's two tiles.
static void configure(size_t top, size_t bottom) {
    struct shapes s __attribute__((aligned(64))) = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        s.row_bytes[i] = (uint16_t)BYTES;
        s.rows[i] = 16;
    }
    s.rows[0] = s.rows[1] = s.rows[4] = (uint8_t)top;
    s.rows[2] = s.rows[3] = s.rows[5] = (uint8_t)(bottom ? bottom : 16);
    STORED();
    _tile_loadconfig(&s);
}

void rlhf__amx_begin(void) { configure(HALF, HALF); }

void rlhf__amx_end(void) { _tile_release(); }

#ifdef RLHF_SANITIZED // because the sanitizer does not see tile loads
INLINE void see(char *to, const char *from, size_t stride, size_t rows) {
    for (size_t r = 0; r < rows; r++)
        memcpy(to + r * BYTES, from + r * stride, BYTES);
    STORED();
}
#define LOAD(tile, p, stride, rows)                                                                \
    do {                                                                                           \
        char seen[TILE] __attribute__((aligned(64)));                                              \
        see(seen, (const char *)(p), stride, rows);                                                \
        _tile_loadd(tile, seen, BYTES);                                                            \
    } while (0)
#define LOAD_A(tile, p, stride, rows, once) LOAD(tile, p, stride, rows)
#else
#define LOAD(tile, p, stride, rows) _tile_loadd(tile, p, stride)
#define LOAD_A(tile, p, stride, rows, once)                                                        \
    do {                                                                                           \
        if (once)                                                                                  \
            _tile_stream_loadd(tile, p, stride);                                                   \
        else                                                                                       \
            _tile_loadd(tile, p, stride);                                                          \
    } while (0)
#endif

// Store up to 16 columns of one row of sums. At the right edge, the vector may be partial.
INLINE void store(const struct rlhf__panel *p, size_t row, size_t col, vf v) {
    const size_t left = p->columns > col ? p->columns - col : 0;
    const size_t n = left < VF_LANES ? left : VF_LANES, at = row * p->ldc + col;
    if (n == 0) return;
    if (p->bias) v = vf_add(v, n < VF_LANES ? vf_load_n(p->bias + col, n) : vf_load(p->bias + col));
    if (p->c_bf16) {
        if (p->addend) v = vf_add(vf_load(p->addend + row * NC + col), v);
        vf_store_bf16_n((uint16_t *)p->c + at, v, n);
        return;
    }
    float *c = (float *)p->c + at;
    const float *from = p->from ? p->from + at : c;
    if (n == VF_LANES) {
        vf_store(c, p->accumulate ? vf_add(vf_load(from), v) : v);
        return;
    }
    if (p->accumulate) v = vf_add(vf_load_n(from, n), v);
    vf_store_n(c, v, n);
}

// Stores all 32 columns of a row to C, like two calls of store().
INLINE void store_whole(const struct rlhf__panel *p, size_t row, vf left, vf right) {
    const size_t at = row * p->ldc;
    if (p->bias) {
        left = vf_add(left, vf_load(p->bias));
        right = vf_add(right, vf_load(p->bias + HALF));
    }
    if (p->c_bf16) {
        if (p->addend) {
            left = vf_add(vf_load(p->addend + row * NC), left);
            right = vf_add(vf_load(p->addend + row * NC + HALF), right);
        }
        _mm512_storeu_si512((uint16_t *)p->c + at, (__m512i)_mm512_cvtne2ps_pbh(right, left));
        return;
    }
    float *c = (float *)p->c + at;
    const float *from = p->from ? p->from + at : c;
    if (p->accumulate) {
        left = vf_add(vf_load(from), left);
        right = vf_add(vf_load(from + HALF), right);
    }
    vf_store(c, left);
    vf_store(c + HALF, right);
}

// The addresses of the rows of A's tiles, and the distance from one step of k to the next.
struct operand {
    const char *top, *bottom;
    size_t stride, step;
};

static struct operand operand_at(const struct rlhf__panel *p, size_t row) {
    if (p->a_packed) {
        const size_t half = (p->k + STEP - 1) / STEP * (size_t)TILE; // 16 rows
        const char *a = (const char *)p->a + row / HALF * half;
        return (struct operand){a, a + half, BYTES, TILE};
    }
    const char *a = (const char *)p->a + row * p->a_stride * 2;
    return (struct operand){a, a + HALF * p->a_stride * 2, p->a_stride * 2, BYTES};
}

// The last, partial step of k, padded with zeros. (A packed A is already padded.)
struct tail {
    char a[2][TILE], b[2][TILE];
};

static void tail_fill(struct tail *t, const struct rlhf__panel *p, const struct operand *o,
                      const size_t rows[2], size_t from, size_t left) {
    const uint32_t *b = p->b + from / 2 * NC;
    memset(t, 0, sizeof *t);
    for (size_t i = 0; i < (left + 1) / 2; i++, b += NC) {
        memcpy(t->b[0] + i * BYTES, b, BYTES);
        memcpy(t->b[1] + i * BYTES, b + HALF, BYTES);
    }
    const size_t bytes = p->a_packed ? BYTES : left * 2;
    for (size_t r = 0; r < rows[0]; r++)
        memcpy(t->a[0] + r * BYTES, o->top + r * o->stride, bytes);
    for (size_t r = 0; r < rows[1]; r++)
        memcpy(t->a[1] + r * BYTES, o->bottom + r * o->stride, bytes);
}

// Loads from C the sums that this panel continues, in the order of the tiles.
INLINE void start(const struct rlhf__panel *p, size_t row, const size_t rows[2],
                  float sums[4][16 * 16]) {
    memset(sums, 0, 4 * sizeof sums[0]);
    for (size_t i = 0; i < 4; i++) {
        const size_t col = i % 2 * HALF, left = p->columns > col ? p->columns - col : 0;
        const float *c = (const float *)p->c + (row + i / 2 * HALF) * p->ldc + col;
        for (size_t r = 0; left && r < rows[i / 2]; r++)
            vf_store(sums[i] + r * HALF, vf_load_n(c + r * p->ldc, left < HALF ? left : HALF));
    }
    STORED();
}

// The prefetches of a tile, spread over the steps of k, so that no single step waits for all of
// them.
struct ahead {
    const char *b, *b_end; // words of the next panel, which go to the L2 cache
    size_t b_lines;        // per step
    const char *c;         // the rows of C that are written or continued next
    size_t c_stride, c_rows, c_step;
};

INLINE void fetch(struct ahead *f) {
    for (size_t i = 0; i < f->b_lines && f->b < f->b_end; i++, f->b += BYTES)
        _mm_prefetch(f->b, _MM_HINT_T1);
    for (size_t i = 0; i < f->c_step && f->c_rows; i++, f->c_rows--, f->c += f->c_stride) {
        __builtin_prefetch(f->c, 1, 3); // with -mprfchw: prefetch for a write
        __builtin_prefetch(f->c + BYTES, 1, 3);
    }
}

// Choose the rows of C to prefetch. Without `goes_on`, these are the rows of this tile. With
// `goes_on`, this tile's rows have just been read, so the rows of the next tile below are
// prefetched. pieces() does not prefetch rows of C, because its other loads would evict them.
INLINE void fetch_c(struct ahead *f, const struct rlhf__panel *p, size_t row, size_t steps) {
    const size_t first = p->goes_on ? row + 2 * HALF : row;
    f->c_stride = p->ldc * (p->c_bf16 ? 2 : 4);
    f->c = (const char *)p->c + first * f->c_stride;
    f->c_rows = p->m > first ? p->m - first : 0;
    if (f->c_rows > 2 * HALF) f->c_rows = 2 * HALF;
    f->c_step = steps ? (2 * HALF + steps - 1) / steps : 0;
}

// With a packed A, up to PIECE_TILES tiles take turns: in each turn, a tile computes at most
// PIECE_STEPS steps of k. The part of B for these steps, 32 KiB, stays in the L1 cache until all of
// these tiles have used it. A is loaded with a non-temporal hint, so it takes little of that cache.
// Between its turns, a tile keeps its sums in memory.
#define PIECE_STEPS ((size_t)16)
#define PIECE_TILES ((size_t)8)

// The sums of a tile, in tile order.
typedef float tile_sums[4][16 * 16];

struct piece {
    size_t from, to; // the steps of k; the last piece also has the partial step
    int first, last;
    tile_sums *sums;
};

INLINE void sums_load(tile_sums *s, const int two) {
    _tile_loadd(0, (*s)[0], BYTES);
    _tile_loadd(1, (*s)[1], BYTES);
    if (two) {
        _tile_loadd(2, (*s)[2], BYTES);
        _tile_loadd(3, (*s)[3], BYTES);
    }
}

INLINE void sums_zero(const int two) {
    _tile_zero(0);
    _tile_zero(1);
    if (two) {
        _tile_zero(2);
        _tile_zero(3);
    }
}

INLINE void sums_store(tile_sums *s, const int two) {
    _tile_stored(0, (*s)[0], BYTES);
    _tile_stored(1, (*s)[1], BYTES);
    if (two) {
        _tile_stored(2, (*s)[2], BYTES);
        _tile_stored(3, (*s)[3], BYTES);
    }
}

// Adds the partial last step of k.
INLINE void add_tail(const struct rlhf__panel *p, const struct operand *o, const size_t rows[2],
                     const int two) {
    const size_t left = p->k % STEP;
    struct tail t;
    tail_fill(&t, p, o, rows, p->k - left, left);
    STORED();
    _tile_loadd(4, t.a[0], BYTES);
    _tile_loadd(6, t.b[0], BYTES);
    _tile_loadd(7, t.b[1], BYTES);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if (two) {
        _tile_loadd(5, t.a[1], BYTES);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
}

// Stores the sums to C.
INLINE void finish(const struct rlhf__panel *p, size_t row, const size_t rows[2], tile_sums *s) {
    for (size_t h = 0; h < 2; h++)
        for (size_t r = 0; r < rows[h]; r++) {
            const size_t at = row + h * HALF + r;
            const vf v = vf_load((*s)[2 * h] + r * HALF), w = vf_load((*s)[2 * h + 1] + r * HALF);
            if (p->columns == NC) {
                store_whole(p, at, v, w);
            } else {
                store(p, at, 0, v);
                store(p, at, HALF, w);
            }
        }
}

// Compute one tile: the rows[0] rows that start at `row` and, if `two` is set, the rows[1] rows
// that start at `row` + 16. If `once` is set, A is loaded with a hint not to keep it in the L1
// cache. `two` and `once` are constants after inlining.
INLINE void tile(const struct rlhf__panel *p, size_t row, const size_t rows[2], const int two,
                 const int once, const struct piece *part, struct ahead *f) {
    struct operand o = operand_at(p, row);
    const size_t b_row = NC * 4;
    const char *b = (const char *)p->b + part->from * HALF * b_row;
    o.top += part->from * o.step;
    o.bottom += part->from * o.step;
    if (part->first && p->goes_on) start(p, row, rows, *part->sums);
    if (!part->first || p->goes_on)
        sums_load(part->sums, two);
    else
        sums_zero(two);
    if (!once) fetch_c(f, p, row, part->to - part->from);
    for (size_t i = part->from; i < part->to; i++, b += HALF * b_row) {
        LOAD_A(4, o.top, o.stride, rows[0], once);
        LOAD(6, b, b_row, HALF);
        _tile_dpbf16ps(0, 4, 6);
        LOAD(7, b + BYTES, b_row, HALF);
        _tile_dpbf16ps(1, 4, 7);
        if (two) {
            LOAD_A(5, o.bottom, o.stride, rows[1], once);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
        fetch(f);
        o.top += o.step;
        o.bottom += o.step;
    }
    if (part->last && p->k % STEP) add_tail(p, &o, rows, two);
    sums_store(part->sums, two);
    if (part->last) finish(p, row, rows, part->sums);
}

// Compute all complete tiles of a packed A, in turns of at most PIECE_STEPS steps of k. The bits of
// the result are the same as if each tile computed all steps in a single turn.
static void pieces(const struct rlhf__panel *p, struct ahead *f) {
    static const size_t whole[2] = {HALF, HALF};
    const size_t tiles = p->m / (2 * HALF), steps = p->k / STEP;
    tile_sums sums[PIECE_TILES] __attribute__((aligned(64)));
    for (size_t t = 0; t < tiles; t += PIECE_TILES) {
        const size_t end = tiles - t < PIECE_TILES ? tiles : t + PIECE_TILES;
        // If there is only one tile, it cannot share a piece of B with others.
        const int whole_k = end - t == 1 || steps <= PIECE_STEPS;
        const size_t cut = whole_k ? 1 : (steps + PIECE_STEPS - 1) / PIECE_STEPS;
        for (size_t n = 0; n < cut; n++) {
            struct piece part = {.from = steps * n / cut,
                                 .to = steps * (n + 1) / cut,
                                 .first = n == 0,
                                 .last = n + 1 == cut};
            for (size_t i = t; i < end; i++) {
                part.sums = sums + (cut > 1 ? i - t : 0);
                tile(p, i * 2 * HALF, whole, 1, 1, &part, f);
            }
        }
    }
}

void rlhf__amx_panel(const struct rlhf__panel *p) {
    static const size_t whole[2] = {HALF, HALF};
    const size_t tiles = p->m / (2 * HALF), lines = 2 * HALF; // lines: cache lines of B per step
    struct ahead f = {.b = (const char *)(p->b + p->b_next)};
    f.b_end = f.b + (p->k + 1) / 2 * NC * 4;
    f.b_lines = tiles ? (lines + tiles - 1) / tiles : 0;
    tile_sums sums __attribute__((aligned(64)));
    const struct piece all = {.to = p->k / STEP, .first = 1, .last = 1, .sums = &sums};
    size_t row = 0;
    if (p->a_packed)
        pieces(p, &f);
    else
        for (; row + 2 * HALF <= p->m; row += 2 * HALF)
            tile(p, row, whole, 1, 0, &all, &f);
    row = tiles * 2 * HALF;
    if (row == p->m) return;
    const size_t n = p->m - row;
    const size_t rows[2] = {n < HALF ? n : HALF, n < HALF ? 0 : n - HALF};
    configure(rows[0], rows[1]);
    if (rows[1])
        tile(p, row, rows, 1, 0, &all, &f);
    else
        tile(p, row, rows, 0, 0, &all, &f);
    configure(HALF, HALF);
}
