// test_fake_lt.c: the fake cuBLASLt computes correct sums, and rejects every broken rule with the
// right message. If the fake accepted a call that the library rejects, tests would not notice when
// the backend makes such a call.
#include "cuda/fake_lt.h"
#include "support/check.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rlhf__lt_api lt;
static struct {
#define MEMBER(name, result, params) result(*name) params;
    FAKE_LT_EXTRAS(MEMBER)
#undef MEMBER
} extra;

static int load(void **state) {
    (void)state;
    char path[4096];
    const char *build = getenv("RLHF_BUILD_DIR");
    if (!build) fail_msg("RLHF_BUILD_DIR is not set; run through ctest");
    snprintf(path, sizeof path, "%s/tests/cuda/fake_cublaslt.so", build);
    setenv("FAKE_LT_ANSWER", "1", 1);
    void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!so) fail_msg("%s", dlerror());
#define FIND(to, name)                                                                             \
    {                                                                                              \
        void *f = dlsym(so, #name);                                                                \
        if (!f) fail_msg("%s lacks %s", path, #name);                                              \
        memcpy(&(to).name, &f, sizeof f);                                                          \
    }
#define FIND_LT(name, result, params)    FIND(lt, name)
#define FIND_EXTRA(name, result, params) FIND(extra, name)
    RLHF__LT_FUNCTIONS(FIND_LT)
    FAKE_LT_EXTRAS(FIND_EXTRA)
    return 0;
}

// ---- one correct GEMM ----

enum { M = 24, N = 10, K = 16, OFFERS = 8 };

struct problem {
    rlhf__lt_handle h;
    rlhf__lt_desc o;
    rlhf__lt_layout a, b, c, d;
    rlhf__lt_pref p;
    rlhf__lt_found found[OFFERS];
    int n;
    _Alignas(256) float am[M * K + 64];
    _Alignas(256) float bm[N * K + 64];
    _Alignas(256) float cm[N * M + 64];
    _Alignas(256) float dm[N * M + 64];
    _Alignas(256) float bias[M + 64];
    _Alignas(256) char workspace[65536];
    float alpha, beta;
    // Arguments of the call.
    const void *A, *B, *C, *alpha_p, *beta_p;
    void *D, *W;
    size_t bytes;
};

#define LT_OK(call)                                                                                \
    do {                                                                                           \
        const int st_ = (call);                                                                    \
        if (st_) fail_msg("%s: %d, %s", #call, st_, extra.fake_lt_why());                          \
    } while (0)

static void set_desc(struct problem *p, int attribute, const void *v, size_t size) {
    LT_OK(lt.cublasLtMatmulDescSetAttribute(p->o, attribute, v, size));
}
static void set_layout(rlhf__lt_layout l, int attribute, const void *v, size_t size) {
    LT_OK(lt.cublasLtMatrixLayoutSetAttribute(l, attribute, v, size));
}
static void set_pref(struct problem *p, int attribute, const void *v, size_t size) {
    LT_OK(lt.cublasLtMatmulPreferenceSetAttribute(p->p, attribute, v, size));
}

static struct problem *problem_make(int type) {
    struct problem *p = aligned_alloc(256, (sizeof *p + 255) / 256 * 256);
    memset(p, 0, sizeof *p);
    for (int i = 0; i < M * K; i++)
        p->am[i] = (float)(i * 7 % 13 - 6);
    for (int i = 0; i < N * K; i++)
        p->bm[i] = (float)(i * 5 % 11 - 5);
    for (int i = 0; i < N * M; i++)
        p->cm[i] = (float)(i % 17);
    for (int i = 0; i < M; i++)
        p->bias[i] = (float)i;
    const int32_t t = RLHF__LT_OP_T;
    const uint32_t epilogue = RLHF__LT_EPILOGUE_BIAS;
    const void *bias = p->bias;
    const uint64_t impl = RLHF__LT_IMPL_FMA | RLHF__LT_IMPL_TENSOR | RLHF__LT_IMPL_SUM_32F |
                          RLHF__LT_IMPL_IN_32F | RLHF__LT_IMPL_IN_16BF;
    const uint32_t align = 16, none = RLHF__LT_REDUCTION_NONE;
    LT_OK(lt.cublasLtCreate(&p->h));
    LT_OK(lt.cublasLtMatmulDescCreate(&p->o, RLHF__LT_COMPUTE_32F, RLHF__LT_R_32F));
    set_desc(p, RLHF__LT_DESC_TRANSA, &t, sizeof t);
    set_desc(p, RLHF__LT_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    set_desc(p, RLHF__LT_DESC_BIAS, &bias, sizeof bias);
    LT_OK(lt.cublasLtMatrixLayoutCreate(&p->a, type, K, M, K));
    LT_OK(lt.cublasLtMatrixLayoutCreate(&p->b, type, K, N, K));
    LT_OK(lt.cublasLtMatrixLayoutCreate(&p->c, RLHF__LT_R_32F, M, N, M));
    LT_OK(lt.cublasLtMatrixLayoutCreate(&p->d, RLHF__LT_R_32F, M, N, M));
    LT_OK(lt.cublasLtMatmulPreferenceCreate(&p->p));
    set_pref(p, RLHF__LT_PREF_REDUCTION, &none, sizeof none);
    set_pref(p, RLHF__LT_PREF_IMPL, &impl, sizeof impl);
    for (int i = RLHF__LT_PREF_ALIGN_A; i <= RLHF__LT_PREF_ALIGN_D; i++)
        set_pref(p, i, &align, sizeof align);
    LT_OK(lt.cublasLtMatmulAlgoGetHeuristic(p->h, p->o, p->a, p->b, p->c, p->d, p->p, OFFERS,
                                            p->found, &p->n));
    assert_true(p->n >= 2);
    p->alpha = 1;
    p->beta = 1;
    p->alpha_p = &p->alpha;
    p->beta_p = &p->beta;
    p->A = p->am;
    p->B = p->bm;
    p->C = p->cm;
    p->D = p->dm;
    p->W = p->workspace;
    p->bytes = sizeof p->workspace;
    return p;
}

static int multiply(struct problem *p) {
    return lt.cublasLtMatmul(p->h, p->o, p->alpha_p, p->A, p->a, p->B, p->b, p->beta_p, p->C, p->c,
                             p->D, p->d, &p->found[0].algo, p->W, p->bytes, NULL);
}

static void problem_free(struct problem *p) {
    lt.cublasLtMatmulPreferenceDestroy(p->p);
    rlhf__lt_layout all[] = {p->a, p->b, p->c, p->d};
    for (int i = 0; i < 4; i++)
        if (all[i]) lt.cublasLtMatrixLayoutDestroy(all[i]);
    if (p->o) lt.cublasLtMatmulDescDestroy(p->o);
    if (p->h) LT_OK(lt.cublasLtDestroy(p->h));
    free(p);
}

static void sums(void **state) {
    (void)state;
    struct problem *p = problem_make(RLHF__LT_R_32F);
    const uint64_t before = extra.fake_lt_products();
    LT_OK(multiply(p));
    assert_int_equal(extra.fake_lt_products(), before + 1);
    for (int j = 0; j < N; j++)
        for (int i = 0; i < M; i++) {
            float want = p->cm[j * M + i] + p->bias[i];
            for (int l = 0; l < K; l++)
                want += p->am[i * K + l] * p->bm[j * K + l];
            assert_true(p->dm[j * M + i] == want); // small integers: exact
        }
    problem_free(p);
}

// ---- broken rules ----

// Each of these functions breaks one rule and returns the status.
#define BREAK(name) static int name(struct problem *p)

static int bad_desc(struct problem *p, int attribute, const void *v, size_t size) {
    return lt.cublasLtMatmulDescSetAttribute(p->o, attribute, v, size);
}
static int with_layout(struct problem *p, rlhf__lt_layout l, int attribute, uint64_t v,
                       size_t size) {
    LT_OK(lt.cublasLtMatrixLayoutSetAttribute(l, attribute, &v, size));
    return multiply(p);
}

BREAK(attribute_size) { return bad_desc(p, RLHF__LT_DESC_TRANSA, "12345678", 8); }
BREAK(attribute_unknown) { return bad_desc(p, 99, "1234", 4); }
BREAK(attribute_null) { return bad_desc(p, RLHF__LT_DESC_TRANSA, NULL, 4); }
BREAK(layout_attribute) {
    return lt.cublasLtMatrixLayoutSetAttribute(p->a, RLHF__LT_LAYOUT_COLS, "1234", 4);
}
BREAK(pref_attribute) {
    return lt.cublasLtMatmulPreferenceSetAttribute(p->p, RLHF__LT_PREF_WORKSPACE, "1234", 4);
}
BREAK(transposition) {
    const int32_t two = 2;
    return bad_desc(p, RLHF__LT_DESC_TRANSA, &two, sizeof two);
}
BREAK(epilogue_unknown) {
    const uint32_t gelu = 32;
    return bad_desc(p, RLHF__LT_DESC_EPILOGUE, &gelu, sizeof gelu);
}
BREAK(compute_type) {
    (void)p;
    rlhf__lt_desc o;
    return lt.cublasLtMatmulDescCreate(&o, 77, RLHF__LT_R_32F);
}
BREAK(scale_type) {
    (void)p;
    rlhf__lt_desc o;
    return lt.cublasLtMatmulDescCreate(&o, RLHF__LT_COMPUTE_32F, RLHF__LT_R_16BF);
}
BREAK(layout_type) {
    (void)p;
    rlhf__lt_layout l;
    return lt.cublasLtMatrixLayoutCreate(&l, 2, 8, 8, 8);
}
BREAK(handle) {
    return lt.cublasLtMatmul(NULL, p->o, p->alpha_p, p->A, p->a, p->B, p->b, p->beta_p, p->C, p->c,
                             p->D, p->d, &p->found[0].algo, p->W, p->bytes, NULL);
}
BREAK(descriptor) {
    return lt.cublasLtMatmul(p->h, NULL, p->alpha_p, p->A, p->a, p->B, p->b, p->beta_p, p->C, p->c,
                             p->D, p->d, &p->found[0].algo, p->W, p->bytes, NULL);
}
BREAK(no_layout) {
    return lt.cublasLtMatmul(p->h, p->o, p->alpha_p, p->A, NULL, p->B, p->b, p->beta_p, p->C, p->c,
                             p->D, p->d, &p->found[0].algo, p->W, p->bytes, NULL);
}
BREAK(order) { return with_layout(p, p->a, RLHF__LT_LAYOUT_ORDER, 1, 4); }
BREAK(empty) { return with_layout(p, p->a, RLHF__LT_LAYOUT_COLS, 0, 8); }
BREAK(leading_dimension) { return with_layout(p, p->a, RLHF__LT_LAYOUT_LD, K - 4, 8); }
BREAK(types_of_operands) { return with_layout(p, p->b, RLHF__LT_LAYOUT_TYPE, RLHF__LT_R_16BF, 4); }
BREAK(types_of_results) { return with_layout(p, p->c, RLHF__LT_LAYOUT_TYPE, RLHF__LT_R_16BF, 4); }
BREAK(bf16_of_f32) {
    const uint32_t bf16 = RLHF__LT_R_16BF;
    set_layout(p->c, RLHF__LT_LAYOUT_TYPE, &bf16, 4);
    return with_layout(p, p->d, RLHF__LT_LAYOUT_TYPE, bf16, 4);
}
BREAK(unknown_type) {
    const uint32_t half = 2;
    set_layout(p->a, RLHF__LT_LAYOUT_TYPE, &half, 4);
    return with_layout(p, p->b, RLHF__LT_LAYOUT_TYPE, half, 4);
}
BREAK(depth) { return with_layout(p, p->b, RLHF__LT_LAYOUT_ROWS, K - 8, 8); }
BREAK(size_of_d) { return with_layout(p, p->d, RLHF__LT_LAYOUT_COLS, N - 1, 8); }
BREAK(size_of_c) { return with_layout(p, p->c, RLHF__LT_LAYOUT_COLS, N - 1, 8); }
BREAK(layout_of_c) { return with_layout(p, p->c, RLHF__LT_LAYOUT_LD, M + 4, 8); }
BREAK(bias_type) {
    const int32_t bf16 = RLHF__LT_R_16BF;
    set_desc(p, RLHF__LT_DESC_BIAS_TYPE, &bf16, sizeof bf16);
    return multiply(p);
}
BREAK(bias_missing) {
    const void *none = NULL;
    set_desc(p, RLHF__LT_DESC_BIAS, &none, sizeof none);
    return multiply(p);
}
BREAK(bias_alignment) {
    const void *odd = p->bias + 1;
    set_desc(p, RLHF__LT_DESC_BIAS, &odd, sizeof odd);
    return multiply(p);
}
BREAK(a_alignment) { return p->A = p->am + 1, multiply(p); }
BREAK(b_alignment) { return p->B = p->bm + 1, multiply(p); }
BREAK(c_alignment) { return p->C = p->cm + 1, multiply(p); }
BREAK(d_alignment) { return p->D = p->dm + 1, multiply(p); }
BREAK(a_missing) { return p->A = NULL, multiply(p); }
BREAK(d_missing) { return p->D = NULL, multiply(p); }
BREAK(alpha_missing) { return p->alpha_p = NULL, multiply(p); }
BREAK(ld_alignment) { return with_layout(p, p->a, RLHF__LT_LAYOUT_LD, K + 1, 8); }
BREAK(d_is_an_operand) { return p->D = p->am, multiply(p); }
BREAK(c_half_over_d) { return p->C = p->dm + 4, multiply(p); }
BREAK(workspace_alignment) { return p->W = p->workspace + 16, multiply(p); }
BREAK(workspace_missing) { return p->W = NULL, multiply(p); }
BREAK(workspace_too_small) { // of an algorithm that splits k
    const uint32_t all = RLHF__LT_REDUCTION_ALL;
    const uint64_t bytes = sizeof p->workspace;
    set_pref(p, RLHF__LT_PREF_REDUCTION, &all, sizeof all);
    set_pref(p, RLHF__LT_PREF_WORKSPACE, &bytes, sizeof bytes);
    LT_OK(lt.cublasLtMatmulAlgoGetHeuristic(p->h, p->o, p->a, p->b, p->c, p->d, p->p, OFFERS,
                                            p->found, &p->n));
    p->found[0] = p->found[1];
    assert_true(p->found[0].workspace > 0);
    p->bytes = p->found[0].workspace - 256;
    return multiply(p);
}
BREAK(algorithm_missing) {
    return lt.cublasLtMatmul(p->h, p->o, p->alpha_p, p->A, p->a, p->B, p->b, p->beta_p, p->C, p->c,
                             p->D, p->d, NULL, p->W, p->bytes, NULL);
}
BREAK(algorithm_made_up) { return p->found[0].algo.data[0]++, multiply(p); }
BREAK(algorithm_of_another) { // the algorithm was found with a bias
    const uint32_t plain = RLHF__LT_EPILOGUE_DEFAULT;
    set_desc(p, RLHF__LT_DESC_EPILOGUE, &plain, sizeof plain);
    return multiply(p);
}
BREAK(check_algorithm_of_another) {
    rlhf__lt_found f;
    const uint32_t plain = RLHF__LT_EPILOGUE_DEFAULT;
    set_desc(p, RLHF__LT_DESC_EPILOGUE, &plain, sizeof plain);
    return lt.cublasLtMatmulAlgoCheck(p->h, p->o, p->a, p->b, p->c, p->d, &p->found[0].algo, &f);
}
BREAK(search_without_preference) {
    return lt.cublasLtMatmulAlgoGetHeuristic(p->h, p->o, p->a, p->b, p->c, p->d, NULL, OFFERS,
                                             p->found, &p->n);
}
BREAK(search_for_nothing) {
    return lt.cublasLtMatmulAlgoGetHeuristic(p->h, p->o, p->a, p->b, p->c, p->d, p->p, 0, p->found,
                                             &p->n);
}
BREAK(config_size) {
    int64_t v;
    return lt.cublasLtMatmulAlgoConfigGetAttribute(&p->found[0].algo, RLHF__LT_CONFIG_INNER, &v, 4,
                                                   NULL);
}
BREAK(capability_size) {
    int64_t v;
    return lt.cublasLtMatmulAlgoCapGetAttribute(&p->found[0].algo, RLHF__LT_CAP_IMPL, &v, 4, NULL);
}
BREAK(config_of_nothing) {
    (void)p;
    const rlhf__lt_algo none = {{0}};
    int32_t v;
    return lt.cublasLtMatmulAlgoConfigGetAttribute(&none, RLHF__LT_CONFIG_ID, &v, 4, NULL);
}
BREAK(capability_of_nothing) {
    (void)p;
    const rlhf__lt_algo none = {{0}};
    uint64_t v;
    return lt.cublasLtMatmulAlgoCapGetAttribute(&none, RLHF__LT_CAP_IMPL, &v, 8, NULL);
}
BREAK(destroyed_as_another) {
    return lt.cublasLtMatrixLayoutDestroy((rlhf__lt_layout)(void *)p->o);
}
BREAK(left_behind) {
    rlhf__lt_handle h = p->h;
    p->h = NULL;
    return lt.cublasLtDestroy(h);
}

BREAK(layout_b) { return with_layout(p, p->b, RLHF__LT_LAYOUT_ORDER, 1, 4); }
BREAK(layout_c) { return with_layout(p, p->c, RLHF__LT_LAYOUT_ORDER, 1, 4); }
BREAK(layout_d) { return with_layout(p, p->d, RLHF__LT_LAYOUT_ORDER, 1, 4); }
BREAK(unknown_result) {
    const uint32_t half = 2;
    set_layout(p->c, RLHF__LT_LAYOUT_TYPE, &half, 4);
    return with_layout(p, p->d, RLHF__LT_LAYOUT_TYPE, half, 4);
}
BREAK(layout_of_another_kind) {
    return lt.cublasLtMatrixLayoutSetAttribute((rlhf__lt_layout)(void *)p->o, RLHF__LT_LAYOUT_ORDER,
                                               "\0\0\0", 4);
}
BREAK(descriptor_of_another_kind) {
    return lt.cublasLtMatmulDescSetAttribute((rlhf__lt_desc)(void *)p->a, RLHF__LT_DESC_TRANSA,
                                             "\0\0\0", 4);
}
BREAK(preference_of_another_kind) {
    return lt.cublasLtMatmulPreferenceSetAttribute((rlhf__lt_pref)(void *)p->a,
                                                   RLHF__LT_PREF_REDUCTION, "\0\0\0", 4);
}
BREAK(handle_of_another_kind) { return lt.cublasLtDestroy((rlhf__lt_handle)(void *)p->a); }
BREAK(search_for_a_wrong_product) {
    const uint64_t rows = 8;
    set_layout(p->b, RLHF__LT_LAYOUT_ROWS, &rows, sizeof rows);
    return lt.cublasLtMatmulAlgoGetHeuristic(p->h, p->o, p->a, p->b, p->c, p->d, p->p, OFFERS,
                                             p->found, &p->n);
}
BREAK(check_of_a_wrong_product) {
    rlhf__lt_found f;
    const uint64_t rows = 8;
    set_layout(p->b, RLHF__LT_LAYOUT_ROWS, &rows, sizeof rows);
    return lt.cublasLtMatmulAlgoCheck(p->h, p->o, p->a, p->b, p->c, p->d, &p->found[0].algo, &f);
}
BREAK(check_without_result) {
    return lt.cublasLtMatmulAlgoCheck(p->h, p->o, p->a, p->b, p->c, p->d, &p->found[0].algo, NULL);
}

static const struct {
    const char *name, *sentence; // sentence: part of the message
    int (*call)(struct problem *);
} rules[] = {
#define ROW(name, sentence)                                                                        \
    { #name, sentence, name }
    ROW(attribute_size, "attribute 3: 8 bytes, it has 4"),
    ROW(attribute_unknown, "attribute 99 is none"),
    ROW(attribute_null, "no value"),
    ROW(layout_attribute, "layout attribute 3: 4 bytes, it has 8"),
    ROW(pref_attribute, "preference attribute 1: 4 bytes"),
    ROW(transposition, "a transposition"),
    ROW(epilogue_unknown, "epilogue 32"),
    ROW(compute_type, "compute type 77"),
    ROW(scale_type, "scale type 14"),
    ROW(layout_type, "type 2"),
    ROW(handle, "no handle"),
    ROW(descriptor, "no descriptor"),
    ROW(no_layout, "A has no layout"),
    ROW(order, "column-major"),
    ROW(empty, "A is empty"),
    ROW(leading_dimension, "leading dimension 12 below"),
    ROW(types_of_operands, "A and B have types"),
    ROW(types_of_results, "C and D have types"),
    ROW(bf16_of_f32, "f32 operands"),
    ROW(unknown_type, "A has type 2"),
    ROW(depth, "op(A) has depth 16, op(B) 8"),
    ROW(size_of_d, "D is 24 x 9"),
    ROW(size_of_c, "C does not have the size"),
    ROW(layout_of_c, "does not lie as D does"),
    ROW(bias_type, "the bias has type"),
    ROW(bias_missing, "there is none"),
    ROW(bias_alignment, "the bias is not at a multiple of 16"),
    ROW(a_alignment, "A is not at a multiple of 16"),
    ROW(b_alignment, "B is not at a multiple of 16"),
    ROW(c_alignment, "C is not at a multiple of 16"),
    ROW(d_alignment, "D is not at a multiple of 16"),
    ROW(a_missing, "A is NULL"),
    ROW(d_missing, "D is NULL"),
    ROW(alpha_missing, "alpha and beta"),
    ROW(ld_alignment, "a leading dimension of 17"),
    ROW(d_is_an_operand, "D overlaps an operand"),
    ROW(c_half_over_d, "C overlaps D"),
    ROW(workspace_alignment, "workspace is not at"),
    ROW(workspace_missing, "workspace is not at"),
    ROW(workspace_too_small, "needed are"),
    ROW(algorithm_missing, "no algorithm"),
    ROW(algorithm_made_up, "the search did not find"),
    ROW(algorithm_of_another, "another descriptor"),
    ROW(check_algorithm_of_another, "another descriptor"),
    ROW(search_without_preference, "no preference"),
    ROW(search_for_nothing, "nowhere to put"),
    ROW(config_size, "configuration attribute 7: 4 bytes, it has 2"),
    ROW(capability_size, "capability attribute 15: 4 bytes, it has 8"),
    ROW(config_of_nothing, "not an algorithm"),
    ROW(capability_of_nothing, "not an algorithm"),
    ROW(destroyed_as_another, "not an object of this kind"),
    ROW(left_behind, "descriptors are left"),
    ROW(layout_b, "B: order 1"),
    ROW(layout_c, "C: order 1"),
    ROW(layout_d, "D: order 1"),
    ROW(unknown_result, "D has type 2"),
    ROW(layout_of_another_kind, "not a layout"),
    ROW(descriptor_of_another_kind, "not a descriptor"),
    ROW(preference_of_another_kind, "not a preference"),
    ROW(handle_of_another_kind, "destroy: no handle"),
    ROW(search_for_a_wrong_product, "op(A) has depth"),
    ROW(check_of_a_wrong_product, "op(A) has depth"),
    ROW(check_without_result, "nowhere to put the result"),
#undef ROW
};

static void refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < CHECK_COUNT(rules); i++) {
        struct problem *p = problem_make(RLHF__LT_R_32F);
        LT_OK(multiply(p));
        const uint64_t before = extra.fake_lt_products();
        const int st = rules[i].call(p);
        if (!st) fail_msg("%s: accepted", rules[i].name);
        if (!strstr(extra.fake_lt_why(), rules[i].sentence))
            fail_msg("%s: refused with \"%s\", expected \"%s\"", rules[i].name, extra.fake_lt_why(),
                     rules[i].sentence);
        assert_int_equal(extra.fake_lt_products(), before);
        problem_free(p);
    }
    printf("  %zu broken rules, all refused\n", CHECK_COUNT(rules));
}

// The preferences of a search decide which algorithms are offered.
static void search(void **state) {
    (void)state;
    struct problem *p = problem_make(RLHF__LT_R_32F);
    const uint64_t anything = ~(uint64_t)0, workspace = sizeof p->workspace;
    const uint64_t usual = RLHF__LT_IMPL_FMA | RLHF__LT_IMPL_SUM_32F | RLHF__LT_IMPL_IN_32F;
    const uint32_t all = RLHF__LT_REDUCTION_ALL, four = 4;
    uint64_t impl = 0;
    int32_t split = 0;
    size_t written;
#define SEARCH()                                                                                   \
    LT_OK(lt.cublasLtMatmulAlgoGetHeuristic(p->h, p->o, p->a, p->b, p->c, p->d, p->p, OFFERS,      \
                                            p->found, &p->n))
    const int plain = p->n;
    set_pref(p, RLHF__LT_PREF_WORKSPACE, &workspace, sizeof workspace);
    SEARCH();
    assert_int_equal(p->n, plain + 1);
    assert_int_equal(p->found[0].workspace, workspace);
    set_pref(p, RLHF__LT_PREF_REDUCTION, &all, sizeof all);
    SEARCH();
    assert_int_equal(p->n, 2);
    for (int i = 0; i < 2; i++) {
        LT_OK(lt.cublasLtMatmulAlgoConfigGetAttribute(&p->found[i].algo, RLHF__LT_CONFIG_SPLITK,
                                                      &split, sizeof split, &written));
        assert_int_equal(split, 4);
    }
    set_pref(p, RLHF__LT_PREF_IMPL, &anything, sizeof anything);
    SEARCH();
    assert_int_equal(p->n, 1);
    LT_OK(lt.cublasLtMatmulAlgoCapGetAttribute(&p->found[0].algo, RLHF__LT_CAP_IMPL, &impl,
                                               sizeof impl, &written));
    assert_true(impl & RLHF__LT_IMPL_IN_TF32);
    set_pref(p, RLHF__LT_PREF_IMPL, &usual, sizeof usual);
    set_pref(p, RLHF__LT_PREF_ALIGN_B, &four, sizeof four);
    SEARCH();
    assert_int_equal(p->n, 1); // the algorithm that supports any address
    problem_free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums), cmocka_unit_test(refusals),
                                       cmocka_unit_test(search)};
    return cmocka_run_group_tests_name("cuda: the fake cuBLASLt", tests, load, NULL);
}
