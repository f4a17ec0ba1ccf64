// lt_product.cu: a product of product.h in the library's terms.
//
// Row-major out [rows, cols] is column-major D [cols, rows], so the right operand is the library's
// A and the left one its B.
#include "lanes.h"
#include "lt_plan.h"
#include "product_tile.h"
#include "weight.h"

#include <string.h>

static struct rlhf__lt_shape shape_of(const struct rlhf__cuda_lt *lt,
                                      const struct rlhf__cuda_product_spec *s) {
    struct rlhf__lt_shape t;
    const int over_rows = !s->rows_exact && s->left.across && s->right.across;
    memset(&t, 0, sizeof t); // compared as bytes
    t.dtype = s->in_dtype;
    t.out_dtype = s->out_dtype;
    t.trans_a = !s->right.across;
    t.trans_b = s->left.across != 0;
    t.m = s->cols;
    t.n = s->rows_exact ? 0 : s->rows;
    t.k = over_rows ? 0 : s->depth;
    t.lda = (int64_t)s->right.ld;
    t.ldb = (int64_t)s->left.ld;
    t.ldd = (int64_t)s->out_ld;
    t.bias = s->bias != NULL;
    t.exact = s->rows_exact && !lt->free;
    return t;
}

static int odd(const void *p) { return (uintptr_t)p % RLHF__LT_ALIGN != 0; }

// Bytes from the first to the last element of `lines` lines.
static uint64_t extent(uint64_t lines, uint64_t ld, uint64_t width, int32_t dtype) {
    return ((lines - 1) * ld + width) * rlhf_dtype_size(dtype);
}

static uint64_t operand_bytes(const struct rlhf__cuda_operand *o, uint32_t lines, uint32_t depth,
                              int32_t dtype) {
    return o->across ? extent(depth, o->ld, lines, dtype) : extent(lines, o->ld, depth, dtype);
}

// Replaces an operand at an odd address by a copy, so that the address does not show in the bits.
static rlhf_status straighten(struct rlhf__cuda *cu, const void **p, uint64_t bytes, char **ws) {
    if (!*p || !odd(*p)) return RLHF_OK;
    char *to = *ws;
    *ws += (bytes + 255) / 256 * 256;
    RLHF_TRY(
        rlhf__cuda_check(cu, "copy of an operand",
                         cudaMemcpyAsync(to, *p, bytes, cudaMemcpyDeviceToDevice, cu->stream)));
    *p = to;
    return RLHF_OK;
}

// The product with at least one operand at an odd address: on copies.
static rlhf_status run_on_copies(struct rlhf__cuda *cu, struct rlhf__lt_plan *p,
                                 const struct rlhf__cuda_product_spec *s,
                                 struct rlhf__lt_operands *o, rlhf__lt_status *lt_st) {
    const uint64_t a = operand_bytes(&s->right, s->cols, s->depth, s->in_dtype),
                   b = operand_bytes(&s->left, s->rows, s->depth, s->in_dtype),
                   d = extent(s->rows, s->out_ld, s->cols, s->out_dtype), bias = s->cols * 4ull;
    void *ws;
    RLHF_TRY(rlhf__cuda_workspace(cu, RLHF__CUDA_WS_LIBRARY, a + b + 2 * d + bias + 5 * 256, &ws));
    char *at = (char *)ws;
    RLHF_TRY(straighten(cu, &o->a, a, &at));
    RLHF_TRY(straighten(cu, &o->b, b, &at));
    RLHF_TRY(straighten(cu, &o->c, d, &at));
    const void *copy = o->bias;
    RLHF_TRY(straighten(cu, &copy, bias, &at));
    o->bias = (const float *)copy;
    // Of the output, too: what lies between its rows is kept.
    const void *out = o->d;
    RLHF_TRY(straighten(cu, &out, d, &at));
    o->d = (void *)(uintptr_t)out;
    *lt_st = rlhf__lt_run(cu, p, o, s->rows);
    if (o->d == s->out || *lt_st != RLHF__LT_SUCCESS) return RLHF_OK;
    return rlhf__cuda_check(cu, "copy of a product",
                            cudaMemcpyAsync(s->out, o->d, d, cudaMemcpyDeviceToDevice, cu->stream));
}

// ---- a bias before a result in bf16 ----
//
// The library would want the bias in bf16, too. It makes sum + bias in f32 in a workspace, some
// rows at a time so that they stay in the cache, and they are rounded from there: the own product's
// rounding. The way over f32 is 8 bytes an output against 2 * depth operations, so it is taken for
// deep products only.

