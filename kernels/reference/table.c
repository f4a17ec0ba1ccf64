// table.c: the reference backend's descriptor: create, destroy and the table itself.
#include "ops.h"

#include <rlhf/reference.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *last_error(void *ctx) { return ((struct rlhf__ref *)ctx)->error; }

static const rlhf_compute description = {
    .size = sizeof(rlhf_compute),
    .device = RLHF_DEVICE_CPU,
    .dtypes = 1u << RLHF_F32 | 1u << RLHF_BF16,
    .threads = 1,
    .flags = RLHF_COMPUTE_ROW_EXACT | RLHF_COMPUTE_MIN_P,
    .name = "reference",
    .detail = "naive C, double accumulation, 1 thread",
    .last_error = last_error,
};

static void fill(rlhf_compute *t) {
    rlhf__ref_fill_memory(t);
    rlhf__ref_fill_weight(t);
    rlhf__ref_fill_linear(t);
    rlhf__ref_fill_embed(t);
    rlhf__ref_fill_norm(t);
    rlhf__ref_fill_rms_norm(t);
    rlhf__ref_fill_act(t);
    rlhf__ref_fill_rope(t);
    rlhf__ref_fill_rows(t);
    rlhf__ref_fill_pool(t);
    rlhf__ref_fill_attention(t);
    rlhf__ref_fill_attention_bwd(t);
    rlhf__ref_fill_lm_head(t);
    rlhf__ref_fill_lm_head_bwd(t);
    rlhf__ref_fill_lm_sample(t);
    rlhf__ref_fill_optim(t);
}

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
    if (st == RLHF_OK && o.gpu)
        st = rlhf__ref_fail(r, RLHF_E_INVALID, "gpu is %u, this backend has none: allowed is 0",
                            o.gpu);
    if (st < 0) {
        refuse(err, err_cap, st, r->error);
        free(r);
        free(c);
        return st;
    }
    r->buffers.guard = o.guard;
    *c = description;
    fill(c);
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

const rlhf_kernels rlhf__ref_kernels = {
    .size = sizeof(rlhf_kernels),
    .abi_major = RLHF_ABI_MAJOR,
    .abi_minor = RLHF_ABI_MINOR,
    .name = "reference",
    .summary = "naive plain C; what the other backends are checked against",
    .create = create,
    .destroy = destroy,
    .describe = rlhf__ref_describe,
};

const rlhf_kernels *rlhf_reference_kernels(void) { return &rlhf__ref_kernels; }
