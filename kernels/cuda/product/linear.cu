// linear.cu: the linear layer forward and backward on packed weights, and linear_sum.
#include "machine/table.h"
#include "product/low_rank.h"
#include "product/product.h"
#include "product/weight.h"
#include "row/lanes.h"

static rlhf_status check_pair(struct rlhf__cuda *cu, const char *what, const rlhf_weight *w,
                              int32_t out_dtype, int32_t accumulate) {
    RLHF_TRY(rlhf__cuda_weight_packed(cu, what, w));
    if (out_dtype != RLHF_F32 && out_dtype != RLHF_BF16)
        return rlhf__cuda_fail(cu, RLHF_E_UNSUPPORTED,
                               "%s: result of dtype %d, allowed are f32 and bf16", what, out_dtype);
    if (accumulate && out_dtype != RLHF_F32)
        return rlhf__cuda_fail(cu, RLHF_E_UNSUPPORTED, "%s: only an f32 result accumulates", what);
    return RLHF_OK;
}

// The GEMM x W or, with `across`, x W^T.
static struct rlhf__cuda_product_spec rows_spec(const rlhf_weight *w, int32_t out_dtype, int across,
                                                uint32_t rows) {
    struct rlhf__cuda_product_spec s = {};
    s.rows = rows;
    s.cols = (uint32_t)(across ? w->k : w->n);
    s.depth = (uint32_t)(across ? w->n : w->k);
    s.in_dtype = w->dtype;
    s.out_dtype = out_dtype;
    s.left.ld = s.depth;
    s.right = {w->ptr, (uint64_t)w->k_pad, across};
    s.out_ld = s.cols;
    s.rows_exact = 1;
    return s;
}

// Add the workspaces of a product of rows and the weight w, which need not have memory.
static void rows_needs(const struct rlhf__cuda *cu, const rlhf_weight *w, int32_t out_dtype,
                       int across, int with_bias, uint32_t rows, struct rlhf__cuda_needs *n) {
    static const float any = 0.0f;
    struct rlhf__cuda_product_spec s = rows_spec(w, out_dtype, across, rows);
    s.bias = with_bias ? &any : NULL;
    rlhf__cuda_values_needs(w, n);
    rlhf__cuda_product_needs(cu, &s, n);
}

// out = addend + x W + bias or, with `across`, out = addend + x W^T. The weight determines the
// widths of x and out.
static rlhf_status rows_product(struct rlhf__cuda *cu, rlhf_dev out, int32_t out_dtype,
                                rlhf_dev addend, rlhf_dev x, const rlhf_weight *w, int across,
                                rlhf_dev bias, uint32_t rows) {
    if (!rows) return RLHF_OK;
    struct rlhf__cuda_product_spec s = rows_spec(w, out_dtype, across, rows);
    RLHF_TRY(rlhf__cuda_weight_values(cu, w, &s.right.ptr));
    s.left.ptr = rlhf__cuda_mem(x);
    s.bias = rlhf__cuda_f32(bias);
    s.addend = rlhf__cuda_f32(addend);
    s.out = rlhf__cuda_mem(out);
    rlhf__cuda_wrote(cu, s.out, rows * s.out_ld * rlhf_dtype_size(out_dtype));
    RLHF_TRY(rlhf__cuda_product(cu, &s));
    return rlhf__cuda_done(cu);
}

static rlhf_status linear(void *ctx, rlhf_dev out, int32_t out_dtype, int32_t accumulate,
                          rlhf_dev x, const rlhf_weight *w, rlhf_dev bias, uint32_t rows) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    RLHF_TRY(check_pair(cu, "linear", w, out_dtype, accumulate));
    return rows_product(cu, out, out_dtype, accumulate ? out : NULL, x, w, 0, bias, rows);
}

