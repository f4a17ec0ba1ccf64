// lt_search.cu: finds cuBLASLt's algorithms for a shape, among the algorithms that the library
// offers at two fixed row counts.
#include "product/lt_plan.h"

#include <new>
#include <string.h>

enum { OFFERS = 16 };

static const uint64_t search_rows[2] = {RLHF__LT_ROWS_LARGE, RLHF__LT_ROWS_SMALL};
// Row counts that the algorithm must support.
static const uint64_t check_rows[] = {1, 17, 256, 513, 16384};

// The arithmetic that an algorithm may use: TF32 and the emulation of f32 by smaller types are not
// allowed.
static uint64_t impl_allowed(const struct rlhf__lt_shape *s) {
    if (s->dtype == RLHF_F32)
        return RLHF__LT_IMPL_FMA | RLHF__LT_IMPL_SUM_32F | RLHF__LT_IMPL_IN_32F;
    return RLHF__LT_IMPL_FMA | RLHF__LT_IMPL_TENSOR | RLHF__LT_IMPL_SUM_32F |
           RLHF__LT_IMPL_IN_16BF | RLHF__LT_IMPL_IN_32F;
}

static rlhf__lt_status pref_set(struct rlhf__cuda_lt *lt, rlhf__lt_pref pref,
                                const struct rlhf__lt_plan *p) {
    const uint32_t reduction = p->shape.exact ? RLHF__LT_REDUCTION_NONE : RLHF__LT_REDUCTION_ALL;
    const uint32_t align = RLHF__LT_ALIGN;
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

// The identity of an algorithm, without the shape for which it was found.
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

// Check an offer, because the library may offer algorithms that were not asked for. k must not be
// split, the arithmetic must be allowed, and alignment to 16 bytes must be enough.
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
            align > RLHF__LT_ALIGN)
            return 0;
    }
    return 1;
}

static int runs_on_all(struct rlhf__cuda_lt *lt, struct rlhf__lt_plan *p,
                       const rlhf__lt_algo *algo) {
    for (uint64_t rows : check_rows) {
        if (!p->shape.exact && rows < RLHF__LT_ROWS_SMALL) continue; // may use own kernels
        rlhf__lt_found f;
        memset(&f, 0, sizeof f);
        if (rlhf__lt_rows_set(lt, p, rows) != RLHF__LT_SUCCESS ||
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

// The offers of the library at a row count, in its order. Offers that do not fit are left out.
static void offers_get(struct rlhf__cuda_lt *lt, struct rlhf__lt_plan *p, rlhf__lt_pref pref,
                       uint64_t rows, struct offers *to) {
    int n = 0;
    to->n = 0;
    if (rlhf__lt_rows_set(lt, p, rows) != RLHF__LT_SUCCESS ||
        lt->api.cublasLtMatmulAlgoGetHeuristic(lt->handle, p->desc, p->a, p->b, p->d, p->d, pref,
                                               OFFERS, to->found, &n) != RLHF__LT_SUCCESS)
        return;
    for (int i = 0; i < n; i++) {
        struct config c;
        if (!offer_fits(lt, p, &to->found[i], &c) ||
            (!lt->free && !runs_on_all(lt, p, &to->found[i].algo)))
            continue;
        to->found[to->n] = to->found[i];
        to->config[to->n++] = c;
    }
}

// The index of an algorithm in a list; OFFERS if the list does not contain it.
static int place(const struct offers *in, const struct config *c) {
    int i = 0;
    while (i < in->n && memcmp(&in->config[i], c, sizeof *c) != 0)
        i++;
    return i < in->n ? i : OFFERS;
}

// Sort all offers by the sum of their indices in the lists of the two row counts. If two sums are
// equal, the order at the large count decides.
static int rank(struct rlhf__lt_candidates *out, const struct offers *large,
                const struct offers *small) {
    out->n = 0;
    for (int sum = 0; sum < 2 * OFFERS; sum++) {
        for (int i = 0; i < large->n && out->n < RLHF__LT_CANDIDATES; i++)
            if (i + place(small, &large->config[i]) == sum)
                out->algo[out->n++] = large->found[i].algo;
        for (int i = 0; i < small->n && out->n < RLHF__LT_CANDIDATES; i++)
            if (place(large, &small->config[i]) == OFFERS && i + OFFERS == sum)
                out->algo[out->n++] = small->found[i].algo;
    }
    return out->n > 0;
}

// Collects candidates from the offers at one or two row counts.
static int search(struct rlhf__cuda_lt *lt, struct rlhf__lt_plan *p, const uint64_t *rows, int n,
                  struct rlhf__lt_candidates *out) {
    rlhf__lt_pref pref = NULL;
    struct offers *o = new (std::nothrow) struct offers[2]();
    int found = 0;
    if (o && lt->api.cublasLtMatmulPreferenceCreate(&pref) == RLHF__LT_SUCCESS) {
        if (pref_set(lt, pref, p) == RLHF__LT_SUCCESS) {
            for (int i = 0; i < n; i++)
                offers_get(lt, p, pref, rows[i], &o[i]);
            found = rank(out, &o[0], &o[1]);
        }
        lt->api.cublasLtMatmulPreferenceDestroy(pref);
    }
    delete[] o;
    return found;
}

int rlhf__lt_search(struct rlhf__cuda_lt *lt, struct rlhf__lt_plan *p,
                    struct rlhf__lt_candidates *out) {
    return search(lt, p, search_rows, 2, out);
}

int rlhf__lt_search_at(struct rlhf__cuda_lt *lt, struct rlhf__lt_plan *p, uint64_t rows) {
    struct rlhf__lt_candidates found;
    const int any = search(lt, p, &rows, 1, &found);
    if (any) p->algo[0] = found.algo[0];
    p->searched = any ? rows : 0;
    return any;
}
