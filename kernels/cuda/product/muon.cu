// muon.cu: Muon (K. Jordan 2024): momentum, orthogonalized by a quintic Newton-Schulz iteration.
//
// One step is X = a X + (b A + c A A) X with A = X X^T. A matrix with more rows than columns is
// transposed first, so that A is the smaller Gram matrix. The operands of the GEMMs have the dtype
// of the run's weights, as on the CPU; X and all sums are f32. Nothing waits for the host, because
// the norm stays on the device.
#include "machine/table.h"
#include "product/product.h"

#include <math.h>

#define NS_A 3.4445f
#define NS_B (-4.7750f)
#define NS_C 2.0315f

enum { TILE = 64, THREADS = 256, WARPS = THREADS / 32, LINE = 4 * THREADS };

namespace {
// The workspace of one call. n is the smaller side of the matrix, m the larger one.
struct work {
    uint32_t n, m;
    uint64_t n_pad, m_pad;  // lengths of the operands' lines
    float *x, *gram, *poly; // [n, m], [n, n], [n, n]
    void *low_x, *low;      // the operands of the GEMMs, in their dtype: [n, m_pad], [n, n_pad]
    int32_t dtype;
    double *squares; // sum of squares of each tile
    float *scale;    // 1 / norm
};
} // namespace

// ---- from the stored matrix to X and back ----

namespace {
struct direction {
    float momentum, grad_scale;
    int nesterov;
};
} // namespace

// Processes one tile: updates the momentum, writes the direction to x (plain or transposed), and
// adds up the squares of the direction.
static __global__ void __launch_bounds__(THREADS)
    begin(float *x, double *squares, float *mom, const float *g, unsigned rows, unsigned cols,
          int tall, struct direction d) {
    SHARED(float[TILE][TILE + 1], s);
    SHARED(double[WARPS], part);
    const unsigned across = (cols + TILE - 1) / TILE;
    const unsigned r0 = blockIdx.x / across * TILE, c0 = blockIdx.x % across * TILE;
    double sum = 0.0;
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < TILE * TILE; i += THREADS) {
        const unsigned r = r0 + i / TILE, c = c0 + i % TILE;
        if (r >= rows || c >= cols) continue;
        const uint64_t at = (uint64_t)r * cols + c;
        const float grad = d.grad_scale * g[at], next = fmaf(d.momentum, mom[at], grad);
        const float u = d.nesterov ? fmaf(d.momentum, next, grad) : next;
        mom[at] = next;
        sum += (double)u * u;
        if (tall)
            s[i % TILE][i / TILE] = u;
        else
            x[at] = u;
    }
    sum = rlhf__warp_sum(sum);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < WARPS; i++)
            sum += part[i];
        squares[blockIdx.x] = sum;
    }
    if (!tall) return;
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < TILE * TILE; i += THREADS) {
        const unsigned c = c0 + i / TILE, r = r0 + i % TILE;
        if (r < rows && c < cols) x[(uint64_t)c * rows + r] = s[i / TILE][i % TILE];
    }
}

// 1 / sqrt of the sum over all tiles; 0 if the direction is zero.
static __global__ void __launch_bounds__(THREADS)
    norm(float *scale, const double *squares, unsigned n) {
    SHARED(double[WARPS], part);
    double sum = 0.0;
    for (unsigned i = threadIdx.x; i < n; i += THREADS)
        sum += squares[i];
    sum = rlhf__warp_sum(sum);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x) return;
    for (int i = 1; i < WARPS; i++)
        sum += part[i];
    *scale = sum > 0.0 ? (float)(1.0 / sqrt(sum)) : 0.0f;
}

// Processes one tile of w = decay w - step u with u = x scale. If `tall` is set, x is transposed.
static __global__ void __launch_bounds__(THREADS)
    apply(float *w, const float *x, const float *scale, unsigned rows, unsigned cols, int tall,
          float decay, float step) {
    SHARED(float[TILE][TILE + 1], s);
    const unsigned across = (cols + TILE - 1) / TILE;
    const unsigned r0 = blockIdx.x / across * TILE, c0 = blockIdx.x % across * TILE;
    const float by = scale ? *scale : 1.0f;
#pragma unroll 4
    for (unsigned i = threadIdx.x; tall && i < TILE * TILE; i += THREADS) {
        const unsigned c = c0 + i / TILE, r = r0 + i % TILE;
        if (r < rows && c < cols) s[i % TILE][i / TILE] = x[(uint64_t)c * rows + r];
    }
    __syncthreads();
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < TILE * TILE; i += THREADS) {
        const unsigned r = r0 + i / TILE, c = c0 + i % TILE;
        if (r >= rows || c >= cols) continue;
        const uint64_t at = (uint64_t)r * cols + c;
        const float u = (tall ? s[i / TILE][i % TILE] : x[at]) * by;
        w[at] = fmaf(-step, u, decay * w[at]);
    }
}

// ---- converting X and the Gram matrix to GEMM operands ----