static rlhf_status linear_add(void *ctx, rlhf_dev out, rlhf_dev add, rlhf_dev x,
                              const rlhf_weight *w, rlhf_dev bias, uint32_t rows) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    RLHF_TRY(check_pair(cu, "linear_add", w, RLHF_F32, 1));
    return rows_product(cu, out, RLHF_F32, add, x, w, 0, bias, rows);
}

static rlhf_status linear_dx(void *ctx, rlhf_dev dx, int32_t dx_dtype, int32_t accumulate,
                             rlhf_dev dy, const rlhf_weight *w, uint32_t rows) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    RLHF_TRY(check_pair(cu, "linear_dx", w, dx_dtype, accumulate));
    if (!(w->flags & RLHF_WEIGHT_BACKWARD))
        return rlhf__cuda_fail(cu, RLHF_E_INVALID,
                               "linear_dx: the weight was made without RLHF_WEIGHT_BACKWARD");
    return rows_product(cu, dx, dx_dtype, accumulate ? dx : NULL, dy, w, 1, NULL, rows);
}

// ---- sums over rows ----

// Computes the sums over chunks of 64 rows, [chunks, n]. A thread sums four columns.
enum { CHUNK = 64, COLS = 128, EACH = 4 };
template <bool WIDE, class T>
static __global__ void __launch_bounds__(COLS)
    chunk_sums(float *to, const T *dy, unsigned rows, unsigned n) {
    const unsigned c = (blockIdx.y * COLS + threadIdx.x) * EACH, first = blockIdx.x * CHUNK;
    if (c >= n) return; // skips the loop: loads and stores check n
    const unsigned end = rows - first < CHUNK ? rows : first + CHUNK;
    float sum[EACH] = {};
#pragma unroll 4
    for (unsigned r = first; r < end; r++) {
        float v[EACH];
        rlhf__load<WIDE>(v, dy + (uint64_t)r * n, c, n);
#pragma unroll
        for (int i = 0; i < EACH; i++)
            sum[i] += v[i];
    }
    rlhf__store<WIDE>(to + (uint64_t)blockIdx.x * n, sum, c, n);
}

// Adds the sums of the chunks to db. Chunk i belongs to chain i % 8, and each chain is added in
// order. Then the eight chains are added in order.
enum { LANES = 32, CHAINS = 8 };
static __global__ void __launch_bounds__(LANES *CHAINS)
    add_chunks(float *db, const float *sums, unsigned chunks, unsigned n) {
    SHARED(float[CHAINS][LANES], part);
    const unsigned lane = threadIdx.x % LANES, chain = threadIdx.x / LANES;
    const unsigned c = blockIdx.x * LANES + lane;
    float sum = 0.0f;
    if (c < n)
#pragma unroll 8
        for (unsigned i = chain; i < chunks; i += CHAINS)
            sum += sums[(uint64_t)i * n + c];
    part[chain][lane] = sum;
    __syncthreads();
    if (chain || c >= n) return;
    for (unsigned i = 1; i < CHAINS; i++)
        sum += part[i][lane];
    db[c] += sum;
}

static uint64_t column_sums_bytes(uint32_t rows, uint32_t n) {
    return (uint64_t)((rows + CHUNK - 1) / CHUNK) * n * sizeof(float);
}

template <class T>
static rlhf_status column_sums(struct rlhf__cuda *cu, float *db, const T *dy, uint32_t rows,
                               uint32_t n) {
    const unsigned chunks = (rows + CHUNK - 1) / CHUNK;
    const dim3 grid(chunks, (n + COLS * EACH - 1) / (COLS * EACH));
    void *p = NULL;
    RLHF_TRY(rlhf__cuda_workspace(cu, RLHF__CUDA_WS_PARTIAL, column_sums_bytes(rows, n), &p));
    float *sums = (float *)p;
    if (rlhf__aligned<EACH>(dy, n))
        RUN(cu, (chunk_sums<true, T>), grid, dim3(COLS), 0, sums, dy, rows, n);
    else
        RUN(cu, (chunk_sums<false, T>), grid, dim3(COLS), 0, sums, dy, rows, n);
    RUN(cu, add_chunks, dim3((n + LANES - 1) / LANES), dim3(LANES * CHAINS), 0, db, sums, chunks,
        n);
    return RLHF_OK;
}