enum { BIAS_DEPTH = 1024, THREADS = 256, EACH = 8, ROWS_LEAST = 128 };
#ifdef __CUDACC__
enum { BIAS_BYTES = 32 << 20 };
#else
enum { BIAS_BYTES = 1 }; // as few rows at a time as there may be: so tests see several turns
#endif

// to[rows, to_ld] = from[rows, from_ld]; a thread has 8 columns, `across` of them make a row.
template <bool WIDE>
static __global__ void __launch_bounds__(THREADS)
    round_rows(rlhf__bf16 *to, uint64_t to_ld, const float *from, uint64_t from_ld, unsigned cols,
               unsigned across, unsigned n) {
    const unsigned i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    const unsigned row = i / across, col = i % across * EACH;
    const float *line = from + row * from_ld;
    float low[4], high[4], v[EACH];
    rlhf__load<true>(low, line, col, cols);
    rlhf__load<true>(high, line, col + 4, cols);
#pragma unroll
    for (int j = 0; j < 4; j++) {
        v[j] = low[j];
        v[4 + j] = high[j];
    }
    rlhf__store<WIDE>(to + row * to_ld, v, col, cols);
}

static rlhf_status rounded(struct rlhf__cuda *cu, const struct rlhf__cuda_product_spec *s,
                           int *taken) {
    struct rlhf__cuda_product_spec part = *s;
    const uint64_t ld = ((uint64_t)s->cols + 3) / 4 * 4;
    const unsigned across = (s->cols + EACH - 1) / EACH;
    uint64_t step = BIAS_BYTES / (ld * sizeof(float)) / ROWS_LEAST * ROWS_LEAST;
    if (!step) step = ROWS_LEAST;
    void *ws = NULL;
    part.out_dtype = RLHF_F32;
    part.out_ld = ld;
    const struct rlhf__lt_shape shape = shape_of(rlhf__lt_of(cu), &part);
    struct rlhf__lt_plan *p = NULL;
    if (!s->rows_exact || s->left.across || s->depth < BIAS_DEPTH) return RLHF_OK;
    RLHF_TRY(rlhf__lt_plan_of(cu, &shape, &p));
    if (!p || !s->rows) return RLHF_OK;
    const uint64_t most = s->rows < step ? s->rows : step;
    RLHF_TRY(rlhf__cuda_workspace(cu, RLHF__CUDA_WS_PRODUCT, most * ld * sizeof(float), &ws));
    rlhf__bf16 *out = (rlhf__bf16 *)s->out;
    const bool wide = rlhf__aligned<EACH>(out, s->out_ld);
    part.out = ws;
    for (uint64_t from = 0; from < s->rows; from += step) {
        part.rows = s->rows - from < step ? s->rows - (uint32_t)from : (uint32_t)step;
        part.left.ptr =
            (const char *)s->left.ptr + from * s->left.ld * rlhf_dtype_size(s->in_dtype);
        RLHF_TRY(rlhf__lt_product(cu, &part, taken));
        if (!*taken) return RLHF_OK; // RLHF_CUDA_LT=free: the own product makes all rows
        const unsigned n = part.rows * across;
        const dim3 grid((n + THREADS - 1) / THREADS);
        rlhf__bf16 *to = out + from * s->out_ld;
        if (wide)
            RUN(cu, round_rows<true>, grid, dim3(THREADS), 0, to, s->out_ld, (const float *)ws, ld,
                s->cols, across, n);
        else
            RUN(cu, round_rows<false>, grid, dim3(THREADS), 0, to, s->out_ld, (const float *)ws, ld,
                s->cols, across, n);
    }
    return RLHF_OK;
}

// ---- all others ----