// low = x scale, x = a x scale. a is NS_A. After the first step, scale is NULL, which means 1.
template <class T>
static __global__ void __launch_bounds__(THREADS)
    lower(T *low, uint64_t ld, float *x, unsigned m, const float *scale, float a) {
    const unsigned per = (m + LINE - 1) / LINE;
    const uint64_t line = blockIdx.x / per;
    const unsigned end = blockIdx.x % per * LINE + LINE < m ? blockIdx.x % per * LINE + LINE : m;
    const float by = scale ? *scale : 1.0f;
    for (unsigned c = blockIdx.x % per * LINE + threadIdx.x; c < end; c += THREADS) {
        const float v = x[line * m + c] * by;
        rlhf__put(low, line * ld + c, v);
        x[line * m + c] = v * a;
    }
}

// low = b gram + c poly. Without poly, low = gram.
template <class T>
static __global__ void __launch_bounds__(THREADS)
    blend(T *low, uint64_t ld, const float *gram, const float *poly, unsigned n) {
    const unsigned per = (n + LINE - 1) / LINE;
    const uint64_t line = blockIdx.x / per;
    const unsigned end = blockIdx.x % per * LINE + LINE < n ? blockIdx.x % per * LINE + LINE : n;
    for (unsigned c = blockIdx.x % per * LINE + threadIdx.x; c < end; c += THREADS) {
        const float v = gram[line * n + c];
        rlhf__put(low, line * ld + c, poly ? fmaf(NS_B, v, NS_C * poly[line * n + c]) : v);
    }
}

// ---- the iteration ----

static dim3 line_blocks(uint32_t lines, uint32_t width) {
    return dim3(lines * ((width + LINE - 1) / LINE));
}

static struct rlhf__cuda_product_spec spec_of(const struct work *k, uint32_t cols, uint32_t depth) {
    struct rlhf__cuda_product_spec s = {};
    s.rows = k->n;
    s.cols = cols;
    s.depth = depth;
    s.in_dtype = k->dtype;
    s.out_dtype = RLHF_F32;
    s.out_ld = cols;
    return s;
}

// out[n, cols] = addend + a[n, depth] b. b is [cols, depth] or, with `across`, [depth, cols].
static rlhf_status product(struct rlhf__cuda *cu, const struct work *k, float *out,
                           const float *addend, struct rlhf__cuda_operand a,
                           struct rlhf__cuda_operand b, uint32_t cols, uint32_t depth) {
    struct rlhf__cuda_product_spec s = spec_of(k, cols, depth);
    s.left = a;
    s.right = b;
    s.addend = addend;
    s.out = out;
    return rlhf__cuda_product(cu, &s);
}

template <class T>
static rlhf_status newton_schulz(struct rlhf__cuda *cu, const struct work *k, int32_t steps) {
    const uint32_t n = k->n, m = k->m;
    T *low_x = (T *)k->low_x, *low = (T *)k->low;
    const struct rlhf__cuda_operand x = {low_x, k->m_pad, 0}, x_across = {low_x, k->m_pad, 1};
    const struct rlhf__cuda_operand a = {low, k->n_pad, 0}, a_across = {low, k->n_pad, 1};
    for (int32_t i = 0; i < steps; i++) {
        RUN(cu, lower<T>, line_blocks(n, m), dim3(THREADS), 0, low_x, k->m_pad, k->x, m,
            i ? NULL : k->scale, NS_A);
        RLHF_TRY(product(cu, k, k->gram, NULL, x, x, n, m));
        RUN(cu, blend<T>, line_blocks(n, n), dim3(THREADS), 0, low, k->n_pad, k->gram,
            (const float *)NULL, n);
        RLHF_TRY(product(cu, k, k->poly, NULL, a, a_across, n, n));
        RUN(cu, blend<T>, line_blocks(n, n), dim3(THREADS), 0, low, k->n_pad, k->gram, k->poly, n);
        RLHF_TRY(product(cu, k, k->x, k->x, a, x_across, m, n));
    }
    return RLHF_OK;
}

static uint64_t room(uint64_t *at, uint64_t bytes) {
    const uint64_t was = *at;
    *at += (bytes + 255) / 256 * 256;
    return was;
}

// Set the shapes and arrays of *k; the arrays begin at `base`. Returns the size of the arrays in
// bytes.
static uint64_t work_layout(struct work *k, char *base, int32_t dtype, uint32_t n, uint32_t m,
                            uint64_t tiles) {
    k->n = n;
    k->m = m;
    k->n_pad = ((uint64_t)n + 7) / 8 * 8;
    k->m_pad = ((uint64_t)m + 7) / 8 * 8;
    k->dtype = dtype;
    const uint64_t size = rlhf_dtype_size(k->dtype);
    uint64_t bytes = 0;
    const uint64_t x = room(&bytes, (uint64_t)n * m * 4), gram = room(&bytes, (uint64_t)n * n * 4);
    const uint64_t poly = room(&bytes, (uint64_t)n * n * 4);
    const uint64_t low_x = room(&bytes, n * k->m_pad * size);
    const uint64_t low = room(&bytes, n * k->n_pad * size), squares = room(&bytes, tiles * 8);
    const uint64_t scale = room(&bytes, 4);
    if (!base) return bytes;
    k->x = (float *)(base + x);
    k->gram = (float *)(base + gram);
    k->poly = (float *)(base + poly);
    k->low_x = base + low_x;
    k->low = base + low;
    k->squares = (double *)(base + squares);
    k->scale = (float *)(base + scale);
    return bytes;
}

