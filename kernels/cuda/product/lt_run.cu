// lt_run.cu: runs GEMMs with a plan of cuBLASLt.
#include "product/lt_plan.h"

// Sets the row count of the next calls. It is the number of columns in two layouts: the layouts of
// x and out or, in a sum over rows, the layouts of the two factors.
rlhf__lt_status rlhf__lt_rows_set(struct rlhf__cuda_lt *lt, struct rlhf__lt_plan *p,
                                  uint64_t rows) {
    if (p->rows == rows || (p->shape.n && p->shape.k)) return RLHF__LT_SUCCESS;
    rlhf__lt_layout has[2] = {p->b, p->shape.n ? p->a : p->d};
    p->rows = 0; // invalid until all layouts are set
    for (int i = 0; i < 2; i++)
        LT_TRY(lt->api.cublasLtMatrixLayoutSetAttribute(has[i], RLHF__LT_LAYOUT_COLS, &rows,
                                                        sizeof rows));
    p->rows = rows;
    return RLHF__LT_SUCCESS;
}

rlhf__lt_status rlhf__lt_run_as(struct rlhf__cuda *cu, struct rlhf__lt_plan *p,
                                const rlhf__lt_algo *algo, const struct rlhf__lt_operands *o,
                                uint32_t rows) {
    struct rlhf__cuda_lt *lt = rlhf__lt_of(cu);
    const float one = 1, beta = o->c ? 1 : 0;
    void *ws = NULL;
    LT_TRY(rlhf__lt_rows_set(lt, p, rows));
    if (p->shape.bias)
        LT_TRY(lt->api.cublasLtMatmulDescSetAttribute(p->desc, RLHF__LT_DESC_BIAS, &o->bias,
                                                      sizeof o->bias));
    if (p->workspace && rlhf__cuda_workspace(cu, RLHF__CUDA_WS_LIBRARY, p->workspace, &ws) < 0)
        return RLHF__LT_ALLOC_FAILED;
    return lt->api.cublasLtMatmul(lt->handle, p->desc, &one, o->a, p->a, o->b, p->b, &beta,
                                  o->c ? o->c : o->d, p->d, o->d, p->d, algo, ws, p->workspace,
                                  cu->stream);
}

rlhf__lt_status rlhf__lt_run(struct rlhf__cuda *cu, struct rlhf__lt_plan *p,
                             const struct rlhf__lt_operands *o, uint32_t rows) {
    struct rlhf__cuda_lt *lt = rlhf__lt_of(cu);
    const struct rlhf__lt_shape *s = &p->shape;
    if (lt->free && p->searched != rows && !rlhf__lt_search_at(lt, p, rows))
        return RLHF__LT_NOT_SUPPORTED;
    const rlhf__lt_algo *algo = &p->algo[!lt->free && rows > RLHF__LT_FEW];
    if (!s->exact || rows <= p->proved) return rlhf__lt_run_as(cu, p, algo, o, rows);
    const uint64_t x_row = (uint64_t)s->ldb * rlhf_dtype_size(s->dtype),
                   out_row = (uint64_t)s->ldd * rlhf_dtype_size(s->out_dtype);
    for (uint64_t from = 0; from < rows; from += p->proved) {
        struct rlhf__lt_operands part = *o;
        part.b = (const char *)o->b + from * x_row;
        part.c = o->c ? (const char *)o->c + from * out_row : NULL;
        part.d = (char *)o->d + from * out_row;
        const uint64_t n = rows - from < p->proved ? rows - from : p->proved;
        LT_TRY(rlhf__lt_run_as(cu, p, algo, &part, (uint32_t)n));
    }
    return RLHF__LT_SUCCESS;
}
