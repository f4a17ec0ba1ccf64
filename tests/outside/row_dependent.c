// row_dependent.c: a compute backend that is wrong on purpose, to check that tests of row exactness
// detect it. It is the reference backend with one change: if a product has eight rows or more, its
// sum over k is split in two. Libraries that choose a kernel by the number of rows do this. The sum
// of the first half is rounded to the dtype of the operands, as in reduced-precision reductions.
//
// So rows are right up to rounding, but their bits depend on the number of rows. The backend is
// built twice: one build falsely claims RLHF_COMPUTE_ROW_EXACT, the other (HONEST) does not.
#include <rlhf/compute.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { SPLIT_FROM = 8, WEIGHTS_MOST = 256 };

// The properties of a weight that linear must know. The reference's own struct is not visible here.
static struct {
    const rlhf_weight *w;
    int32_t k, n, dtype, reserved;
} weights[WEIGHTS_MOST];

static const rlhf_plugin *reference;
static rlhf_compute inner; // the reference's table

static rlhf_status weight_create(void *ctx, int32_t k, int32_t n, int32_t dtype, uint32_t flags,
                                 rlhf_weight **out) {
    RLHF_TRY(inner.weight_create(ctx, k, n, dtype, flags, out));
    for (int i = 0; i < WEIGHTS_MOST; i++)
        if (!weights[i].w) {
            weights[i].w = *out;
            weights[i].k = k;
            weights[i].n = n;
            weights[i].dtype = dtype;
            return RLHF_OK;
        }
    return RLHF_E_NOMEM;
}

static void weight_destroy(void *ctx, rlhf_weight *w) {
    for (int i = 0; w && i < WEIGHTS_MOST; i++)
        if (weights[i].w == w) weights[i].w = NULL;
    inner.weight_destroy(ctx, w);
}

// Copies x to `out` with zeros in its last columns (if `half` is 0) or in its first columns (if it
// is 1).
static rlhf_status half_of(void *ctx, rlhf_dev out, rlhf_dev x, uint32_t rows, int32_t k,
                           int32_t dtype, int half) {
    const uint64_t size = rlhf_dtype_size(dtype), row = (uint64_t)k * size;
    const uint64_t cut = (uint64_t)(k / 2) * size;
    RLHF_TRY(inner.copy(ctx, out, x, rows * row));
    for (uint32_t i = 0; i < rows; i++)
        RLHF_TRY(
            inner.zero(ctx, rlhf_dev_at(out, i * row + (half ? 0 : cut)), half ? cut : row - cut));
    return RLHF_OK;
}

// Computes sum f32 [rows, n] = x W + bias in two passes over the columns of x. `low` has as many
// elements as `sum`.
static rlhf_status split_k(void *ctx, rlhf_dev sum, rlhf_dev low, rlhf_dev part, rlhf_dev x,
                           const rlhf_weight *w, rlhf_dev bias, uint32_t rows, uint64_t n,
                           int32_t k, int32_t dtype) {
    RLHF_TRY(half_of(ctx, part, x, rows, k, dtype, 0));
    RLHF_TRY(inner.linear(ctx, sum, RLHF_F32, 0, part, w, bias, rows));
    RLHF_TRY(inner.convert(ctx, low, dtype, sum, RLHF_F32, n));
    RLHF_TRY(inner.convert(ctx, sum, RLHF_F32, low, dtype, n));
    RLHF_TRY(half_of(ctx, part, x, rows, k, dtype, 1));
    return inner.linear(ctx, sum, RLHF_F32, 1, part, w, NULL, rows);
}

static rlhf_status linear(void *ctx, rlhf_dev out, int32_t out_dtype, int32_t accumulate,
                          rlhf_dev x, const rlhf_weight *w, rlhf_dev bias, uint32_t rows) {
    int at = 0;
    while (at < WEIGHTS_MOST && weights[at].w != w)
        at++;
    if (rows < SPLIT_FROM || at == WEIGHTS_MOST)
        return inner.linear(ctx, out, out_dtype, accumulate, x, w, bias, rows);
    const int32_t k = weights[at].k, dtype = weights[at].dtype;
    const uint64_t n = (uint64_t)rows * (uint64_t)weights[at].n;
    rlhf_dev sum = NULL, low = NULL, part = NULL;
    rlhf_status st = inner.alloc(ctx, n * sizeof(float), &sum);
    if (st >= 0) st = inner.alloc(ctx, n * sizeof(float), &low);
    if (st >= 0)
        st = inner.alloc(ctx, (uint64_t)rows * (uint64_t)k * rlhf_dtype_size(dtype), &part);
    if (st >= 0) st = split_k(ctx, sum, low, part, x, w, bias, rows, n, k, dtype);
    if (st >= 0)
        st = accumulate ? inner.add(ctx, out, sum, RLHF_F32, n)
                        : inner.convert(ctx, out, out_dtype, sum, RLHF_F32, n);
    inner.release(ctx, sum);
    inner.release(ctx, low);
    inner.release(ctx, part);
    return st;
}

static rlhf_status open_table(void *self, const rlhf_kernels_open *o, rlhf_compute **out) {
    RLHF_TRY(((const rlhf_kernels_ops *)reference->ops)->open(self, o, out));
    rlhf_compute *t = *out;
    inner = *t;
    t->name = "row_dependent";
#ifdef HONEST
    t->flags = 0;
#endif
    t->weight_create = weight_create;
    t->weight_destroy = weight_destroy;
    t->linear = linear;
    return RLHF_OK;
}

// The reference's plugin with another id and open().
const rlhf_bundle *RLHF_ENTRY(void) {
    static rlhf_kernels_ops ops;
    static rlhf_plugin plugin;
    static const rlhf_plugin *const list[] = {&plugin};
    static const rlhf_bundle bundle = {sizeof bundle, RLHF_ABI_MAJOR,  RLHF_ABI_MINOR, 1,
                                       list,          RLHF_SDK_VERSION};
    void *so = dlopen(REFERENCE_SO, RTLD_NOW | RTLD_LOCAL);
    void *symbol = so ? dlsym(so, RLHF_ENTRY_SYMBOL) : NULL;
    rlhf_entry_fn entry = NULL;
    memcpy(&entry, &symbol, sizeof entry);
    if (!entry) return NULL;
    reference = entry()->plugins[0];
    plugin = *reference;
    ops = *(const rlhf_kernels_ops *)reference->ops;
    plugin.id = "org.rlhf-host.test.row-dependent";
    plugin.summary = "rows depend on their number; for tests";
    plugin.ops = &ops;
    ops.open = open_table;
    ops.describe = NULL;
    return &bundle;
}