static rlhf_status work_place(struct rlhf__cuda *cu, uint32_t n, uint32_t m, uint64_t tiles,
                              struct work *k) {
    const int32_t dtype = cu->bf16_weights ? RLHF_BF16 : RLHF_F32;
    void *p = NULL;
    RLHF_TRY(
        rlhf__cuda_workspace(cu, RLHF__CUDA_WS_MUON, work_layout(k, NULL, dtype, n, m, tiles), &p));
    work_layout(k, (char *)p, dtype, n, m, tiles);
    return RLHF_OK;
}

static uint64_t tiles_of(uint32_t rows, uint32_t cols) {
    return (uint64_t)((rows + TILE - 1) / TILE) * ((cols + TILE - 1) / TILE);
}

void rlhf__cuda_needs_muon(struct rlhf__cuda *cu, const rlhf_call *c, struct rlhf__cuda_needs *n) {
    const uint32_t rows = c->rows, cols = (uint32_t)c->d;
    struct work k;
    if (c->op != RLHF_COMPUTE_OP(muon) || !c->muon) return;
    const uint32_t least = rows < cols ? rows : cols, most = rows < cols ? cols : rows;
    rlhf__cuda_need(n, RLHF__CUDA_WS_MUON,
                    work_layout(&k, NULL, c->dtype, least, most, tiles_of(rows, cols)));
    if (c->muon->ns_steps < 1) return;
    const uint32_t size[3][2] = {{least, most}, {least, least}, {most, least}}; // columns, depth
    for (int i = 0; i < 3; i++) {
        const struct rlhf__cuda_product_spec s = spec_of(&k, size[i][0], size[i][1]);
        rlhf__cuda_product_needs(cu, &s, n);
    }
}

// The number of outputs divided by the number of inputs.
static double aspect(const rlhf_muon *a, int32_t rows, int32_t cols) {
    return a->in_out ? (double)cols / (double)rows : (double)rows / (double)cols;
}

static rlhf_status muon(void *ctx, rlhf_dev w, rlhf_dev g, rlhf_dev mom, int32_t rows, int32_t cols,
                        const rlhf_muon *how) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    rlhf_muon a;
    RLHF_TRY(
        rlhf__cuda_copy_in(cu, "muon", &a, sizeof a, how, RLHF_SIZE_TO(rlhf_muon, grad_scale)));
    if (rows < 1 || cols < 1 || a.ns_steps < 0)
        return rlhf__cuda_fail(cu, RLHF_E_INVALID, "muon: a matrix of %d x %d, %d steps", rows,
                               cols, a.ns_steps);
    const uint32_t nr = (uint32_t)rows, nc = (uint32_t)cols;
    const int tall = nr > nc;
    const uint64_t tiles = tiles_of(nr, nc);
    if (tiles > 0x7fffffffu)
        return rlhf__cuda_fail(cu, RLHF_E_UNSUPPORTED,
                               "muon: a matrix of %d x %d: more tiles than a launch can have", rows,
                               cols);
    struct work k;
    RLHF_TRY(work_place(cu, tall ? nc : nr, tall ? nr : nc, tiles, &k));
    const uint64_t bytes = (uint64_t)nr * nc * sizeof(float);
    rlhf__cuda_wrote(cu, rlhf__cuda_mem(w), bytes);
    rlhf__cuda_wrote(cu, rlhf__cuda_mem(mom), bytes);
    const struct direction d = {(float)a.momentum, (float)a.grad_scale, a.nesterov};
    const dim3 grid((unsigned)tiles), block(THREADS);
    RUN(cu, begin, grid, block, 0, k.x, k.squares, rlhf__cuda_f32(mom), rlhf__cuda_f32(g), nr, nc,
        tall, d);
    RUN(cu, norm, dim3(1), block, 0, k.scale, k.squares, (unsigned)tiles);
    RLHF_TRY(k.dtype == RLHF_BF16 ? newton_schulz<rlhf__bf16>(cu, &k, a.ns_steps)
                                  : newton_schulz<float>(cu, &k, a.ns_steps));
    const double ratio = aspect(&a, rows, cols), lr = a.lr * sqrt(ratio > 1.0 ? ratio : 1.0);
    RUN(cu, apply, grid, block, 0, rlhf__cuda_f32(w), k.x, a.ns_steps ? NULL : k.scale, nr, nc,
        tall, (float)(1.0 - a.lr * a.weight_decay), (float)lr);
    return rlhf__cuda_done(cu);
}

void rlhf__cuda_fill_muon(rlhf_compute *t) { t->muon = muon; }
