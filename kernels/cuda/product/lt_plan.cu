// lt_plan.cu: one plan of cuBLASLt for each shape.
#include "product/lt_plan.h"

#include <new>
#include <string.h>

static void plan_free(struct rlhf__cuda_lt *lt, struct rlhf__lt_plan *p) {
    if (!p) return;
    if (p->d) lt->api.cublasLtMatrixLayoutDestroy(p->d);
    if (p->b) lt->api.cublasLtMatrixLayoutDestroy(p->b);
    if (p->a) lt->api.cublasLtMatrixLayoutDestroy(p->a);
    if (p->desc) lt->api.cublasLtMatmulDescDestroy(p->desc);
    delete p;
}

void rlhf__lt_plans_finish(struct rlhf__cuda_lt *lt) {
    while (lt->plans) {
        struct rlhf__lt_plan *p = lt->plans;
        lt->plans = p->next;
        plan_free(lt, p);
    }
}

// ---- descriptors ----

static int lt_type(int32_t dtype) { return dtype == RLHF_BF16 ? RLHF__LT_R_16BF : RLHF__LT_R_32F; }

// True if the library supports the types of the shape, and its fast kernels support the leading
// dimensions.
static int shape_fits(const struct rlhf__lt_shape *s) {
    const int64_t in = (int64_t)rlhf_dtype_size(s->dtype),
                  out = (int64_t)rlhf_dtype_size(s->out_dtype);
    if (s->dtype == RLHF_F32 && s->out_dtype != RLHF_F32) return 0;
    if (s->exact && s->trans_b) return 0; // rows that are not contiguous do not occur
    return s->lda * in % RLHF__LT_ALIGN == 0 && s->ldb * in % RLHF__LT_ALIGN == 0 &&
           s->ldd * out % RLHF__LT_ALIGN == 0;
}

static rlhf__lt_status desc_make(struct rlhf__cuda_lt *lt, struct rlhf__lt_plan *p) {
    const struct rlhf__lt_shape *s = &p->shape;
    const int32_t ta = s->trans_a ? RLHF__LT_OP_T : RLHF__LT_OP_N;
    const int32_t tb = s->trans_b ? RLHF__LT_OP_T : RLHF__LT_OP_N;
    const uint32_t epilogue = s->bias ? RLHF__LT_EPILOGUE_BIAS : RLHF__LT_EPILOGUE_DEFAULT;
    // The search does not read the bias; it only looks at the alignment of its address.
    const void *const aligned = (const void *)(uintptr_t)RLHF__LT_ALIGN;
    const int32_t bias_type = lt_type(s->out_dtype);
    LT_TRY(lt->api.cublasLtMatmulDescCreate(&p->desc, RLHF__LT_COMPUTE_32F, RLHF__LT_R_32F));
#define SET(attribute, value)                                                                      \
    LT_TRY(lt->api.cublasLtMatmulDescSetAttribute(p->desc, attribute, &(value), sizeof(value)))
    SET(RLHF__LT_DESC_TRANSA, ta);
    SET(RLHF__LT_DESC_TRANSB, tb);
    SET(RLHF__LT_DESC_EPILOGUE, epilogue);
    if (s->bias) {
        SET(RLHF__LT_DESC_BIAS, aligned);
        SET(RLHF__LT_DESC_BIAS_TYPE, bias_type);
    }
#undef SET
    return RLHF__LT_SUCCESS;
}

static rlhf__lt_status layouts_make(struct rlhf__cuda_lt *lt, struct rlhf__lt_plan *p,
                                    uint64_t rows) {
    const struct rlhf__lt_shape *s = &p->shape;
    const int in = lt_type(s->dtype), out = lt_type(s->out_dtype);
    const uint64_t m = (uint64_t)s->m, n = s->n ? (uint64_t)s->n : rows,
                   k = s->k ? (uint64_t)s->k : rows;
    p->rows = rows;
    LT_TRY(lt->api.cublasLtMatrixLayoutCreate(&p->a, in, s->trans_a ? k : m, s->trans_a ? m : k,
                                              s->lda));
    LT_TRY(lt->api.cublasLtMatrixLayoutCreate(&p->b, in, s->trans_b ? n : k, s->trans_b ? k : n,
                                              s->ldb));
    return lt->api.cublasLtMatrixLayoutCreate(&p->d, out, m, n, s->ldd);
}

// ---- plans ----

// Make the plan of a new shape. The plan uses the library if the library supports the shape and
// offers an algorithm that passes the canary.
static rlhf_status plan_make(struct rlhf__cuda *cu, struct rlhf__lt_plan *p) {
    struct rlhf__cuda_lt *lt = rlhf__lt_of(cu);
    struct rlhf__lt_candidates found = {};
    p->own = 1;
    p->workspace = RLHF__LT_WORKSPACE;
    if (!shape_fits(&p->shape)) return RLHF_OK;
    if (desc_make(lt, p) != RLHF__LT_SUCCESS ||
        layouts_make(lt, p, RLHF__LT_ROWS_LARGE) != RLHF__LT_SUCCESS ||
        (!lt->free && !rlhf__lt_search(lt, p, &found))) {
        lt->offered_none++;
        rlhf__lt_log(lt, &p->shape, NULL, "own product: the library offers none");
        rlhf__lt_say(cu);
        return RLHF_OK;
    }
    if (lt->free) {
        p->own = 0;
        return RLHF_OK;
    }
    RLHF_TRY(rlhf__lt_choose(cu, p, &found));
    if (p->own) rlhf__lt_say(cu);
    return RLHF_OK;
}

rlhf_status rlhf__lt_plan_of(struct rlhf__cuda *cu, const struct rlhf__lt_shape *s,
                             struct rlhf__lt_plan **out) {
    struct rlhf__cuda_lt *lt = rlhf__lt_of(cu);
    struct rlhf__lt_plan *p = lt->plans;
    while (p && memcmp(&p->shape, s, sizeof *s) != 0)
        p = p->next;
    if (!p) {
        p = new (std::nothrow) rlhf__lt_plan();
        if (!p) return rlhf__cuda_fail(cu, RLHF_E_NOMEM, "out of host memory for a product");
        p->shape = *s;
        const rlhf_status st = plan_make(cu, p);
        if (st < 0) {
            plan_free(lt, p);
            return st;
        }
        p->next = lt->plans;
        lt->plans = p;
    }
    *out = p->own ? NULL : p;
    return RLHF_OK;
}