// The GEMM x^T dy, in the layout of the weight's source.
static struct rlhf__cuda_product_spec dw_spec(const rlhf_weight *w, const void *x, const void *dy,
                                              uint32_t rows) {
    const bool out_in = (w->flags & RLHF_WEIGHT_OUT_IN) != 0;
    const uint32_t k = (uint32_t)w->k, n = (uint32_t)w->n;
    const struct rlhf__cuda_operand in = {x, k, 1}, out = {dy, n, 1};
    struct rlhf__cuda_product_spec s = {};
    s.rows = out_in ? n : k;
    s.cols = out_in ? k : n;
    s.depth = rows;
    s.in_dtype = w->dtype;
    s.out_dtype = RLHF_F32;
    s.left = out_in ? out : in;
    s.right = out_in ? in : out;
    s.out_ld = s.cols;
    return s;
}

static rlhf_status linear_dw(void *ctx, rlhf_dev dw, rlhf_dev db, rlhf_dev x, rlhf_dev dy,
                             const rlhf_weight *w, uint32_t rows) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    RLHF_TRY(rlhf__cuda_weight_dense(cu, "linear_dw", w));
    if (!rows) return RLHF_OK;
    const uint32_t k = (uint32_t)w->k, n = (uint32_t)w->n;
    struct rlhf__cuda_product_spec s = dw_spec(w, rlhf__cuda_mem(x), rlhf__cuda_mem(dy), rows);
    s.addend = rlhf__cuda_f32(dw);
    s.out = rlhf__cuda_mem(dw);
    if (w->in_block) { // compute the dense gradient, then its blocks
        RLHF_TRY(rlhf__cuda_workspace(cu, RLHF__CUDA_WS_SUM, rlhf__cuda_dense_bytes(w), &s.out));
        s.addend = NULL;
    }
    rlhf__cuda_wrote(cu, rlhf__cuda_mem(dw), (uint64_t)k * n * sizeof(float));
    if (db) {
        rlhf__cuda_wrote(cu, rlhf__cuda_mem(db), n * sizeof(float));
        float *sum = rlhf__cuda_f32(db);
        if (w->dtype == RLHF_BF16)
            RLHF_TRY(column_sums(cu, sum, rlhf__cuda_mem<const rlhf__bf16>(dy), rows, n));
        else
            RLHF_TRY(column_sums(cu, sum, rlhf__cuda_mem<const float>(dy), rows, n));
    }
    RLHF_TRY(rlhf__cuda_product(cu, &s));
    if (w->in_block)
        RLHF_TRY(rlhf__cuda_blocks_add(cu, w, rlhf__cuda_f32(dw), (const float *)s.out));
    return rlhf__cuda_done(cu);
}

// ---- the sum of two products ----

// The number of elements of the result.
static uint64_t sum_elements(const rlhf_linear_sum *a, const rlhf_weight *w) {
    return a->rows * (uint64_t)(a->across ? w->k : w->n);
}

