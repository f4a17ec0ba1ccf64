// table.c: the exported symbol of kernels_reference.so: create, destroy and the table itself.
#include "ops.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *last_error(void *ctx) { return ((struct rlhf__ref *)ctx)->error; }

static const rlhf_compute table = {
    .size = sizeof(rlhf_compute),
    .device = 1,
    .dtypes = 1u << RLHF_F32 | 1u << RLHF_BF16,
    .threads = 1,
    .flags = RLHF_COMPUTE_ROW_EXACT,
    .name = "reference",
    .detail = "naive C, double accumulation, 1 thread",
    .last_error = last_error,
    .alloc = rlhf__ref_alloc,
    .release = rlhf__ref_release,
    .bytes_in_use = rlhf__ref_bytes_in_use,
    .upload = rlhf__ref_upload,
    .download = rlhf__ref_download,
    .copy = rlhf__ref_copy,
    .zero = rlhf__ref_zero,
    .convert = rlhf__ref_convert,
    .sync = rlhf__ref_sync,
    .weight_create = rlhf__ref_weight_create,
    .weight_destroy = rlhf__ref_weight_destroy,
    .weight_pack = rlhf__ref_weight_pack,
    .linear = rlhf__ref_linear,
    .linear_dx = rlhf__ref_linear_dx,
    .linear_dw = rlhf__ref_linear_dw,
    .embed = rlhf__ref_embed,
    .embed_bwd = rlhf__ref_embed_bwd,
    .norm = rlhf__ref_norm,
    .norm_bwd = rlhf__ref_norm_bwd,
    .act = rlhf__ref_act,
    .act_bwd = rlhf__ref_act_bwd,
    .add = rlhf__ref_add,
    .gather = rlhf__ref_gather,
    .scatter_add = rlhf__ref_scatter_add,
    .pool = rlhf__ref_pool,
    .pool_bwd = rlhf__ref_pool_bwd,
    .kv_store = rlhf__ref_kv_store,
    .attention = rlhf__ref_attention,
    .attention_bwd = rlhf__ref_attention_bwd,
    .lm_head = rlhf__ref_lm_head,
    .lm_head_bwd = rlhf__ref_lm_head_bwd,
    .lm_sample = rlhf__ref_lm_sample,
    .sumsq = rlhf__ref_sumsq,
    .adamw = rlhf__ref_adamw,
    .muon = rlhf__ref_muon,
};

static rlhf_status refuse(char *err, uint64_t err_cap, rlhf_status code, const char *text) {
    if (err && err_cap) snprintf(err, err_cap, "kernels_reference: %s", text);
    return code;
}

static rlhf_status create(const rlhf_kernels_options *opt, rlhf_compute **out, char *err,
                          uint64_t err_cap) {
    struct rlhf__ref *r = calloc(1, sizeof *r);
    rlhf_compute *c = malloc(sizeof *c);
    if (!r || !c) {
        free(r);
        free(c);
        return refuse(err, err_cap, RLHF_E_NOMEM, "out of memory");
    }
    rlhf_kernels_options o;
    rlhf_status st = rlhf__ref_copy_in(r, "create", &o, sizeof o, opt, sizeof opt->size);
    if (st < 0) {
        refuse(err, err_cap, st, r->error);
        free(r);
        free(c);
        return st;
    }
    r->buffers.guard = o.guard;
    *c = table;
    c->ctx = r;
    if (o.guard) c->detail = "naive C, double accumulation, 1 thread, guarded buffers";
    *out = c;
    return RLHF_OK;
}

static void destroy(rlhf_compute *c) {
    if (!c) return;
    struct rlhf__ref *r = c->ctx;
    rlhf__ref_registry_finish(&r->buffers);
    free(r);
    free(c);
}

static const rlhf_kernels entry = {
    .size = sizeof(rlhf_kernels),
    .abi_major = RLHF_ABI_MAJOR,
    .abi_minor = RLHF_ABI_MINOR,
    .name = "reference",
    .summary = "naive plain C; what the other backends are checked against",
    .create = create,
    .destroy = destroy,
};

RLHF_EXPORT const rlhf_kernels *rlhf_kernels_v0(void);
const rlhf_kernels *rlhf_kernels_v0(void) { return &entry; }
