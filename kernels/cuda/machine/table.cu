// table.cu: the plugin of kernels_cuda.so, and opening its table.
#include "product/lt.h"
#include "table.h"

#include "devices.h"
#include "reference/instance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void context_free(struct rlhf__cuda *cu) {
    if (!cu) return;
    if (cu->recordings.now) cu->table.record_end(cu);
    rlhf__cuda_recordings_drop(cu, 0);
    rlhf__lt_close(cu);
    rlhf__cuda_mem_free_all(cu);
    rlhf__cuda_transfer_close(cu);
    if (cu->fault) cudaFree(cu->fault);
    if (cu->fault_host) cudaFreeHost(cu->fault_host);
    if (cu->staging.ptr) cudaFreeHost(cu->staging.ptr);
    if (cu->stream) cudaStreamDestroy(cu->stream);
    free(cu);
}

// The default budget of the LM head. On a card that is sold with 48 GB or more, this budget is
// enough for the logits of 32,736 rows over a vocabulary of 50,304, so that the backward pass need
// not recompute them.
static rlhf_status workspace_fill(struct rlhf__cuda *cu) {
    const uint64_t gib = (uint64_t)1 << 30;
    size_t left = 0, total = 0;
    if (cu->workspace_bytes) return RLHF_OK;
    RLHF_TRY(rlhf__cuda_check(cu, "asking for the card's memory", cudaMemGetInfo(&left, &total)));
    cu->workspace_bytes = total >= 40 * gib ? 8 * gib : 4 * gib;
    return RLHF_OK;
}

// Suggest many rows in flight and large microbatches, if the card has memory for them in addition
// to the weights. At 32768 tokens, GPT-2's smallest model keeps about 10 GiB for the backward pass.
// Cards report slightly less memory than they are sold with.
static rlhf_status hints_fill(struct rlhf__cuda *cu) {
    const uint64_t gib = (uint64_t)1 << 30;
    size_t left = 0, total = 0;
    RLHF_TRY(rlhf__cuda_check(cu, "asking for the card's memory", cudaMemGetInfo(&left, &total)));
    const uint32_t size = total >= 30 * gib ? 2 : total >= 15 * gib ? 1 : 0;
    cu->table.slots_hint = size * 256;
    cu->table.microbatch_hint = size * 16384;
    return RLHF_OK;
}

static void workspace_bytes(void *ctx, const rlhf_call *from, uint64_t *bytes) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    struct rlhf__cuda_needs n = {};
    rlhf_call c;
    memset(bytes, 0, RLHF_WORKSPACES * sizeof *bytes);
    if (rlhf_copy_in(&c, sizeof c, from, RLHF_SIZE_TO(rlhf_call, tensors)) < 0) return;
#define ADD(file) rlhf__cuda_needs_##file(cu, &c, &n);
    RLHF__CUDA_NEEDS(ADD)
#undef ADD
    memcpy(bytes, n.bytes, sizeof n.bytes);
}

static rlhf_status supports(void *ctx, const rlhf_call *from) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    rlhf_call c;
    RLHF_TRY(
        rlhf__cuda_copy_in(cu, "supports", &c, sizeof c, from, RLHF_SIZE_TO(rlhf_call, tensors)));
    if (c.op == RLHF_COMPUTE_OP(attention))
        return rlhf__cuda_supports_attention(cu, "attention", c.attn);
    if (c.op == RLHF_COMPUTE_OP(attention_bwd))
        return rlhf__cuda_supports_attention(cu, "attention_bwd", c.attn);
    if (c.op == RLHF_COMPUTE_OP(conv)) return rlhf__cuda_supports_conv(cu, "conv", c.conv);
    if (c.op == RLHF_COMPUTE_OP(conv_bwd)) return rlhf__cuda_supports_conv(cu, "conv_bwd", c.conv);
    if (c.op == RLHF_COMPUTE_OP(delta)) return rlhf__cuda_supports_delta(cu, "delta", c.delta);
    if (c.op == RLHF_COMPUTE_OP(delta_bwd))
        return rlhf__cuda_supports_delta(cu, "delta_bwd", c.delta);
    if (c.op == RLHF_COMPUTE_OP(gated_norm) || c.op == RLHF_COMPUTE_OP(gated_norm_bwd))
        return rlhf__cuda_supports_gated_norm(cu, "gated_norm", c.gated_norm);
    if (c.op == RLHF_COMPUTE_OP(multiply) || c.op == RLHF_COMPUTE_OP(multiply_bwd))
        return rlhf__cuda_supports_multiply(cu, "multiply", c.columns);
    return RLHF_OK;
}

