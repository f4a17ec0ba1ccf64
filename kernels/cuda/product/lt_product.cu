// lt_product.cu: translates a GEMM of product.h into the terms of the library.
//
// A row-major out [rows, cols] is a column-major D [cols, rows]. So the right operand becomes the
// library's A, and the left operand becomes the library's B.
#include "machine/mathf.h"
#include "product/lt_plan.h"
#include "product/product_tile.h"
#include "product/weight.h"

#include <string.h>

static struct rlhf__lt_shape shape_of(const struct rlhf__cuda_lt *lt,
                                      const struct rlhf__cuda_product_spec *s) {
    struct rlhf__lt_shape t;
    const int over_rows = !s->rows_exact && s->left.across && s->right.across;
    memset(&t, 0, sizeof t); // because structs are compared as bytes
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

// The number of bytes from the first to the last element of `lines` lines.
static uint64_t extent(uint64_t lines, uint64_t ld, uint64_t width, int32_t dtype) {
    return ((lines - 1) * ld + width) * rlhf_dtype_size(dtype);
}

static uint64_t operand_bytes(const struct rlhf__cuda_operand *o, uint32_t lines, uint32_t depth,
                              int32_t dtype) {
    return o->across ? extent(depth, o->ld, lines, dtype) : extent(lines, o->ld, depth, dtype);
}

// Replaces a misaligned operand with an aligned copy, so that its address does not change the bits.
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

// Runs a GEMM with a misaligned operand on copies of its operands.
static rlhf_status run_on_copies(struct rlhf__cuda *cu, struct rlhf__lt_plan *p,
                                 const struct rlhf__cuda_product_spec *s,
                                 struct rlhf__lt_operands *o, rlhf__lt_status *lt_st) {
    const uint64_t a = operand_bytes(&s->right, s->cols, s->depth, s->in_dtype),
                   b = operand_bytes(&s->left, s->rows, s->depth, s->in_dtype),
                   d = extent(s->rows, s->out_ld, s->cols, s->out_dtype), bias = s->cols * 4ull;
    void *ws;
    RLHF_TRY(rlhf__cuda_workspace(cu, RLHF__CUDA_WS_COPIES, a + b + 2 * d + bias + 5 * 256, &ws));
    char *at = (char *)ws;
    RLHF_TRY(straighten(cu, &o->a, a, &at));
    RLHF_TRY(straighten(cu, &o->b, b, &at));
    RLHF_TRY(straighten(cu, &o->c, d, &at));
    RLHF_TRY(straighten(cu, &o->bias, bias, &at));
    // The old output is copied too, because the gaps between its rows must not change.
    const void *out = o->d;
    RLHF_TRY(straighten(cu, &out, d, &at));
    o->d = (void *)(uintptr_t)out;
    *lt_st = rlhf__lt_run(cu, p, o, s->rows);
    if (o->d == s->out || *lt_st != RLHF__LT_SUCCESS) return RLHF_OK;
    return rlhf__cuda_check(cu, "copy of a product",
                            cudaMemcpyAsync(s->out, o->d, d, cudaMemcpyDeviceToDevice, cu->stream));
}

// ---- a bias, if the result is bf16 ----

enum { THREADS = 256 };

static __global__ void __launch_bounds__(THREADS)
    round_bias(rlhf__bf16 *to, const float *from, unsigned n) {
    const unsigned i = blockIdx.x * THREADS + threadIdx.x;
    if (i < n) rlhf__put(to, i, from[i]);
}

// A copy of the bias in bf16, as the library requires for a bf16 result.
static rlhf_status rounded(struct rlhf__cuda *cu, const float *bias, uint32_t n, const void **out) {
    void *ws = NULL;
    RLHF_TRY(rlhf__cuda_workspace(cu, RLHF__CUDA_WS_PRODUCT, rlhf__lt_bias_bytes(n), &ws));
    RUN(cu, round_bias, dim3((n + THREADS - 1) / THREADS), dim3(THREADS), 0, (rlhf__bf16 *)ws, bias,
        n);
    *out = ws;
    return RLHF_OK;
}

// ---- GEMMs ----

rlhf_status rlhf__lt_product(struct rlhf__cuda *cu, const struct rlhf__cuda_product_spec *s,
                             int *taken) {
    const struct rlhf__lt_shape shape = shape_of(rlhf__lt_of(cu), s);
    struct rlhf__lt_plan *p = NULL;
    struct rlhf__lt_operands o = {s->right.ptr, s->left.ptr, s->addend, s->out, s->bias};
    rlhf__lt_status lt_st;
    *taken = 0;
    if (!s->cols || (s->rows_exact ? !s->depth : !s->rows)) return RLHF_OK;
    RLHF_TRY(rlhf__lt_plan_of(cu, &shape, &p));
    if (!p || !s->rows || !s->depth) return RLHF_OK;
    void *ws = NULL; // allocate here, where a failure has an error text
    if (p->workspace) RLHF_TRY(rlhf__cuda_workspace(cu, RLHF__CUDA_WS_LIBRARY, p->workspace, &ws));
    if (s->bias && s->out_dtype == RLHF_BF16) RLHF_TRY(rounded(cu, s->bias, s->cols, &o.bias));
    if (shape.exact) RLHF_TRY(rlhf__lt_prove_more(cu, p, s->rows));
    const int copies = odd(o.a) || odd(o.b) || odd(o.c) || odd(o.d) || odd(o.bias);
    if (!copies)
        lt_st = rlhf__lt_run(cu, p, &o, s->rows_exact ? s->rows : s->depth);
    else if (s->rows_exact)
        RLHF_TRY(run_on_copies(cu, p, s, &o, &lt_st));
    else
        return RLHF_OK;
    // The algorithm may refuse a sum over too few rows. In this case own kernels are used, and this
    // choice depends only on the number of rows. After any other failure, own kernels must not be
    // used, because the bits would then depend on the failure.
    const int refused = lt_st == RLHF__LT_NOT_SUPPORTED || lt_st == RLHF__LT_INVALID_VALUE;
    if (!shape.exact && refused) return RLHF_OK;
    if (lt_st != RLHF__LT_SUCCESS)
        return rlhf__cuda_fail(cu, RLHF_E_DEVICE, "a product of %u x %u over %u: cuBLASLt says %s",
                               s->rows, s->cols, s->depth,
                               rlhf__lt_of(cu)->api.cublasLtGetStatusName(lt_st));
    *taken = 1;
    return RLHF_OK;
}

// Chooses the algorithm for one shape of the product of rows and a weight [k, n]: the forward
// product or, if `across` is set, the backward product.
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

// Chooses the algorithm for the gradient of a weight. `n` is the row stride of the derivatives of
// the outputs.
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
    const float *any = (const float *)w->ptr; // only shows that there is a bias; it is not read
    const int backward = (w->flags & RLHF_WEIGHT_BACKWARD) != 0;
    if (!cu->library || rlhf__lt_of(cu)->free) return RLHF_OK;
    for (int across = 0; across <= backward; across++) {
        RLHF_TRY(prepare(cu, w, w->n, across, RLHF_F32, NULL));
        if (w->dtype == RLHF_BF16) RLHF_TRY(prepare(cu, w, w->n, across, RLHF_BF16, NULL));
    }
    RLHF_TRY(prepare(cu, w, w->n, 0, RLHF_F32, any));
    if (w->dtype == RLHF_BF16) RLHF_TRY(prepare(cu, w, w->n, 0, RLHF_BF16, any));
    // The LM head's rows of logits are as wide as the weight with its padding.
    RLHF_TRY(prepare(cu, w, w->n_pad, 0, RLHF_F32, NULL));
    if (!backward) return RLHF_OK;
    RLHF_TRY(prepare(cu, w, w->n_pad, 1, w->dtype, NULL));
    RLHF_TRY(prepare_sum(cu, w, w->n));
    return prepare_sum(cu, w, w->n_pad);
}
