// hot/gemm.c: register tiles of the own f32 product (own_gemm.h): TILE rows by two vectors.
#include "hot.h"
#include "vec.h"

#define WIDTH ((size_t)2 * VF_LANES)
#define TILE  6

// dst[k][WIDTH] = src columns 0 .. n-1 (n <= WIDTH), the rest 0.
void RLHF__HOT(gemm_pack)(float *dst, const float *src, size_t k, size_t n, size_t row_stride,
                          size_t col_stride) {
    for (size_t i = 0; i < k; i++)
        for (size_t j = 0; j < WIDTH; j++)
            dst[i * WIDTH + j] = j < n ? src[i * row_stride + j * col_stride] : 0.0f;
}

static inline void tile_store(float *dst, vf v, size_t n, const float *bias, int accumulate) {
    if (bias) v = vf_add(v, vf_load_n(bias, n));
    if (accumulate) v = vf_add(vf_load_n(dst, n), v);
    vf_store_n(dst, v, n);
}

// rows (1 .. TILE, a constant where it is inlined) rows of dst; panel is [k][WIDTH].
static inline __attribute__((always_inline)) void tile(float *dst, size_t ldd, const float *src,
                                                       size_t rows, size_t k, const float *panel,
                                                       size_t n, const float *bias,
                                                       int accumulate) {
    vf c0[TILE], c1[TILE];
    for (size_t r = 0; r < rows; r++)
        c0[r] = c1[r] = vf_zero();
    for (size_t i = 0; i < k; i++) {
        vf b0 = vf_load(panel + i * WIDTH), b1 = vf_load(panel + i * WIDTH + VF_LANES);
        for (size_t r = 0; r < rows; r++) {
            vf a = vf_set1(src[r * k + i]);
            c0[r] = vf_fma(a, b0, c0[r]);
            c1[r] = vf_fma(a, b1, c1[r]);
        }
    }
    size_t n0 = n < VF_LANES ? n : VF_LANES, n1 = n - n0;
    for (size_t r = 0; r < rows; r++) {
        tile_store(dst + r * ldd, c0[r], n0, bias, accumulate);
        if (n1)
            tile_store(dst + r * ldd + VF_LANES, c1[r], n1, bias ? bias + VF_LANES : NULL,
                       accumulate);
    }
}

void RLHF__HOT(gemm_panel)(float *dst, size_t ldd, const float *src, size_t m, size_t k,
                           const float *panel, size_t n, const float *bias, int accumulate) {
    size_t r = 0;
    for (; r + TILE <= m; r += TILE)
        tile(dst + r * ldd, ldd, src + r * k, TILE, k, panel, n, bias, accumulate);
    for (; r + 2 <= m; r += 2)
        tile(dst + r * ldd, ldd, src + r * k, 2, k, panel, n, bias, accumulate);
    if (r < m) tile(dst + r * ldd, ldd, src + r * k, 1, k, panel, n, bias, accumulate);
}
