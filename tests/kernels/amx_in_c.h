// amx_in_c.h: the AMX instructions of product/hot_amx_tile.c, computed with AVX-512. The CMake
// option RLHF_AMX_IN_C includes this file before amx_tile.c, so that its code can be tested on a
// CPU without AMX. The operation is that of TDPBF16PS in Intel's manual ("Instruction Set
// Reference").
//
// Where a CPU would raise an exception, the program is aborted.
#ifndef RLHF_TESTS_AMX_IN_C_H
#define RLHF_TESTS_AMX_IN_C_H

#include <immintrin.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define AMX_TILES 8
#define AMX_ROWS  16
#define AMX_BYTES 64 // per row

// The layout of the memory that LDTILECFG reads.
struct amx_shapes {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

struct amx_state {
    struct amx_shapes shapes;
    uint32_t tile[AMX_TILES][AMX_ROWS][AMX_BYTES / 4];
};

// The AMX state of a thread.
static __thread struct amx_state amx;

// The tile must be configured.
static inline void amx_check(int tile) {
    if (!amx.shapes.palette || !amx.shapes.rows[tile] || !amx.shapes.row_bytes[tile]) abort();
}

static inline void amx_loadconfig(const void *from) {
    struct amx_shapes s;
    memcpy(&s, from, sizeof s);
    for (int i = 0; i < AMX_TILES; i++)
        if (s.rows[i] > AMX_ROWS || s.row_bytes[i] > AMX_BYTES || s.row_bytes[i] % 4) abort();
    if (s.palette != 1 || s.start_row) abort();
    memset(&amx, 0, sizeof amx);
    amx.shapes = s;
}

static inline void amx_release(void) { memset(&amx, 0, sizeof amx); }

static inline void amx_zero(int tile) {
    amx_check(tile);
    memset(amx.tile[tile], 0, sizeof amx.tile[tile]);
}

static inline void amx_load(int tile, const void *from, size_t stride) {
    amx_zero(tile);
    for (size_t r = 0; r < amx.shapes.rows[tile]; r++)
        memcpy(amx.tile[tile][r], (const char *)from + r * stride, amx.shapes.row_bytes[tile]);
}

static inline void amx_store(int tile, void *to, size_t stride) {
    amx_check(tile);
    for (size_t r = 0; r < amx.shapes.rows[tile]; r++)
        memcpy((char *)to + r * stride, amx.tile[tile][r], amx.shapes.row_bytes[tile]);
}

// c += a b. For each sum, the products of the even elements of k are added in one chain, those of
// the odd elements in another, and the sum of both chains is added to c.
static inline void amx_dpbf16ps(int c, int a, int b) {
    enum { FLUSH = 0x8040, MASK_EXCEPTIONS = 0x1f80 };
    const __m512i odd_half = _mm512_set1_epi32((int)0xffff0000u);
    const size_t rows = amx.shapes.rows[c], pairs = amx.shapes.row_bytes[a] / 4;
    amx_check(a);
    amx_check(b);
    amx_check(c);
    if (amx.shapes.rows[a] != rows || amx.shapes.rows[b] != pairs || c == a || c == b || a == b ||
        amx.shapes.row_bytes[b] != amx.shapes.row_bytes[c])
        abort();
    const unsigned before = _mm_getcsr();
    _mm_setcsr(FLUSH | MASK_EXCEPTIONS); // rounds to nearest
    __asm__ volatile("" ::: "memory");   // no load moves up over this line
    for (size_t m = 0; m < rows; m++) {
        __m512 even = _mm512_setzero_ps(), odd = even;
        for (size_t k = 0; k < pairs; k++) {
            const __m512i x = _mm512_set1_epi32((int)amx.tile[a][m][k]);
            const __m512i y = _mm512_loadu_si512(amx.tile[b][k]);
            even = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_slli_epi32(x, 16)),
                                   _mm512_castsi512_ps(_mm512_slli_epi32(y, 16)), even);
            odd = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_and_si512(x, odd_half)),
                                  _mm512_castsi512_ps(_mm512_and_si512(y, odd_half)), odd);
        }
        float *sums = (float *)amx.tile[c][m];
        _mm512_storeu_ps(sums, _mm512_add_ps(_mm512_loadu_ps(sums), _mm512_add_ps(even, odd)));
    }
    __asm__ volatile("" ::: "memory"); // no store moves down over this line
    _mm_setcsr(before);
}

#undef _tile_loadd
#undef _tile_stream_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbf16ps
#define _tile_loadconfig   amx_loadconfig
#define _tile_release      amx_release
#define _tile_zero         amx_zero
#define _tile_loadd        amx_load
#define _tile_stream_loadd amx_load
#define _tile_stored       amx_store
#define _tile_dpbf16ps     amx_dpbf16ps

#endif
