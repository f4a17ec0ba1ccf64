// table.c: the table of the reference backend: opening and closing it.
#include "ops.h"

#include <rlhf/reference.h>

#include <stdlib.h>

static const rlhf_compute description = {
    .size = sizeof(rlhf_compute),
    .device = RLHF_DEVICE_CPU,
    .dtypes = 1u << RLHF_F32 | 1u << RLHF_BF16,
    .threads = 1,
    .flags = RLHF_COMPUTE_ROW_EXACT | RLHF_COMPUTE_MIN_P | RLHF_COMPUTE_DIVERGENCE,
    .name = "reference",
    .detail = "naive C, double accumulation, 1 thread",
};

static void fill(rlhf_compute *t) {
    rlhf__ref_fill_memory(t);
    rlhf__ref_fill_weight(t);
    rlhf__ref_fill_quantised(t);
    rlhf__ref_fill_linear(t);
    rlhf__ref_fill_embed(t);
    rlhf__ref_fill_norm(t);
    rlhf__ref_fill_rms_norm(t);
    rlhf__ref_fill_act(t);
    rlhf__ref_fill_rope(t);
    rlhf__ref_fill_rows(t);
    rlhf__ref_fill_attention(t);
    rlhf__ref_fill_attention_bwd(t);
    rlhf__ref_fill_lm_head(t);
    rlhf__ref_fill_lm_head_bwd(t);
    rlhf__ref_fill_lm_sample(t);
    rlhf__ref_fill_optim(t);
}

rlhf_status rlhf_reference_open(const rlhf_host *host, const rlhf_kernels_open *open,
                                rlhf_compute **out) {
    struct rlhf__ref *r = calloc(1, sizeof *r);
    rlhf_compute *c = malloc(sizeof *c);
    if (!r || !c) {
        free(r);
        free(c);
        return host->fail(host, RLHF_E_NOMEM, "out of memory for the reference backend");
    }
    rlhf_kernels_open o;
    r->host = host;
    rlhf_status st = rlhf__ref_copy_in(r, "open", &o, sizeof o, open,
                                       RLHF_SIZE_TO(rlhf_kernels_open, workspace_bytes));
    if (st == RLHF_OK && o.gpu)
        st = rlhf__ref_fail(r, RLHF_E_INVALID,
                            "gpu is %u, but this backend has no GPU: only 0 is allowed", o.gpu);
    if (st == RLHF_OK && o.arithmetic && *o.arithmetic)
        st = rlhf__ref_fail(r, RLHF_E_UNSUPPORTED, "it cannot keep to the arithmetic %s",
                            o.arithmetic);
    if (st < 0) {
        free(r);
        free(c);
        return st;
    }
    r->buffers.guard = o.guard;
    *c = description;
    fill(c);
    c->ctx = r;
    if (!o.guard) c->flags |= RLHF_COMPUTE_HOST_MEMORY;
    if (o.guard) c->detail = "naive C, double accumulation, 1 thread, guarded buffers";
    *out = c;
    return RLHF_OK;
}

void rlhf_reference_close(rlhf_compute *c) {
    if (!c) return;
    struct rlhf__ref *r = c->ctx;
    rlhf__ref_registry_finish(&r->buffers);
    free(r);
    free(c);
}