static rlhf_status context_init(struct rlhf__cuda *cu, const rlhf_kernels_open *in) {
    rlhf_kernels_open opt;
    RLHF_TRY(rlhf__cuda_copy_in(cu, "open", &opt, sizeof opt, in,
                                RLHF_SIZE_TO(rlhf_kernels_open, workspace_bytes)));
    if (opt.arithmetic && *opt.arithmetic)
        return rlhf__cuda_fail(cu, RLHF_E_UNSUPPORTED, "it cannot keep to the arithmetic %s",
                               opt.arithmetic);
    RLHF_TRY(rlhf__lt_mode_check(cu)); // check this even without a card
    cu->guard = opt.guard != 0;
    cu->workspace_bytes = opt.workspace_bytes;
    RLHF_TRY(rlhf__cuda_device_open(cu, opt.gpu));
    RLHF_TRY(workspace_fill(cu));
    RLHF_TRY(rlhf__cuda_check(cu, "cudaStreamCreate",
                              cudaStreamCreateWithFlags(&cu->stream, cudaStreamNonBlocking)));
    RLHF_TRY(rlhf__cuda_memory_open(cu));
    RLHF_TRY(rlhf__cuda_transfer_open(cu));
    RLHF_TRY(
        rlhf__cuda_check(cu, "cudaMalloc", cudaMalloc((void **)&cu->fault, sizeof *cu->fault)));
    RLHF_TRY(rlhf__cuda_check(cu, "cudaMallocHost",
                              cudaMallocHost((void **)&cu->fault_host, sizeof *cu->fault_host)));
    RLHF_TRY(rlhf__cuda_check(cu, "cudaMemset",
                              cudaMemsetAsync(cu->fault, 0, sizeof *cu->fault, cu->stream)));
    rlhf_compute *t = &cu->table;
    t->size = sizeof *t;
    t->device = RLHF_DEVICE_CUDA;
    t->dtypes = 1u << RLHF_F32 | 1u << RLHF_BF16;
    t->threads = 1;
    t->flags = RLHF_COMPUTE_ROW_EXACT | RLHF_COMPUTE_MIN_P;
    t->name = "cuda";
    t->detail = cu->detail;
    t->ctx = cu;
    t->workspace_bytes = workspace_bytes;
    t->supports = supports;
#define FILL(file) rlhf__cuda_fill_##file(t);
    RLHF__CUDA_FILES(FILL)
#undef FILL
    RLHF_TRY(hints_fill(cu));
    return rlhf__lt_open(cu);
}

static rlhf_status open_table(void *self, const rlhf_kernels_open *options, rlhf_compute **out) {
    const rlhf_host *host = ((struct rlhf__backend *)self)->host;
    struct rlhf__cuda *cu = (struct rlhf__cuda *)calloc(1, sizeof *cu);
    if (!cu) return (host->fail)(host, RLHF_E_NOMEM, "out of memory for the CUDA backend");
    cu->messages = host;
    const rlhf_status st = context_init(cu, options);
    if (st < 0) {
        context_free(cu);
        return st;
    }
    *out = &cu->table;
    return RLHF_OK;
}

static void close_table(void *self, rlhf_compute *c) {
    (void)self;
    if (c) context_free((struct rlhf__cuda *)c->ctx);
}

static const rlhf_kernels_ops ops = {
    sizeof(rlhf_kernels_ops), 0, RLHF_COMPUTE_MAJOR, RLHF_COMPUTE_MINOR,
    RLHF_DEVICE_CUDA,         0, open_table,         close_table,
    rlhf__cuda_describe};

static const rlhf_plugin plugin = {
    sizeof(rlhf_plugin),
    RLHF_KIND_KERNELS,
    "org.rlhf-host.kernels.cuda",
    RLHF_SDK_VERSION,
    "CUDA backend: own kernels and cuBLASLt for compute capability 8.0 and newer",
    "rlhf-host",
    NULL,
    "Apache-2.0",
    0,
    0, // flags
    NULL,
    0, // options
    0,
    0,
    0, // state_version
    NULL,
    rlhf__backend_create,
    rlhf__backend_destroy,
    NULL,
    NULL,
    &ops,
    NULL};

RLHF_DEFINE_PLUGIN(plugin)
