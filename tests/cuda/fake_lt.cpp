// fake_lt.cpp: the functions of the fake cuBLASLt, under their real names. See fake_lt.h.
#include "fake_lt.h"
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

const uint64_t HANDLE = 0x68616e646c65, DESC = 0x64657363, LAYOUT = 0x6c61796f7574,
               PREF = 0x70726566, ALGO = 0x616c676f, GONE = 0xdead;

uint64_t n_products, n_short, widest;
int last_tile;
int n_handles, n_objects;
char why[256];

// emu_tick, if the fake runtime is in the process.
typedef void (*tick_fn)(float ms);
typedef int (*enqueue_fn)(void (*run)(void *), void *arg, void (*drop)(void *), CUstream_st *);

int mode(const char *name) {
    const char *m = getenv("FAKE_LT");
    return m && strcmp(m, name) == 0;
}

// Reports that a rule was broken.
__attribute__((format(printf, 2, 3))) int broken(int status, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    if (!getenv("FAKE_LT_ANSWER")) {
        fprintf(stderr, "fake cuBLASLt: %s\n", why);
        abort();
    }
    return status;
}
#define RULE(ok, ...)                                                                              \
    do {                                                                                           \
        if (!(ok)) return broken(RLHF__LT_INVALID_VALUE, __VA_ARGS__);                             \
    } while (0)
#define TRY(expr)                                                                                  \
    do {                                                                                           \
        const int try_st = (expr);                                                                 \
        if (try_st) return try_st;                                                                 \
    } while (0)

} // namespace

struct rlhf__lt_context {
    uint64_t magic;
    int hostile, unasked, none, restless, residue, unlike, giant;
    enqueue_fn enqueue; // NULL: GEMMs run at once
    tick_fn tick;
};
struct rlhf__lt_desc_mem {
    uint64_t magic;
    int32_t compute, scale, trans_a, trans_b;
    uint32_t epilogue;
    const void *bias;
    int32_t bias_type;
};
struct rlhf__lt_layout_mem {
    uint64_t magic;
    uint32_t type;
    int32_t order;
    uint64_t rows, cols;
    int64_t ld;
};
struct rlhf__lt_pref_mem {
    uint64_t magic, workspace, impl;
    uint32_t reduction, align[4];
};

