// product.cu: chooses the kernel that computes a GEMM.
#include "product/lt.h"
#include "product/product_tile.h"

static const struct {
    unsigned rows, cols;
    float speed; // approximate throughput of a multiprocessor
} tiles[RLHF__CUDA_TILES] = {{128, 128, 1.0f}, {64, 64, 0.6f}, {16, 64, 0.3f}};

#define MULTIPROCESSORS 132 // number on a common large card; does not affect any result

static uint64_t tile_count(int i, uint32_t rows, uint32_t cols) {
    return (uint64_t)((rows + tiles[i].rows - 1) / tiles[i].rows) *
           ((cols + tiles[i].cols - 1) / tiles[i].cols);
}

// The tile size with which the busiest multiprocessor needs the least time.
static int tile_for(uint32_t rows, uint32_t cols, uint64_t chunks) {
    int best = 0;
    float best_time = 0.0f;
    for (int i = 0; i < RLHF__CUDA_TILES; i++) {
        const uint64_t n = tile_count(i, rows, cols) * chunks;
        const float turns = (float)((n + MULTIPROCESSORS - 1) / MULTIPROCESSORS);
        const float time = turns * (float)(tiles[i].rows * tiles[i].cols) / tiles[i].speed;
        if (i && time >= best_time) continue;
        best = i;
        best_time = time;
    }
    return best;
}

static int aligned(const void *p, uint64_t line_bytes) {
    return ((uintptr_t)p | line_bytes) % 16 == 0;
}

static struct rlhf__tiles tiles_of(const struct rlhf__cuda_product_spec *s) {
    const uint64_t in = rlhf_dtype_size(s->in_dtype), out = rlhf_dtype_size(s->out_dtype);
    struct rlhf__tiles p = {};
    p.left = s->left.ptr;
    p.right = s->right.ptr;
    p.bias = s->bias;
    p.addend = s->addend;
    p.out = s->out;
    p.left_ld = s->left.ld;
    p.right_ld = s->right.ld;
    p.out_ld = s->out_ld;
    p.rows = s->rows;
    p.cols = s->cols;
    p.depth = s->depth;
    p.chunk = s->depth;
    p.left_wide = aligned(p.left, p.left_ld * in);
    p.right_wide = aligned(p.right, p.right_ld * in);
    p.out_wide = aligned(p.out, p.out_ld * out) && aligned(p.addend, p.addend ? p.out_ld * 4 : 0);
    p.out_bf16 = s->out_dtype == RLHF_BF16;
    return p;
}

static rlhf_status run(struct rlhf__cuda *cu, const struct rlhf__cuda_product_spec *s,
                       struct rlhf__tiles *p, int tile) {
    p->tile_rows = (s->rows + tiles[tile].rows - 1) / tiles[tile].rows;
    p->tile_cols = (s->cols + tiles[tile].cols - 1) / tiles[tile].cols;
    if ((uint64_t)p->tile_rows * p->tile_cols > 0x7fffffffu)
        return rlhf__cuda_fail(cu, RLHF_E_UNSUPPORTED,
                               "a product of %u x %u: more tiles than a launch can have", s->rows,
                               s->cols);
    if (s->in_dtype == RLHF_BF16)
        return rlhf__cuda_product_bf16(cu, p, s->left.across, s->right.across, tile);
    return rlhf__cuda_product_f32(cu, p, s->left.across, s->right.across, tile);
}

// ---- long sums ----

enum { CHUNK = 4096, TOGETHER = 8, THREADS = 256 };

// out = addend + the results of n chunks, in order. The lines of `sums` have length ld.
static __global__ void __launch_bounds__(THREADS)
    add_chunks(struct rlhf__tiles p, const float *sums, uint64_t ld, unsigned n) {
    const uint64_t at = ((uint64_t)blockIdx.x * THREADS + threadIdx.x) * 4;
    if (at >= p.piece) return;
    const uint64_t row = at / ld, col = at % ld;
    for (unsigned i = 0; i < 4; i++) {
        if (col + i >= p.cols) break;
        float v = sums[at + i];
        if (p.addend) v = p.addend[row * p.out_ld + col + i] + v;
        for (unsigned j = 1; j < n; j++)
            v += sums[j * p.piece + at + i];
        ((float *)p.out)[row * p.out_ld + col + i] = v;
    }
}

static int is_chunked(const struct rlhf__cuda_product_spec *s) {
    return !s->rows_exact && !s->bias && s->out_dtype == RLHF_F32 && s->depth > CHUNK;
}

static int chunk_tile(const struct rlhf__cuda_product_spec *s, int tile) {
    return tile < 0 ? tile_for(s->rows, s->cols, TOGETHER) : tile;
}

