// table.cu: the exported symbol of kernels_cuda.so: create, destroy and the table itself.
#include "lt.h"
#include "table.h"

#include "devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *last_error(void *ctx) { return ((struct rlhf__cuda *)ctx)->error; }

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

// The LM head's default budget: logits of 32,736 rows over a vocabulary of 50,304 on a card sold
// with 48 GB or more, so that the backward pass does not recompute them.
static rlhf_status workspace_fill(struct rlhf__cuda *cu) {
    const uint64_t gib = (uint64_t)1 << 30;
    size_t left = 0, total = 0;
    if (cu->workspace_bytes) return RLHF_OK;
    RLHF_TRY(rlhf__cuda_check(cu, "asking for the card's memory", cudaMemGetInfo(&left, &total)));
    cu->workspace_bytes = total >= 40 * gib ? 8 * gib : 4 * gib;
    return RLHF_OK;
}

// Many rows in flight and large microbatches if the card has space for them besides the weights: at
// 32768 tokens GPT-2's smallest model keeps about 10 GiB for the backward pass. Cards report
// slightly less memory than they are sold with.
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

static rlhf_status context_init(struct rlhf__cuda *cu, const rlhf_kernels_options *in) {
    rlhf_kernels_options opt;
    memset(&opt, 0, sizeof opt);
    if (in) RLHF_TRY(rlhf__cuda_copy_in(cu, "create", &opt, sizeof opt, in, sizeof in->size));
    RLHF_TRY(rlhf__lt_mode_check(cu)); // also without a card
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
    t->last_error = last_error;
    t->workspace_bytes = workspace_bytes;
#define FILL(file) rlhf__cuda_fill_##file(t);
    RLHF__CUDA_FILES(FILL)
#undef FILL
    RLHF_TRY(hints_fill(cu));
    return rlhf__lt_open(cu);
}

static rlhf_status create(const rlhf_kernels_options *options, rlhf_compute **out, char *err,
                          uint64_t err_cap) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)calloc(1, sizeof *cu);
    if (!cu) {
        if (err && err_cap) snprintf(err, err_cap, "out of memory for the CUDA backend");
        return RLHF_E_NOMEM;
    }
    const rlhf_status st = context_init(cu, options);
    if (st < 0) {
        if (err && err_cap) snprintf(err, err_cap, "%s", cu->error);
        context_free(cu);
        return st;
    }
    *out = &cu->table;
    return RLHF_OK;
}

static void destroy(rlhf_compute *c) {
    if (c) context_free((struct rlhf__cuda *)c->ctx);
}

static const rlhf_kernels kernels = {
    sizeof(rlhf_kernels),
    RLHF_ABI_MAJOR,
    RLHF_ABI_MINOR,
    0,
    "cuda",
    "CUDA backend: own kernels and cuBLASLt for compute capability 8.0 and newer",
    create,
    destroy,
    rlhf__cuda_describe};

RLHF_DEFINE_KERNELS(kernels)