namespace {

// Contents of the 64 opaque bytes of an algorithm.
struct algo {
    uint64_t magic;
    int32_t id, tile, split, reduction;
    uint32_t align; // alignment of A, B, C and D
    uint32_t sum;
    uint64_t impl, signature, spare[2];
};
static_assert(sizeof(algo) == sizeof(rlhf__lt_algo), "");

uint32_t type_size(uint32_t type) { return type == RLHF__LT_R_16BF ? 2 : 4; }

// An attribute of an object: its offset and size.
struct field {
    int attribute;
    void *at;
    size_t size;
};
template <size_t N>
int field_set(const char *of, const field (&fields)[N], int attribute, const void *buf,
              size_t size) {
    for (const field &f : fields) {
        if (f.attribute != attribute) continue;
        RULE(buf, "%s attribute %d: no value", of, attribute);
        RULE(size == f.size, "%s attribute %d: %zu bytes, it has %zu", of, attribute, size, f.size);
        memcpy(f.at, buf, size);
        return 0;
    }
    return broken(RLHF__LT_INVALID_VALUE, "%s attribute %d is none that is known", of, attribute);
}

template <class T> int create(T **out, uint64_t magic) {
    RULE(out, "create: nowhere to put it");
    *out = new T();
    (*out)->magic = magic;
    n_objects++;
    return 0;
}
template <class T> int destroy(T *p, uint64_t magic) {
    RULE(p && p->magic == magic, "destroy: not an object of this kind");
    p->magic = GONE;
    delete p;
    n_objects--;
    return 0;
}

// ---- rules of a GEMM ----

struct layouts {
    rlhf__lt_layout a, b, c, d;
};

int layout_rules(const char *name, rlhf__lt_layout l) {
    RULE(l && l->magic == LAYOUT, "%s has no layout", name);
    RULE(l->order == RLHF__LT_ORDER_COL, "%s: order %d, this is for column-major", name, l->order);
    RULE(l->rows && l->cols, "%s is empty", name);
    RULE(l->ld >= (int64_t)l->rows, "%s: leading dimension %lld below its %llu rows", name,
         (long long)l->ld, (unsigned long long)l->rows);
    return 0;
}

// The supported types with f32 sums: A and B have one type, C and D have one type.
int type_rules(const layouts &l) {
    RULE(l.a->type == l.b->type, "A and B have types %u and %u", l.a->type, l.b->type);
    RULE(l.c->type == l.d->type, "C and D have types %u and %u", l.c->type, l.d->type);
    const int ab16 = l.a->type == RLHF__LT_R_16BF, d16 = l.d->type == RLHF__LT_R_16BF;
    RULE(ab16 || l.a->type == RLHF__LT_R_32F, "A has type %u", l.a->type);
    RULE(d16 || l.d->type == RLHF__LT_R_32F, "D has type %u", l.d->type);
    RULE(ab16 || !d16, "f32 operands make an f32 product, not bf16");
    return 0;
}

int product_rules(rlhf__lt_handle h, rlhf__lt_desc o, const layouts &l) {
    if (!h || h->magic != HANDLE) return broken(RLHF__LT_NOT_INITIALIZED, "no handle");
    RULE(o && o->magic == DESC, "no descriptor");
    TRY(layout_rules("A", l.a));
    TRY(layout_rules("B", l.b));
    TRY(layout_rules("C", l.c));
    TRY(layout_rules("D", l.d));
    TRY(type_rules(l));
    const uint64_t m = o->trans_a ? l.a->cols : l.a->rows, ka = o->trans_a ? l.a->rows : l.a->cols,
                   n = o->trans_b ? l.b->rows : l.b->cols, kb = o->trans_b ? l.b->cols : l.b->rows;
    RULE(ka == kb, "op(A) has depth %llu, op(B) %llu", (unsigned long long)ka,
         (unsigned long long)kb);
    RULE(l.d->rows == m && l.d->cols == n, "D is %llu x %llu, the product %llu x %llu",
         (unsigned long long)l.d->rows, (unsigned long long)l.d->cols, (unsigned long long)m,
         (unsigned long long)n);
    RULE(l.c->rows == m && l.c->cols == n, "C does not have the size of D");
    if (o->epilogue == RLHF__LT_EPILOGUE_BIAS) {
        RULE(o->bias_type == -1 || o->bias_type == (int32_t)l.d->type,
             "the bias has type %d, D %u: they must be alike", o->bias_type, l.d->type);
        RULE(o->bias, "the epilogue adds a bias, and there is none");
    }
    return 0;
}

uint64_t signature_of(rlhf__lt_desc o, const layouts &l) {
    return (uint64_t)o->trans_a | (uint64_t)o->trans_b << 4 | (uint64_t)o->epilogue << 8 |
           (uint64_t)l.a->type << 16 | (uint64_t)l.d->type << 24;
}

// The largest power of two, up to 256, to which the columns of the matrix are aligned, in bytes.
uint32_t ld_alignment(rlhf__lt_layout l) {
    const uint64_t bytes = (uint64_t)l->ld * type_size(l->type);
    uint32_t a = 256;
    while (bytes % a)
        a /= 2;
    return a;
}

enum { IN_TURN = 5, IN_TURN_WORKSPACE = 65536 }; // an algorithm that distributes k dynamically

uint64_t workspace_of(const algo &x, const layouts &l) {
    if (x.id == IN_TURN) return IN_TURN_WORKSPACE;
    return x.reduction == FAKE_LT_COMPUTE_TYPE ? (uint64_t)x.split * l.d->rows * l.d->cols * 4 : 0;
}

float time_of(const algo &x, uint64_t cols) { // milliseconds
    const float tall = x.tile == FAKE_LT_TILE_128 ? 4.0f : 1.0f;
    return x.id == 2 ? 100.0f * (float)cols : cols <= 256 ? tall : (float)cols / tall;
}

int algo_rules(rlhf__lt_desc o, const layouts &l, const rlhf__lt_algo *in, algo *x) {
    RULE(in, "no algorithm");
    memcpy(x, in, sizeof *x);
    RULE(x->magic == ALGO, "an algorithm that the search did not find");
    RULE(x->signature == signature_of(o, l),
         "the algorithm was made for another descriptor or other types");
    const rlhf__lt_layout all[4] = {l.a, l.b, l.c, l.d};
    for (rlhf__lt_layout m : all)
        RULE(ld_alignment(m) >= x->align,
             "a leading dimension of %lld: the algorithm wants %u "
             "bytes",
             (long long)m->ld, x->align);
    return 0;
}

// ---- the search ----

struct offer_list {
    rlhf__lt_found *at;
    int cap, n;
};

void offer(offer_list *to, const layouts &l, uint64_t allowed, algo x) {
    if (to->n == to->cap) return;
    rlhf__lt_found *f = &to->at[to->n++];
    memset(f, 0, sizeof *f);
    x.magic = ALGO;
    memcpy(&f->algo, &x, sizeof x);
    f->workspace = workspace_of(x, l);
    f->state = f->workspace > allowed ? RLHF__LT_NOT_SUPPORTED : RLHF__LT_SUCCESS;
    f->waves = 1;
}

void offers(rlhf__lt_handle h, rlhf__lt_desc o, const layouts &l, rlhf__lt_pref p, offer_list *to) {
    const int f32 = l.a->type == RLHF__LT_R_32F;
    const uint32_t size = type_size(l.a->type);
    uint32_t align = 256;
    const rlhf__lt_layout all[4] = {l.a, l.b, l.c, l.d};
    for (int i = 0; i < 4; i++) {
        if (ld_alignment(all[i]) < align) align = ld_alignment(all[i]);
        if (p->align[i] < align) align = p->align[i];
    }
    const uint64_t one = f32 ? RLHF__LT_IMPL_FMA | RLHF__LT_IMPL_SUM_32F | RLHF__LT_IMPL_IN_32F
                             : 2 | RLHF__LT_IMPL_SUM_32F | RLHF__LT_IMPL_IN_16BF;
    const uint64_t tf32 = 2 | RLHF__LT_IMPL_SUM_32F | RLHF__LT_IMPL_IN_TF32;
    const uint64_t sig = signature_of(o, l);
    const uint32_t sum = h->hostile ? FAKE_LT_BY_COLS : h->giant ? FAKE_LT_GIANT : FAKE_LT_CHAIN;
    const algo tall = {0, 1, FAKE_LT_TILE_128, 1, 0, 16, sum, one, sig, {}};
    const uint32_t other = h->unlike ? (uint32_t)FAKE_LT_HALVES : sum;
    const algo small = {0, 1, FAKE_LT_TILE_64, 1, 0, 16, other, one, sig, {}};
    const algo any = {0, 2, FAKE_LT_TILE_64, 1, 0, size, sum, one, sig, {}};
    const algo cut = {0, 4, FAKE_LT_TILE_128, 1, 0, 16, FAKE_LT_TF32, tf32, sig, {}};
    algo split = {0, 3, FAKE_LT_TILE_128, 4, FAKE_LT_COMPUTE_TYPE, 16, FAKE_LT_SPLIT, one, sig, {}};
    if (h->hostile) split.sum = FAKE_LT_BY_COLS;
    if (h->restless || h->residue) split.sum = FAKE_LT_BY_TURN;
    algo in_place = split, in_turn = tall, wild = split;
    in_place.reduction = wild.reduction = FAKE_LT_IN_PLACE;
    in_turn.id = IN_TURN;
    in_turn.sum = wild.sum = FAKE_LT_BY_COLS;
    if (h->none) return;
    if (f32 && !(tf32 & ~p->impl)) return offer(to, l, p->workspace, cut);
    if (one & ~p->impl) return;
    if (h->unasked) offer(to, l, p->workspace, wild);
    if (h->unasked && f32) offer(to, l, p->workspace, cut);
    if (align >= 16 && p->reduction) {
        if (p->reduction & FAKE_LT_IN_PLACE) offer(to, l, p->workspace, in_place);
        if (p->reduction & FAKE_LT_COMPUTE_TYPE && workspace_of(split, l) <= p->workspace)
            offer(to, l, p->workspace, split);
        return;
    }
    if (align >= 16 && p->workspace >= IN_TURN_WORKSPACE) offer(to, l, p->workspace, in_turn);
    if (align >= 16) {
        offer(to, l, p->workspace, l.d->cols > 256 ? tall : small);
        offer(to, l, p->workspace, l.d->cols > 256 ? small : tall);
    }
    if (!h->hostile && align >= size) offer(to, l, p->workspace, any);
}

struct queued {
    fake_lt_work work;
};

int pointer_rules(const char *name, const void *p, uint32_t align) {
    RULE(p, "%s is NULL", name);
    RULE((uintptr_t)p % align == 0, "%s is not at a multiple of %u bytes", name, align);
    return 0;
}

int overlap(const void *p, rlhf__lt_layout l, const void *q, rlhf__lt_layout k) {
    const char *a = (const char *)p, *b = (const char *)q;
    const uint64_t an = ((l->cols - 1) * (uint64_t)l->ld + l->rows) * type_size(l->type),
                   bn = ((k->cols - 1) * (uint64_t)k->ld + k->rows) * type_size(k->type);
    return a < b + bn && b < a + an;
}

} // namespace

