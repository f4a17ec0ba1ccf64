// lt_plan.cu: one algorithm of cuBLASLt for each shape, chosen once from what the library offers at
// two fixed row counts, and the products made with it.
#include "lt.h"

#include <new>
#include <string.h>

enum { ALIGN = 16, OFFERS = 16, DW_WORKSPACE = 32 << 20 };

// A large microbatch, and the rows of a decode step.
static const uint64_t search_rows[2] = {16384, 256};
// What the algorithm must be able to run on.
static const uint64_t check_rows[] = {1, 17, 256, 513, 16384};

struct rlhf__lt_plan {
    struct rlhf__lt_plan *next;
    struct rlhf__lt_shape shape;
    int own; // made by the own product
    rlhf__lt_desc desc;
    rlhf__lt_layout a, b, d; // C lies as D does
    rlhf__lt_algo algo;
    uint64_t workspace; // it may take
    uint64_t rows;      // what the layouts say now
};

#define LT_TRY(expr)                                                                               \
    do {                                                                                           \
        const rlhf__lt_status lt_st = (expr);                                                      \
        if (lt_st != RLHF__LT_SUCCESS) return lt_st;                                               \
    } while (0)

static void plan_free(struct rlhf__cuda_lt *lt, struct rlhf__lt_plan *p) {
    if (!p) return;
    if (p->d) lt->api.cublasLtMatrixLayoutDestroy(p->d);
    if (p->b) lt->api.cublasLtMatrixLayoutDestroy(p->b);
    if (p->a) lt->api.cublasLtMatrixLayoutDestroy(p->a);
    if (p->desc) lt->api.cublasLtMatmulDescDestroy(p->desc);
    delete p;
}

void rlhf__lt_plans_free(struct rlhf__cuda_lt *lt) {
    while (lt->plans) {
        struct rlhf__lt_plan *p = lt->plans;
        lt->plans = p->next;
        plan_free(lt, p);
    }
}

// ---- descriptors ----

static int lt_type(int32_t dtype) { return dtype == RLHF_BF16 ? RLHF__LT_R_16BF : RLHF__LT_R_32F; }

// Shapes that the library's table of types has, with leading dimensions that the fast kernels take.
static int shape_fits(const struct rlhf__lt_shape *s) {
    const int64_t in = (int64_t)rlhf_dtype_size(s->dtype),
                  out = (int64_t)rlhf_dtype_size(s->out_dtype);
    if (s->dtype == RLHF_F32 && s->out_dtype != RLHF_F32) return 0;
    if (s->exact && s->trans_b) return 0; // rows that do not lie together: nobody has them
    // With D in bf16 the library wants a bias in bf16; ours is f32 and is added before rounding.
    if (s->bias && s->out_dtype != RLHF_F32) return 0;
    return s->lda * in % ALIGN == 0 && s->ldb * in % ALIGN == 0 && s->ldd * out % ALIGN == 0;
}