// True if the chunks should run in parallel, because the result has few tiles.
static int is_few(const struct rlhf__cuda_product_spec *s, int tile) {
    return tile_count(chunk_tile(s, tile), s->rows, s->cols) < 2 * MULTIPROCESSORS;
}

// The number of elements in a line of the chunks' sums, and the size of these sums in bytes.
static uint64_t sums_ld(const struct rlhf__cuda_product_spec *s) {
    return ((uint64_t)s->cols + 3) / 4 * 4;
}

static uint64_t sums_bytes(const struct rlhf__cuda_product_spec *s) {
    return TOGETHER * s->rows * sums_ld(s) * sizeof(float);
}

// Run the chunks of depth one after another or, if the result has few tiles, several in parallel.
// Both ways compute the same sums in the same order.
static rlhf_status run_chunks(struct rlhf__cuda *cu, const struct rlhf__cuda_product_spec *s,
                              int tile) {
    const int wish = chunk_tile(s, tile), few = is_few(s, tile);
    const uint64_t size = rlhf_dtype_size(s->in_dtype), ld = sums_ld(s);
    const unsigned step = few ? TOGETHER * CHUNK : CHUNK;
    void *sums = NULL;
    if (few) RLHF_TRY(rlhf__cuda_workspace(cu, RLHF__CUDA_WS_PRODUCT, sums_bytes(s), &sums));
    for (uint64_t from = 0; from < s->depth; from += step) {
        struct rlhf__cuda_product_spec part = *s;
        part.depth = s->depth - from < step ? s->depth - (uint32_t)from : step;
        part.left.ptr = (const char *)s->left.ptr + from * size * (s->left.across ? s->left.ld : 1);
        part.right.ptr =
            (const char *)s->right.ptr + from * size * (s->right.across ? s->right.ld : 1);
        if (from) part.addend = (const float *)s->out;
        const struct rlhf__tiles result = tiles_of(&part);
        if (few) {
            part.out = sums;
            part.out_ld = ld;
            part.addend = NULL;
        }
        struct rlhf__tiles p = tiles_of(&part);
        p.chunk = CHUNK;
        p.piece = s->rows * ld;
        RLHF_TRY(run(cu, &part, &p, wish));
        if (!few) continue;
        struct rlhf__tiles add = result;
        add.piece = p.piece;
        RUN(cu, add_chunks, dim3((unsigned)((p.piece / 4 + THREADS - 1) / THREADS)), dim3(THREADS),
            0, add, (const float *)sums, ld, (part.depth + CHUNK - 1) / CHUNK);
    }
    return RLHF_OK;
}

rlhf_status rlhf__cuda_product_own(struct rlhf__cuda *cu, const struct rlhf__cuda_product_spec *s,
                                   int tile) {
    if (!s->rows || !s->cols) return RLHF_OK;
    if (is_chunked(s)) return run_chunks(cu, s, tile);
    struct rlhf__tiles p = tiles_of(s);
    if (s->rows_exact && s->cols <= RLHF__CUDA_DOT_COLS && !s->left.across && !s->right.across)
        return rlhf__cuda_product_dot(cu, &p, s->in_dtype);
    return run(cu, s, &p, tile < 0 ? tile_for(s->rows, s->cols, 1) : tile);
}

// True if the GEMM may be offered to the library.
static int is_offered(const struct rlhf__cuda *cu, const struct rlhf__cuda_product_spec *s) {
    const int dot = s->rows_exact && s->cols <= RLHF__CUDA_DOT_COLS;
    return cu->library && s->rows && s->cols && !dot;
}

void rlhf__cuda_product_needs(const struct rlhf__cuda *cu, const struct rlhf__cuda_product_spec *s,
                              struct rlhf__cuda_needs *n) {
    if (!s->rows || !s->cols) return;
    if (is_offered(cu, s)) {
        rlhf__cuda_need(n, RLHF__CUDA_WS_LIBRARY, RLHF__LT_WORKSPACE);
        if (s->bias && s->out_dtype == RLHF_BF16)
            rlhf__cuda_need(n, RLHF__CUDA_WS_PRODUCT, rlhf__lt_bias_bytes(s->cols));
    }
    if (is_chunked(s) && is_few(s, -1)) rlhf__cuda_need(n, RLHF__CUDA_WS_PRODUCT, sums_bytes(s));
}

rlhf_status rlhf__cuda_product(struct rlhf__cuda *cu, const struct rlhf__cuda_product_spec *s) {
    if (is_offered(cu, s)) {
        int taken = 0;
        RLHF_TRY(cu->library(cu, s, &taken));
        if (taken) return RLHF_OK;
    }
    return rlhf__cuda_product_own(cu, s, -1);
}