// ---- the library's functions ----

EXPORT uint64_t fake_lt_products(void) { return n_products; }
EXPORT int fake_lt_tile(void) { return last_tile == FAKE_LT_TILE_64 ? 64 : 128; }
EXPORT uint64_t fake_lt_largest(void) {
    const uint64_t n = widest;
    widest = 0;
    return n;
}
EXPORT const char *fake_lt_why(void) { return why; }

EXPORT size_t cublasLtGetVersion(void) {
    return mode("old") ? 110600 : mode("newer") ? 130200 : 130100;
}

EXPORT const char *cublasLtGetStatusName(int status) {
    return status == 0    ? "CUBLAS_STATUS_SUCCESS"
           : status == 1  ? "CUBLAS_STATUS_NOT_INITIALIZED"
           : status == 7  ? "CUBLAS_STATUS_INVALID_VALUE"
           : status == 15 ? "CUBLAS_STATUS_NOT_SUPPORTED"
                          : "CUBLAS_STATUS_INTERNAL_ERROR";
}

EXPORT int cublasLtCreate(rlhf__lt_handle *out) {
    RULE(out, "create: nowhere to put it");
    if (mode("nodriver")) return RLHF__LT_NOT_INITIALIZED;
    *out = new rlhf__lt_context();
    **out = {HANDLE,          mode("hostile"), mode("unasked"), mode("none"), mode("restless"),
             mode("residue"), mode("unlike"),  mode("giant"),   NULL,         NULL};
    // The caller is the backend. The file that contains it also contains the fake runtime.
    Dl_info from;
    void *so = NULL, *f = NULL;
    if (dladdr(__builtin_return_address(0), &from) && from.dli_fname)
        so = dlopen(from.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    if (so) f = dlsym(so, "emu_enqueue");
    memcpy(&(*out)->enqueue, &f, sizeof f);
    if (so) f = dlsym(so, "emu_tick");
    memcpy(&(*out)->tick, &f, sizeof f);
    if (so) dlclose(so);
    n_handles++;
    return 0;
}

EXPORT int cublasLtDestroy(rlhf__lt_handle h) {
    RULE(h && h->magic == HANDLE, "destroy: no handle");
    h->magic = GONE;
    delete h;
    n_handles--;
    RULE(n_handles || !n_objects, "the last handle goes, and %d descriptors are left", n_objects);
    return 0;
}

EXPORT int cublasLtMatrixLayoutCreate(rlhf__lt_layout *out, int type, uint64_t rows, uint64_t cols,
                                      int64_t ld) {
    RULE(type == RLHF__LT_R_32F || type == RLHF__LT_R_16BF, "layout: type %d", type);
    TRY(create(out, LAYOUT));
    (*out)->type = (uint32_t)type;
    (*out)->rows = rows;
    (*out)->cols = cols;
    (*out)->ld = ld;
    return 0;
}
EXPORT int cublasLtMatrixLayoutDestroy(rlhf__lt_layout l) { return destroy(l, LAYOUT); }
EXPORT int cublasLtMatrixLayoutSetAttribute(rlhf__lt_layout l, int attribute, const void *buf,
                                            size_t size) {
    RULE(l && l->magic == LAYOUT, "not a layout");
    const field fields[] = {{RLHF__LT_LAYOUT_TYPE, &l->type, 4},
                            {RLHF__LT_LAYOUT_ORDER, &l->order, 4},
                            {RLHF__LT_LAYOUT_ROWS, &l->rows, 8},
                            {RLHF__LT_LAYOUT_COLS, &l->cols, 8},
                            {RLHF__LT_LAYOUT_LD, &l->ld, 8}};
    return field_set("layout", fields, attribute, buf, size);
}

EXPORT int cublasLtMatmulDescCreate(rlhf__lt_desc *out, int compute, int scale_type) {
    RULE(compute == RLHF__LT_COMPUTE_32F, "compute type %d, sums are to be in f32", compute);
    RULE(scale_type == RLHF__LT_R_32F, "scale type %d with sums in f32", scale_type);
    TRY(create(out, DESC));
    (*out)->compute = compute;
    (*out)->scale = scale_type;
    (*out)->epilogue = RLHF__LT_EPILOGUE_DEFAULT;
    (*out)->bias_type = -1;
    return 0;
}
EXPORT int cublasLtMatmulDescDestroy(rlhf__lt_desc o) { return destroy(o, DESC); }
EXPORT int cublasLtMatmulDescSetAttribute(rlhf__lt_desc o, int attribute, const void *buf,
                                          size_t size) {
    RULE(o && o->magic == DESC, "not a descriptor");
    rlhf__lt_desc_mem next = *o;
    const field fields[] = {{RLHF__LT_DESC_TRANSA, &next.trans_a, 4},
                            {RLHF__LT_DESC_TRANSB, &next.trans_b, 4},
                            {RLHF__LT_DESC_EPILOGUE, &next.epilogue, 4},
                            {RLHF__LT_DESC_BIAS, &next.bias, 8},
                            {RLHF__LT_DESC_BIAS_TYPE, &next.bias_type, 4}};
    TRY(field_set("descriptor", fields, attribute, buf, size));
    RULE((next.trans_a | next.trans_b) >> 1 == 0, "a transposition is none of N and T");
    RULE(next.epilogue == RLHF__LT_EPILOGUE_DEFAULT || next.epilogue == RLHF__LT_EPILOGUE_BIAS,
         "epilogue %u is not known here", next.epilogue);
    *o = next;
    return 0;
}

EXPORT int cublasLtMatmulPreferenceCreate(rlhf__lt_pref *out) {
    TRY(create(out, PREF));
    (*out)->impl = ~(uint64_t)0;
    (*out)->reduction = RLHF__LT_REDUCTION_ALL;
    for (uint32_t &a : (*out)->align)
        a = 256;
    return 0;
}
EXPORT int cublasLtMatmulPreferenceDestroy(rlhf__lt_pref p) { return destroy(p, PREF); }
EXPORT int cublasLtMatmulPreferenceSetAttribute(rlhf__lt_pref p, int attribute, const void *buf,
                                                size_t size) {
    RULE(p && p->magic == PREF, "not a preference");
    const field fields[] = {{RLHF__LT_PREF_WORKSPACE, &p->workspace, 8},
                            {RLHF__LT_PREF_REDUCTION, &p->reduction, 4},
                            {RLHF__LT_PREF_ALIGN_A, &p->align[0], 4},
                            {RLHF__LT_PREF_ALIGN_B, &p->align[1], 4},
                            {RLHF__LT_PREF_ALIGN_C, &p->align[2], 4},
                            {RLHF__LT_PREF_ALIGN_D, &p->align[3], 4},
                            {RLHF__LT_PREF_IMPL, &p->impl, 8}};
    return field_set("preference", fields, attribute, buf, size);
}

EXPORT int cublasLtMatmulAlgoGetHeuristic(rlhf__lt_handle h, rlhf__lt_desc o, rlhf__lt_layout a,
                                          rlhf__lt_layout b, rlhf__lt_layout c, rlhf__lt_layout d,
                                          rlhf__lt_pref p, int wanted, rlhf__lt_found *found,
                                          int *n) {
    const layouts l = {a, b, c, d};
    TRY(product_rules(h, o, l));
    RULE(p && p->magic == PREF, "the search has no preference");
    RULE(wanted > 0 && found && n, "the search has nowhere to put what it finds");
    offer_list to = {found, wanted, 0};
    offers(h, o, l, p, &to);
    *n = to.n;
    return to.n ? 0 : RLHF__LT_NOT_SUPPORTED;
}

EXPORT int cublasLtMatmulAlgoCheck(rlhf__lt_handle h, rlhf__lt_desc o, rlhf__lt_layout a,
                                   rlhf__lt_layout b, rlhf__lt_layout c, rlhf__lt_layout d,
                                   const rlhf__lt_algo *in, rlhf__lt_found *out) {
    const layouts l = {a, b, c, d};
    algo x;
    TRY(product_rules(h, o, l));
    TRY(algo_rules(o, l, in, &x));
    RULE(out, "check: nowhere to put the result");
    out->workspace = workspace_of(x, l);
    out->state = 0;
    out->waves = 1;
    return 0;
}

template <size_t N>
static int field_get(const char *of, const field (&fields)[N], int attribute, void *buf,
                     size_t size, size_t *written) {
    for (const field &f : fields) {
        if (f.attribute != attribute) continue;
        RULE(buf && size == f.size, "%s attribute %d: %zu bytes, it has %zu", of, attribute, size,
             f.size);
        memcpy(buf, f.at, size);
        if (written) *written = size;
        return 0;
    }
    return broken(RLHF__LT_INVALID_VALUE, "%s attribute %d is none that is known", of, attribute);
}

EXPORT int cublasLtMatmulAlgoConfigGetAttribute(const rlhf__lt_algo *in, int attribute, void *buf,
                                                size_t size, size_t *written) {
    algo x;
    uint64_t zero = 0;
    RULE(in, "no algorithm");
    memcpy(&x, in, sizeof x);
    RULE(x.magic == ALGO, "not an algorithm");
    const field fields[] = {
        {RLHF__LT_CONFIG_ID, &x.id, 4},        {RLHF__LT_CONFIG_TILE, &x.tile, 4},
        {RLHF__LT_CONFIG_SPLITK, &x.split, 4}, {RLHF__LT_CONFIG_REDUCTION, &x.reduction, 4},
        {RLHF__LT_CONFIG_SWIZZLE, &zero, 4},   {RLHF__LT_CONFIG_CUSTOM, &zero, 4},
        {RLHF__LT_CONFIG_STAGES, &zero, 4},    {RLHF__LT_CONFIG_INNER, &zero, 2},
        {RLHF__LT_CONFIG_CLUSTER, &zero, 2}};
    return field_get("configuration", fields, attribute, buf, size, written);
}

#ifndef FAKE_LT_SHORT // a library that lacks a function
EXPORT int cublasLtMatmulAlgoCapGetAttribute(const rlhf__lt_algo *in, int attribute, void *buf,
                                             size_t size, size_t *written) {
    algo x;
    RULE(in, "no algorithm");
    memcpy(&x, in, sizeof x);
    RULE(x.magic == ALGO, "not an algorithm");
    const field fields[] = {{RLHF__LT_CAP_IMPL, &x.impl, 8},
                            {RLHF__LT_CAP_ALIGN_A, &x.align, 4},
                            {RLHF__LT_CAP_ALIGN_B, &x.align, 4},
                            {RLHF__LT_CAP_ALIGN_C, &x.align, 4},
                            {RLHF__LT_CAP_ALIGN_D, &x.align, 4}};
    return field_get("capability", fields, attribute, buf, size, written);
}
#endif

EXPORT int cublasLtMatmul(rlhf__lt_handle h, rlhf__lt_desc o, const void *alpha, const void *a,
                          rlhf__lt_layout al, const void *b, rlhf__lt_layout bl, const void *beta,
                          const void *c, rlhf__lt_layout cl, void *d, rlhf__lt_layout dl,
                          const rlhf__lt_algo *in, void *workspace, size_t bytes,
                          CUstream_st *stream) {
    const layouts l = {al, bl, cl, dl};
    algo x;
    float by, plus;
    TRY(product_rules(h, o, l));
    TRY(algo_rules(o, l, in, &x));
    RULE(alpha && beta, "alpha and beta are host addresses, not NULL");
    memcpy(&by, alpha, sizeof by);
    memcpy(&plus, beta, sizeof plus);
    TRY(pointer_rules("A", a, x.align));
    TRY(pointer_rules("B", b, x.align));
    TRY(pointer_rules("C", c, x.align));
    TRY(pointer_rules("D", d, x.align));
    if (o->epilogue == RLHF__LT_EPILOGUE_BIAS) TRY(pointer_rules("the bias", o->bias, x.align));
    RULE(!overlap(d, dl, a, al) && !overlap(d, dl, b, bl), "D overlaps an operand");
    if (plus != 0) {
        RULE(cl->ld == dl->ld && cl->type == dl->type, "C is added and does not lie as D does");
        RULE(c == d || !overlap(c, cl, d, dl), "C overlaps D and is not D");
    }
    RULE(!bytes || (workspace && (uintptr_t)workspace % 256 == 0),
         "the workspace is not at a multiple of 256 bytes");
    RULE(bytes >= workspace_of(x, l), "a workspace of %zu bytes, needed are %llu", bytes,
         (unsigned long long)workspace_of(x, l));
    RULE(stream || !h->enqueue, "the default stream");
    const int a16 = al->type == RLHF__LT_R_16BF, d16 = dl->type == RLHF__LT_R_16BF;
    queued *q = new queued{{(int64_t)dl->rows,
                            (int64_t)dl->cols,
                            (int64_t)(o->trans_a ? al->rows : al->cols),
                            {a, al->ld, a16, o->trans_a},
                            {b, bl->ld, a16, o->trans_b},
                            c,
                            d,
                            cl->ld,
                            dl->ld,
                            d16,
                            o->epilogue == RLHF__LT_EPILOGUE_BIAS ? o->bias : NULL,
                            by,
                            plus,
                            (fake_lt_sum)x.sum,
                            h->residue ? n_short : n_products,
                            h->tick,
                            time_of(x, dl->cols)}};
    n_products++;
    last_tile = x.tile;
    if (dl->cols > widest) widest = dl->cols;
    n_short += q->work.k < 300;
    void (*run)(void *) = [](void *p) {
        const fake_lt_work *w = &((queued *)p)->work;
        fake_lt_compute(w);
        if (w->tick) w->tick(w->ms);
    };
    void (*drop)(void *) = [](void *p) { delete (queued *)p; };
    if (h->enqueue) return h->enqueue(run, q, drop, stream) ? RLHF__LT_EXECUTION_FAILED : 0;
    run(q);
    drop(q);
    return 0;
}
