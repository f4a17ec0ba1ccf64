// hot/amx_tile.c: the product loops of amx.h. Four tiles of sums, 32 rows by 32 columns, two of A
// and two of B.
#include "amx.h"
#include "bf16.h"
#include "vec.h"

#define NC    ((size_t)RLHF__BF16_NC)
#define STEP  ((size_t)RLHF__AMX_K)
#define HALF  ((size_t)16) // rows, or columns, of one tile
#define BYTES ((size_t)64) // of a tile's row
#define TILE  (16 * 64)    // bytes of a tile

#define INLINE static inline __attribute__((always_inline))

// GCC 12's tile loads do not say that they read memory: what was stored must be there.
#define STORED() __asm__ volatile("" ::: "memory")

struct shapes {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

// Tiles 0 to 3 are sums, 4 and 5 are A, 6 and 7 are B. top and bottom: rows of A's two tiles.
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

#ifdef RLHF_SANITIZED // which does not see tile loads
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
#else
#define LOAD(tile, p, stride, rows) _tile_loadd(tile, p, stride)
#endif

// One row of 16 sums to C.
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
    if (n == VF_LANES) {
        vf_store(c, p->accumulate ? vf_add(vf_load(c), v) : v);
        return;
    }
    if (p->accumulate) v = vf_add(vf_load_n(c, n), v);
    vf_store_n(c, v, n);
}

// Where the rows of A's tiles lie, and how far the next step of k is.
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

// The last, partial step of k with zeros behind it. A packed A has them already.
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

// Sums that go on: what C has, in the order of the tiles.
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

// rows[0] rows from `row`, and rows[1] below its first 16; two and fetch are constants where this
// is inlined. fetch: the next panel is brought to the second-level cache.
INLINE void tile(const struct rlhf__panel *p, size_t row, const size_t rows[2], const int two,
                 const int fetch) {
    struct operand o = operand_at(p, row);
    const char *b = (const char *)p->b;
    const size_t steps = p->k / STEP, left = p->k % STEP, b_row = NC * 4;
    float sums[4][16 * 16] __attribute__((aligned(64)));
    if (p->goes_on) {
        start(p, row, rows, sums);
        _tile_loadd(0, sums[0], BYTES);
        _tile_loadd(1, sums[1], BYTES);
        if (two) {
            _tile_loadd(2, sums[2], BYTES);
            _tile_loadd(3, sums[3], BYTES);
        }
    } else {
        _tile_zero(0);
        _tile_zero(1);
        if (two) {
            _tile_zero(2);
            _tile_zero(3);
        }
    }
    for (size_t i = 0; i < steps; i++, b += HALF * b_row) {
        LOAD(4, o.top, o.stride, rows[0]);
        LOAD(6, b, b_row, HALF);
        _tile_dpbf16ps(0, 4, 6);
        LOAD(7, b + BYTES, b_row, HALF);
        _tile_dpbf16ps(1, 4, 7);
        if (two) {
            LOAD(5, o.bottom, o.stride, rows[1]);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
        if (fetch)
            for (size_t j = 0; j < HALF * b_row; j += BYTES)
                _mm_prefetch(b + p->b_next * 4 + j, _MM_HINT_T1);
        o.top += o.step;
        o.bottom += o.step;
    }
    if (left) {
        struct tail t;
        tail_fill(&t, p, &o, rows, steps * STEP, left);
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
    _tile_stored(0, sums[0], BYTES);
    _tile_stored(1, sums[1], BYTES);
    if (two) {
        _tile_stored(2, sums[2], BYTES);
        _tile_stored(3, sums[3], BYTES);
    }
    for (size_t h = 0; h < (two ? 2u : 1u); h++)
        for (size_t r = 0; r < rows[h]; r++) {
            store(p, row + h * HALF + r, 0, vf_load(sums[2 * h] + r * HALF));
            store(p, row + h * HALF + r, HALF, vf_load(sums[2 * h + 1] + r * HALF));
        }
}

void rlhf__amx_panel(const struct rlhf__panel *p) {
    static const size_t whole[2] = {HALF, HALF};
    size_t row = 0;
    if (p->m >= 2 * HALF) {
        tile(p, 0, whole, 1, 1);
        for (row = 2 * HALF; row + 2 * HALF <= p->m; row += 2 * HALF)
            tile(p, row, whole, 1, 0);
    }
    if (row == p->m) return;
    const size_t n = p->m - row;
    const size_t rows[2] = {n < HALF ? n : HALF, n < HALF ? 0 : n - HALF};
    configure(rows[0], rows[1]);
    if (rows[1])
        tile(p, row, rows, 1, 0);
    else
        tile(p, row, rows, 0, 0);
    configure(HALF, HALF);
}
