// table.c: the table of the reference backend: opening and closing it.
#include "ops.h"
#include "ragged.h"

#include <rlhf/reference.h>

#include <stdlib.h>

static rlhf_status supports(void *ctx, const rlhf_call *from) {
    struct rlhf__ref *r = ctx;
    rlhf_call c;
    rlhf_attn a;
    RLHF_TRY(
        rlhf__ref_copy_in(r, "supports", &c, sizeof c, from, RLHF_SIZE_TO(rlhf_call, tensors)));
    const char *names[] = {"conv",       "conv_bwd",       "delta",    "delta_bwd",
                           "gated_norm", "gated_norm_bwd", "multiply", "multiply_bwd"};
    if (c.op == RLHF_COMPUTE_OP(attention)) return rlhf__ref_attn_read(r, "attention", &a, c.attn);
    if (c.op == RLHF_COMPUTE_OP(attention_bwd))
        return rlhf__ref_attn_read(r, "attention_bwd", &a, c.attn);
    if (c.op == RLHF_COMPUTE_OP(conv) || c.op == RLHF_COMPUTE_OP(conv_bwd))
        return rlhf__ref_supports_conv(r, names[c.op == RLHF_COMPUTE_OP(conv_bwd)], c.conv);
    if (c.op == RLHF_COMPUTE_OP(delta) || c.op == RLHF_COMPUTE_OP(delta_bwd))
        return rlhf__ref_supports_delta(r, names[2 + (c.op == RLHF_COMPUTE_OP(delta_bwd))],
                                        c.delta);
    if (c.op == RLHF_COMPUTE_OP(gated_norm) || c.op == RLHF_COMPUTE_OP(gated_norm_bwd))
        return rlhf__ref_supports_gated_norm(
            r, names[4 + (c.op == RLHF_COMPUTE_OP(gated_norm_bwd))], c.gated_norm);
    if (c.op == RLHF_COMPUTE_OP(multiply) || c.op == RLHF_COMPUTE_OP(multiply_bwd))
        return rlhf__ref_supports_multiply(r, names[6 + (c.op == RLHF_COMPUTE_OP(multiply_bwd))],
                                           c.columns);
    return RLHF_OK;
}

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
    rlhf__ref_fill_conv(t);
    rlhf__ref_fill_delta(t);
    rlhf__ref_fill_delta_bwd(t);
    rlhf__ref_fill_gated_norm(t);
    rlhf__ref_fill_multiply(t);
    rlhf__ref_fill_lm_head(t);
    rlhf__ref_fill_lm_head_bwd(t);
    rlhf__ref_fill_lm_sample(t);
    rlhf__ref_fill_optim(t);
    t->supports = supports;
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
