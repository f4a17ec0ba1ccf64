// grown_kernels.c: the reference backend, called through older or newer structs. This file copies
// the arguments of each function of the table into structs of its own version, so the reference
// backend sees a caller of that version. See test_growth.c.
#include <rlhf/compute.h>

#include "grown.h"

#include <dlfcn.h>

static const rlhf_kernels_ops *real;
static rlhf_compute *inner; // the reference's table; there is one at a time

// Copies a struct of the caller and sets its size to that of this version.
#define TAKE(mine, from, last, name)                                                               \
    do {                                                                                           \
        RLHF_TRY(rlhf_copy_in(mine, sizeof *(mine), from, last));                                  \
        (mine)->size = sizeof *(mine);                                                             \
        GROWN_TAIL(mine, name);                                                                    \
    } while (0)

static rlhf_status lm_head(void *ctx, const rlhf_lm_head *from) {
    rlhf_lm_head a;
    rlhf_dist d;
    TAKE(&a, from, RLHF_SIZE_TO(rlhf_lm_head, d_weight), "lm_head");
    TAKE(&d, a.dist, RLHF_SIZE_TO(rlhf_dist, top_k), "kernels_dist");
    a.dist = &d;
    return inner->lm_head(ctx, &a);
}

static rlhf_status lm_head_bwd(void *ctx, const rlhf_lm_head *from) {
    rlhf_lm_head a;
    TAKE(&a, from, RLHF_SIZE_TO(rlhf_lm_head, d_weight), "lm_head_bwd");
    return inner->lm_head_bwd(ctx, &a);
}

static rlhf_status lm_sample(void *ctx, const rlhf_lm_sample *from) {
    rlhf_lm_sample a;
    TAKE(&a, from, RLHF_SIZE_TO(rlhf_lm_sample, host_logp), "lm_sample");
    return inner->lm_sample(ctx, &a);
}

static rlhf_status kv_store(void *ctx, rlhf_dev k_cache, rlhf_dev v_cache, rlhf_dev k, rlhf_dev v,
                            int64_t stride, const rlhf_ragged *from, int32_t d, int32_t dtype) {
    rlhf_ragged rows;
    TAKE(&rows, from, RLHF_SIZE_TO(rlhf_ragged, prefix_len), "kv_rows");
    return inner->kv_store(ctx, k_cache, v_cache, k, v, stride, &rows, d, dtype);
}

static rlhf_status attention(void *ctx, const rlhf_attn *how, const rlhf_ragged *from, rlhf_dev out,
                             rlhf_dev lse, rlhf_dev q, rlhf_dev k, rlhf_dev v) {
    rlhf_attn a;
    rlhf_ragged rows;
    TAKE(&a, how, RLHF_SIZE_TO(rlhf_attn, scale), "attn");
    TAKE(&rows, from, RLHF_SIZE_TO(rlhf_ragged, prefix_len), "ragged");
    return inner->attention(ctx, &a, &rows, out, lse, q, k, v);
}

static rlhf_status adamw_many(void *ctx, const rlhf_tensors *all, const rlhf_adamw *how,
                              rlhf_dev clip) {
    rlhf_tensors t;
    rlhf_adamw a;
    TAKE(&t, all, RLHF_SIZE_TO(rlhf_tensors, weight_decay), "tensors");
    TAKE(&a, how, RLHF_SIZE_TO(rlhf_adamw, step), "adamw");
    return inner->adamw_many(ctx, &t, &a, clip);
}

static rlhf_status open_table(void *self, const rlhf_kernels_open *from, rlhf_compute **out) {
    static rlhf_compute table;
    rlhf_kernels_open o;
    TAKE(&o, from, RLHF_SIZE_TO(rlhf_kernels_open, workspace_bytes), "kernels_open");
    RLHF_TRY(real->open(self, &o, &inner));
    table = (rlhf_compute){0};
    memcpy(&table, inner, inner->size < sizeof table ? inner->size : sizeof table);
    table.size = sizeof table;
    table.lm_head = lm_head;
    table.lm_head_bwd = lm_head_bwd;
    table.lm_sample = lm_sample;
    table.kv_store = kv_store;
    table.attention = attention;
    table.adamw_many = adamw_many;
    GROWN_TAIL(&table, "table");
    *out = &table;
    return RLHF_OK;
}

static void close_table(void *self, rlhf_compute *table) {
    if (table) real->close(self, inner);
}

const rlhf_bundle *rlhf_plugin_v1(void) {
    static rlhf_plugin plugin;
    static rlhf_kernels_ops ops = {.size = sizeof ops,
                                   .compute_major = RLHF_COMPUTE_MAJOR,
                                   .compute_minor = RLHF_COMPUTE_MINOR,
                                   .device = RLHF_DEVICE_CPU,
                                   .open = open_table,
                                   .close = close_table};
    const rlhf_bundle *(*entry)(void) = NULL;
    void *so = dlopen(REFERENCE_SO, RTLD_NOW | RTLD_LOCAL), *symbol;
    if (!so || !(symbol = dlsym(so, RLHF_ENTRY_SYMBOL))) return NULL;
    memcpy(&entry, &symbol, sizeof entry); // ISO C has no cast to a function pointer
    if (rlhf_copy_in(&plugin, sizeof plugin, entry()->plugins[0],
                     RLHF_SIZE_TO(rlhf_plugin, extension)) < 0)
        return NULL;
    real = plugin.ops;
    plugin.size = sizeof plugin;
    plugin.id = "org.rlhf-host.test.grown_kernels";
    GROWN_TAIL(&ops, "ops");
    return grown_bundle(&plugin, &ops);
}