static rlhf__lt_status desc_make(struct rlhf__cuda_lt *lt, struct rlhf__lt_plan *p) {
    const struct rlhf__lt_shape *s = &p->shape;
    const int32_t ta = s->trans_a ? RLHF__LT_OP_T : RLHF__LT_OP_N;
    const int32_t tb = s->trans_b ? RLHF__LT_OP_T : RLHF__LT_OP_N;
    const uint32_t epilogue = s->bias ? RLHF__LT_EPILOGUE_BIAS : RLHF__LT_EPILOGUE_DEFAULT;
    // The search reads no bias, only how its address is aligned.
    const void *const aligned = (const void *)(uintptr_t)ALIGN;
    const int32_t f32 = RLHF__LT_R_32F;
    LT_TRY(lt->api.cublasLtMatmulDescCreate(&p->desc, RLHF__LT_COMPUTE_32F, RLHF__LT_R_32F));
#define SET(attribute, value)                                                                      \
    LT_TRY(lt->api.cublasLtMatmulDescSetAttribute(p->desc, attribute, &(value), sizeof(value)))
    SET(RLHF__LT_DESC_TRANSA, ta);
    SET(RLHF__LT_DESC_TRANSB, tb);
    SET(RLHF__LT_DESC_EPILOGUE, epilogue);
    if (s->bias) {
        SET(RLHF__LT_DESC_BIAS, aligned);
        SET(RLHF__LT_DESC_BIAS_TYPE, f32);
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

// The layouts say `rows`. It is the number of columns of those that have it: x and out, or the two
// factors of a sum over rows.
static rlhf__lt_status rows_set(struct rlhf__cuda_lt *lt, struct rlhf__lt_plan *p, uint64_t rows) {
    if (p->rows == rows) return RLHF__LT_SUCCESS;
    rlhf__lt_layout has[2] = {p->b, p->shape.n ? p->a : p->d};
    p->rows = 0; // half set is not set
    for (int i = 0; i < 2; i++)
        LT_TRY(lt->api.cublasLtMatrixLayoutSetAttribute(has[i], RLHF__LT_LAYOUT_COLS, &rows,
                                                        sizeof rows));
    p->rows = rows;
    return RLHF__LT_SUCCESS;
}

// ---- the search ----

// Arithmetic that an algorithm may use: no TF32, no emulation of f32 by smaller types.
static uint64_t impl_allowed(const struct rlhf__lt_shape *s) {
    if (s->dtype == RLHF_F32)
        return RLHF__LT_IMPL_FMA | RLHF__LT_IMPL_SUM_32F | RLHF__LT_IMPL_IN_32F;
    return RLHF__LT_IMPL_FMA | RLHF__LT_IMPL_TENSOR | RLHF__LT_IMPL_SUM_32F |
           RLHF__LT_IMPL_IN_16BF | RLHF__LT_IMPL_IN_32F;
}

static rlhf__lt_status pref_set(struct rlhf__cuda_lt *lt, rlhf__lt_pref pref,
                                const struct rlhf__lt_plan *p) {
    const uint32_t reduction = p->shape.exact ? RLHF__LT_REDUCTION_NONE : RLHF__LT_REDUCTION_ALL;
    const uint32_t align = ALIGN;
    const uint64_t impl = impl_allowed(&p->shape);
#define SET(attribute, value)                                                                      \
    LT_TRY(lt->api.cublasLtMatmulPreferenceSetAttribute(pref, attribute, &(value), sizeof(value)))
    SET(RLHF__LT_PREF_WORKSPACE, p->workspace);
    SET(RLHF__LT_PREF_REDUCTION, reduction);
    SET(RLHF__LT_PREF_IMPL, impl);
    for (int a = RLHF__LT_PREF_ALIGN_A; a <= RLHF__LT_PREF_ALIGN_D; a++)
        SET(a, align);
#undef SET
    return RLHF__LT_SUCCESS;
}

struct config {
    int64_t v[RLHF__LT_CONFIG_CLUSTER + 1];
};

// What an algorithm is, apart from the shape it was found for.
static rlhf__lt_status config_get(struct rlhf__cuda_lt *lt, const rlhf__lt_algo *algo,
                                  struct config *to) {
    memset(to, 0, sizeof *to);
    for (int i = 0; i <= RLHF__LT_CONFIG_CLUSTER; i++) {
        const size_t size = i == RLHF__LT_CONFIG_INNER || i == RLHF__LT_CONFIG_CLUSTER ? 2 : 4;
        size_t written = 0;
        LT_TRY(lt->api.cublasLtMatmulAlgoConfigGetAttribute(algo, i, &to->v[i], size, &written));
    }
    return RLHF__LT_SUCCESS;
}

// The library may offer what was not asked for: k is in one piece, the arithmetic is allowed, and
// addresses at multiples of 16 bytes are enough.
static int offer_fits(struct rlhf__cuda_lt *lt, const struct rlhf__lt_plan *p,
                      const rlhf__lt_found *f, struct config *config) {
    uint64_t impl = 0;
    size_t written = 0;
    if (f->state != RLHF__LT_SUCCESS || f->workspace > p->workspace) return 0;
    if (config_get(lt, &f->algo, config) != RLHF__LT_SUCCESS) return 0;
    if (p->shape.exact && (config->v[RLHF__LT_CONFIG_SPLITK] > 1 ||
                           config->v[RLHF__LT_CONFIG_REDUCTION] != RLHF__LT_REDUCTION_NONE))
        return 0;
    if (lt->api.cublasLtMatmulAlgoCapGetAttribute(&f->algo, RLHF__LT_CAP_IMPL, &impl, sizeof impl,
                                                  &written) != RLHF__LT_SUCCESS ||
        impl & ~impl_allowed(&p->shape))
        return 0;
    for (int a = RLHF__LT_CAP_ALIGN_A; a <= RLHF__LT_CAP_ALIGN_D; a++) {
        uint32_t align = 0;
        if (lt->api.cublasLtMatmulAlgoCapGetAttribute(&f->algo, a, &align, sizeof align,
                                                      &written) != RLHF__LT_SUCCESS ||
            align > ALIGN)
            return 0;
    }
    return 1;
}

static int runs_on_all(struct rlhf__cuda_lt *lt, struct rlhf__lt_plan *p,
                       const rlhf__lt_algo *algo) {
    for (uint64_t rows : check_rows) {
        if (!p->shape.exact && rows < search_rows[1]) continue; // a short sum may change hands
        rlhf__lt_found f;
        memset(&f, 0, sizeof f);
        if (rows_set(lt, p, rows) != RLHF__LT_SUCCESS ||
            lt->api.cublasLtMatmulAlgoCheck(lt->handle, p->desc, p->a, p->b, p->d, p->d, algo,
                                            &f) != RLHF__LT_SUCCESS ||
            f.workspace > p->workspace)
            return 0;
    }
    return 1;
}

struct offers {
    int n;
    rlhf__lt_found found[OFFERS];
    struct config config[OFFERS];
};

// What the library offers at a row count, in its order, less what does not fit.
static void offers_get(struct rlhf__cuda_lt *lt, struct rlhf__lt_plan *p, rlhf__lt_pref pref,
                       uint64_t rows, struct offers *to) {
    int n = 0;
    to->n = 0;
    if (rows_set(lt, p, rows) != RLHF__LT_SUCCESS ||
        lt->api.cublasLtMatmulAlgoGetHeuristic(lt->handle, p->desc, p->a, p->b, p->d, p->d, pref,
                                               OFFERS, to->found, &n) != RLHF__LT_SUCCESS)
        return;
    for (int i = 0; i < n; i++) {
        struct config c;
        if (!offer_fits(lt, p, &to->found[i], &c) || !runs_on_all(lt, p, &to->found[i].algo))
            continue;
        to->found[to->n] = to->found[i];
        to->config[to->n++] = c;
    }
}

// The choice: what is offered at both row counts, with the least sum of places in the two lists
// (the large one's order decides between equals); else the first of the large, else of the small.
static int choose(struct rlhf__lt_plan *p, const struct offers *large, const struct offers *small) {
    int best = -1, best_sum = 0;
    for (int i = 0; i < large->n; i++)
        for (int j = 0; j < small->n; j++)
            if (memcmp(&large->config[i], &small->config[j], sizeof large->config[i]) == 0 &&
                (best < 0 || i + j < best_sum)) {
                best = i;
                best_sum = i + j;
            }
    if (best < 0 && large->n) best = 0;
    if (best >= 0)
        p->algo = large->found[best].algo;
    else if (small->n)
        p->algo = small->found[0].algo;
    else
        return 0;
    return 1;
}

// Finds the plan's algorithm; 0 when the library has none.
static int search(struct rlhf__cuda_lt *lt, struct rlhf__lt_plan *p) {
    rlhf__lt_pref pref = NULL;
    struct offers *o = new (std::nothrow) struct offers[2]();
    int found = 0;
    if (o && lt->api.cublasLtMatmulPreferenceCreate(&pref) == RLHF__LT_SUCCESS) {
        if (pref_set(lt, pref, p) == RLHF__LT_SUCCESS) {
            for (int i = 0; i < 2; i++)
                offers_get(lt, p, pref, search_rows[i], &o[i]);
            found = choose(p, &o[0], &o[1]);
        }
        lt->api.cublasLtMatmulPreferenceDestroy(pref);
    }
    delete[] o;
    return found;
}

// ---- plans ----

// Makes the plan of a new shape: the library's when it fits, is offered, and is row exact.
static rlhf_status plan_make(struct rlhf__cuda *cu, struct rlhf__lt_plan *p) {
    struct rlhf__cuda_lt *lt = cu->lt;
    int same = 1;
    p->own = 1;
    p->workspace = p->shape.exact ? 0 : DW_WORKSPACE;
    if (!shape_fits(&p->shape)) return RLHF_OK;
    if (desc_make(lt, p) != RLHF__LT_SUCCESS ||
        layouts_make(lt, p, search_rows[0]) != RLHF__LT_SUCCESS || !search(lt, p)) {
        lt->offered_none++;
        rlhf__lt_say(cu);
        return RLHF_OK;
    }
    if (p->shape.exact) RLHF_TRY(rlhf__lt_canary(cu, p, &p->shape, &same));
    p->own = !same;
    if (!same) {
        lt->not_exact++;
        rlhf__lt_say(cu);
    }
    return RLHF_OK;
}

rlhf_status rlhf__lt_plan_of(struct rlhf__cuda *cu, const struct rlhf__lt_shape *s,
                             struct rlhf__lt_plan **out) {
    struct rlhf__cuda_lt *lt = cu->lt;
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

// ---- products ----

rlhf__lt_status rlhf__lt_run(struct rlhf__cuda *cu, struct rlhf__lt_plan *p,
                             const struct rlhf__lt_operands *o, uint32_t rows) {
    struct rlhf__cuda_lt *lt = cu->lt;
    const float one = 1, beta = o->c ? 1 : 0;
    void *ws = NULL;
    LT_TRY(rows_set(lt, p, rows));
    if (p->shape.bias)
        LT_TRY(lt->api.cublasLtMatmulDescSetAttribute(p->desc, RLHF__LT_DESC_BIAS, &o->bias,
                                                      sizeof o->bias));
    if (p->workspace && rlhf__cuda_workspace(cu, RLHF__CUDA_WS_LIBRARY, p->workspace, &ws) < 0)
        return RLHF__LT_ALLOC_FAILED;
    return lt->api.cublasLtMatmul(lt->handle, p->desc, &one, o->a, p->a, o->b, p->b, &beta,
                                  o->c ? o->c : o->d, p->d, o->d, p->d, &p->algo, ws, p->workspace,
                                  cu->stream);
}
