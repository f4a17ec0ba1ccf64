// memory.c: alloc, release and the transfers of the reference backend.
#include "ops.h"
#include <stdlib.h>
#include <string.h>

static uint64_t bytes_in_use(void *ctx) {
    const struct rlhf__ref *r = ctx;
    return r->buffers.bytes + r->weight_bytes;
}

// All sizes are 0, because the functions of this backend free their scratch memory before they
// return.
static void workspace_bytes(void *ctx, const rlhf_call *call, uint64_t *bytes) {
    (void)ctx;
    (void)call;
    memset(bytes, 0, RLHF_WORKSPACES * sizeof *bytes);
}

static rlhf_status alloc(void *ctx, uint64_t bytes, rlhf_dev *out) {
    struct rlhf__ref *r = ctx;
    r->op = "alloc";
    RLHF_TRY(rlhf__ref_count_call(r));
    struct rlhf__ref_buffer *b;
    if (rlhf__ref_registry_add(&r->buffers, bytes, &b) < 0)
        return rlhf__ref_fail(r, RLHF_E_NOMEM,
                              "cannot allocate %llu bytes of device memory (%llu in use)",
                              (unsigned long long)bytes, (unsigned long long)bytes_in_use(r));
    *out = rlhf__ref_dev(b->base);
    return RLHF_OK;
}

static void release(void *ctx, rlhf_dev p) {
    struct rlhf__ref *r = ctx;
    if (!p) return;
    r->op = "release";
    if (!rlhf__ref_registry_remove(&r->buffers, rlhf__ref_mem(p)))
        rlhf__ref_fail(r, RLHF_E_INVALID, "not a buffer that alloc returned");
}

static rlhf_status upload(void *ctx, rlhf_dev dst, const void *host_src, uint64_t bytes) {
    const struct rlhf__ref_use uses[] = {{dst, bytes}};
    RLHF_TRY(rlhf__ref_enter(ctx, "upload", uses, 1));
    if (bytes) memcpy(rlhf__ref_mem(dst), host_src, bytes);
    return rlhf__ref_leave(ctx, RLHF_OK);
}

static rlhf_status download(void *ctx, void *host_dst, rlhf_dev src, uint64_t bytes) {
    const struct rlhf__ref_use uses[] = {{src, bytes}};
    RLHF_TRY(rlhf__ref_enter(ctx, "download", uses, 1));
    if (bytes) memcpy(host_dst, rlhf__ref_mem(src), bytes);
    return rlhf__ref_leave(ctx, RLHF_OK);
}

static rlhf_status copy(void *ctx, rlhf_dev dst, rlhf_dev src, uint64_t bytes) {
    const struct rlhf__ref_use uses[] = {{dst, bytes}, {src, bytes}};
    RLHF_TRY(rlhf__ref_enter(ctx, "copy", uses, 2));
    if (bytes) memcpy(rlhf__ref_mem(dst), rlhf__ref_mem(src), bytes);
    return rlhf__ref_leave(ctx, RLHF_OK);
}

static rlhf_status zero(void *ctx, rlhf_dev dst, uint64_t bytes) {
    const struct rlhf__ref_use uses[] = {{dst, bytes}};
    RLHF_TRY(rlhf__ref_enter(ctx, "zero", uses, 1));
    if (bytes) memset(rlhf__ref_mem(dst), 0, bytes);
    return rlhf__ref_leave(ctx, RLHF_OK);
}

static rlhf_status wait_for_all(void *ctx) {
    (void)ctx; // every call has finished when it returns
    return RLHF_OK;
}

// Ordinary host memory, which stays readable in guard mode.
static rlhf_status alloc_host(void *ctx, uint64_t bytes, void **out) {
    struct rlhf__ref *r = ctx;
    r->op = "alloc_host";
    *out = NULL;
    RLHF_TRY(rlhf__ref_count_call(r));
    if (bytes > rlhf__ref_machine_bytes() || posix_memalign(out, 64, bytes ? bytes : 1))
        return rlhf__ref_fail(r, RLHF_E_NOMEM, "cannot allocate %llu bytes of host memory",
                              (unsigned long long)bytes);
    memset(*out, 0, bytes ? bytes : 1);
    return RLHF_OK;
}

static void release_host(void *ctx, void *p) {
    (void)ctx;
    free(p);
}

static rlhf_status mark(void *ctx, uint64_t *ticket) {
    *ticket = ++((struct rlhf__ref *)ctx)->tickets;
    return RLHF_OK;
}

static rlhf_status wait_for(void *ctx, uint64_t ticket) {
    struct rlhf__ref *r = ctx;
    r->op = "wait";
    if (ticket <= r->tickets) return RLHF_OK;
    return rlhf__ref_fail(r, RLHF_E_INVALID, "ticket %llu, mark gave 1 to %llu",
                          (unsigned long long)ticket, (unsigned long long)r->tickets);
}

void rlhf__ref_fill_memory(rlhf_compute *t) {
    t->alloc = alloc;
    t->release = release;
    t->bytes_in_use = bytes_in_use;
    t->upload = upload;
    t->download = download;
    t->copy = copy;
    t->zero = zero;
    t->sync = wait_for_all;
    t->alloc_host = alloc_host;
    t->release_host = release_host;
    t->upload_async = upload;
    t->download_async = download;
    t->mark = mark;
    t->wait = wait_for;
    t->workspace_bytes = workspace_bytes;
}