static rlhf_status linear_sum(void *ctx, const rlhf_linear_sum *from) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    const rlhf_compute *t = &cu->table;
    rlhf_linear_sum a;
    RLHF_TRY(rlhf__cuda_copy_in(cu, "linear_sum", &a, sizeof a, from,
                                RLHF_SIZE_TO(rlhf_linear_sum, bias)));
    const rlhf_weight *w = a.w, *o = a.w2;
    if (w->dtype != o->dtype || (a.across ? w->k != o->k : w->n != o->n))
        return rlhf__cuda_fail(cu, RLHF_E_INVALID,
                               "linear_sum: weights of %d x %d and %d x %d, which differ in their "
                               "results or in dtype",
                               w->k, w->n, o->k, o->n);
    if (a.accumulate && a.out_dtype != RLHF_F32)
        return rlhf__cuda_fail(cu, RLHF_E_UNSUPPORTED,
                               "linear_sum: only an f32 result accumulates");
    const uint64_t n = sum_elements(&a, w);
    void *p = rlhf__cuda_mem(a.out);
    if (a.out_dtype != RLHF_F32)
        RLHF_TRY(rlhf__cuda_workspace(cu, RLHF__CUDA_WS_SUM, n * sizeof(float), &p));
    rlhf_dev sum = rlhf__cuda_dev(p);
    if (a.across) {
        RLHF_TRY(t->linear_dx(cu, sum, RLHF_F32, a.accumulate, a.x, w, a.rows));
        RLHF_TRY(t->linear_dx(cu, sum, RLHF_F32, 1, a.x2, o, a.rows));
    } else {
        RLHF_TRY(t->linear(cu, sum, RLHF_F32, a.accumulate, a.x, w, a.bias, a.rows));
        RLHF_TRY(t->linear(cu, sum, RLHF_F32, 1, a.x2, o, NULL, a.rows));
    }
    return a.out_dtype == RLHF_F32 ? RLHF_OK : t->convert(cu, a.out, a.out_dtype, sum, RLHF_F32, n);
}

// ---- workspaces ----

static void sum_needs(const struct rlhf__cuda *cu, const rlhf_call *c, struct rlhf__cuda_needs *n) {
    const rlhf_weight w = rlhf__cuda_weight_shape(&c->weight);
    const rlhf_weight o = rlhf__cuda_weight_shape(&c->weight2);
    const rlhf_linear_sum *a = c->sum;
    if (!a) return;
    if (a->out_dtype != RLHF_F32)
        rlhf__cuda_need(n, RLHF__CUDA_WS_SUM, sum_elements(a, &w) * sizeof(float));
    rows_needs(cu, &w, RLHF_F32, a->across, a->bias != NULL, a->rows, n);
    rows_needs(cu, &o, RLHF_F32, a->across, 0, a->rows, n);
}

void rlhf__cuda_needs_linear(struct rlhf__cuda *cu, const rlhf_call *c,
                             struct rlhf__cuda_needs *n) {
    const rlhf_weight w = rlhf__cuda_weight_shape(&c->weight);
    const int bias = (c->flags & RLHF_CALL_BIAS) != 0;
    if (c->op == RLHF_COMPUTE_OP(linear)) rows_needs(cu, &w, c->dtype, 0, bias, c->rows, n);
    if (c->op == RLHF_COMPUTE_OP(linear_add)) rows_needs(cu, &w, RLHF_F32, 0, bias, c->rows, n);
    if (c->op == RLHF_COMPUTE_OP(linear_dx)) rows_needs(cu, &w, c->dtype, 1, 0, c->rows, n);
    if (c->op == RLHF_COMPUTE_OP(linear_sum)) sum_needs(cu, c, n);
    if (c->op != RLHF_COMPUTE_OP(linear_dw) || !c->rows) return;
    const struct rlhf__cuda_product_spec s = dw_spec(&w, NULL, NULL, c->rows);
    if (w.rank) rlhf__cuda_need(n, RLHF__CUDA_WS_SUM, rlhf__cuda_dense_bytes(&w));
    if (bias) rlhf__cuda_need(n, RLHF__CUDA_WS_PARTIAL, column_sums_bytes(c->rows, (uint32_t)w.n));
    rlhf__cuda_product_needs(cu, &s, n);
}

void rlhf__cuda_fill_linear(rlhf_compute *t) {
    t->linear = linear;
    t->linear_add = linear_add;
    t->linear_dx = linear_dx;
    t->linear_dw = linear_dw;
    t->linear_sum = linear_sum;
}