rlhf_status rlhf__lt_product(struct rlhf__cuda *cu, const struct rlhf__cuda_product_spec *s,
                             int *taken) {
    const struct rlhf__lt_shape shape = shape_of(rlhf__lt_of(cu), s);
    struct rlhf__lt_plan *p = NULL;
    struct rlhf__lt_operands o = {s->right.ptr, s->left.ptr, s->addend, s->out, s->bias};
    rlhf__lt_status lt_st;
    *taken = 0;
    if (s->bias && s->out_dtype == RLHF_BF16 && s->cols) return rounded(cu, s, taken);
    if (!s->cols || (s->rows_exact ? !s->depth : !s->rows)) return RLHF_OK;
    RLHF_TRY(rlhf__lt_plan_of(cu, &shape, &p));
    if (!p || !s->rows || !s->depth) return RLHF_OK;
    void *ws = NULL; // made here, where its want is a sentence
    if (p->workspace) RLHF_TRY(rlhf__cuda_workspace(cu, RLHF__CUDA_WS_LIBRARY, p->workspace, &ws));
    const int copies = odd(o.a) || odd(o.b) || odd(o.c) || odd(o.d) || odd(o.bias);
    if (!copies)
        lt_st = rlhf__lt_run(cu, p, &o, s->rows_exact ? s->rows : s->depth);
    else if (s->rows_exact)
        RLHF_TRY(run_on_copies(cu, p, s, &o, &lt_st));
    else
        return RLHF_OK;
    // A sum over rows may be too short for the algorithm, which depends on their number alone.
    // Nothing else makes a product change hands: its bits would depend on it.
    const int refused = lt_st == RLHF__LT_NOT_SUPPORTED || lt_st == RLHF__LT_INVALID_VALUE;
    if (!shape.exact && refused) return RLHF_OK;
    if (lt_st != RLHF__LT_SUCCESS)
        return rlhf__cuda_fail(cu, RLHF_E_DEVICE, "a product of %u x %u over %u: cuBLASLt says %s",
                               s->rows, s->cols, s->depth,
                               rlhf__lt_of(cu)->api.cublasLtGetStatusName(lt_st));
    *taken = 1;
    return RLHF_OK;
}

// One shape of a weight [k, n] that rows are multiplied with, forward or, with across, back.
static rlhf_status prepare(struct rlhf__cuda *cu, const struct rlhf_weight *w, int32_t n,
                           int across, int32_t out_dtype, const float *bias) {
    struct rlhf__cuda_product_spec s = {};
    int taken;
    s.cols = (uint32_t)(across ? w->k : n);
    s.depth = (uint32_t)(across ? n : w->k);
    s.in_dtype = w->dtype;
    s.out_dtype = out_dtype;
    s.left.ld = s.depth;
    s.right = {w->ptr, (uint64_t)w->k_pad, across};
    s.bias = bias;
    s.out_ld = s.cols;
    s.rows_exact = 1;
    return s.cols <= RLHF__CUDA_DOT_COLS ? RLHF_OK : cu->library(cu, &s, &taken);
}

// The shape of a weight's gradient; derivatives of outputs lie in lines of n.
static rlhf_status prepare_sum(struct rlhf__cuda *cu, const struct rlhf_weight *w, int32_t n) {
    const bool out_in = (w->flags & RLHF_WEIGHT_OUT_IN) != 0;
    const struct rlhf__cuda_operand in = {w->ptr, (uint64_t)w->k, 1},
                                    out = {w->ptr, (uint64_t)n, 1};
    struct rlhf__cuda_product_spec s = {};
    int taken;
    s.rows = (uint32_t)(out_in ? w->n : w->k);
    s.cols = (uint32_t)(out_in ? w->k : w->n);
    s.in_dtype = w->dtype;
    s.out_dtype = RLHF_F32;
    s.left = out_in ? out : in;
    s.right = out_in ? in : out;
    s.out_ld = s.cols;
    return cu->library(cu, &s, &taken);
}

rlhf_status rlhf__lt_prepare(struct rlhf__cuda *cu, const struct rlhf_weight *w) {
    const float *any = (const float *)w->ptr; // that there is a bias; nobody reads it
    const int backward = (w->flags & RLHF_WEIGHT_BACKWARD) != 0;
    if (!cu->library || rlhf__lt_of(cu)->free) return RLHF_OK;
    for (int across = 0; across <= backward; across++) {
        RLHF_TRY(prepare(cu, w, w->n, across, RLHF_F32, NULL));
        if (w->dtype == RLHF_BF16) RLHF_TRY(prepare(cu, w, w->n, across, RLHF_BF16, NULL));
    }
    RLHF_TRY(prepare(cu, w, w->n, 0, RLHF_F32, any));
    if (w->dtype == RLHF_BF16) RLHF_TRY(prepare(cu, w, w->n, 0, RLHF_BF16, any));
    // The LM head's rows are as wide as the weight is with what fills it up.
    RLHF_TRY(prepare(cu, w, w->n_pad, 0, RLHF_F32, NULL));
    if (!backward) return RLHF_OK;
    RLHF_TRY(prepare(cu, w, w->n_pad, 1, w->dtype, NULL));
    RLHF_TRY(prepare_sum(cu, w, w->n));
    return prepare_sum(cu, w, w->n_pad);
}
