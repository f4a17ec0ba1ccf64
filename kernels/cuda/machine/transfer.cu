// transfer.cu: transfers between host and card: copies in pieces, pinned memory, asynchronous
// copies, and marks.
//
// upload returns as soon as its source has been read; it does not wait for the stream. The data
// goes through a ring of pinned pieces. upload waits only until the previous copy from the same
// piece has finished.
#include "table.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = RLHF__CUDA_STAGE_BYTES, PIECES = RLHF__CUDA_STAGE_PIECES };

rlhf_status rlhf__cuda_transfer_open(struct rlhf__cuda *cu) {
    struct rlhf__cuda_stage *s = &cu->stage;
    RLHF_TRY(rlhf__cuda_check(cu, "allocating pinned memory",
                              cudaMallocHost((void **)&s->ring, (size_t)PIECES * PIECE)));
    RLHF_TRY(rlhf__cuda_check(cu, "allocating pinned memory",
                              cudaMallocHost((void **)&s->landing, PIECE)));
    RLHF_TRY(rlhf__cuda_check(
        cu, "allocating pinned memory",
        cudaMallocHost((void **)&cu->marks.fault, sizeof *cu->marks.fault * RLHF__CUDA_MARKS)));
    for (int i = 0; i < PIECES; i++)
        RLHF_TRY(rlhf__cuda_check(cu, "making an event",
                                  cudaEventCreateWithFlags(&s->read[i], cudaEventDisableTiming)));
    for (int i = 0; i < RLHF__CUDA_MARKS; i++)
        RLHF_TRY(rlhf__cuda_check(
            cu, "making an event",
            cudaEventCreateWithFlags(&cu->marks.reached[i], cudaEventDisableTiming)));
    return RLHF_OK;
}

void rlhf__cuda_transfer_close(struct rlhf__cuda *cu) {
    while (cu->host.n) {
        cudaFreeHost(cu->host.all[cu->host.n - 1].at);
        cu->host.n--;
    }
    free(cu->host.all);
    for (int i = 0; i < PIECES; i++)
        if (cu->stage.read[i]) cudaEventDestroy(cu->stage.read[i]);
    for (int i = 0; i < RLHF__CUDA_MARKS; i++)
        if (cu->marks.reached[i]) cudaEventDestroy(cu->marks.reached[i]);
    if (cu->stage.ring) cudaFreeHost(cu->stage.ring);
    if (cu->stage.landing) cudaFreeHost(cu->stage.landing);
    if (cu->marks.fault) cudaFreeHost(cu->marks.fault);
}

// ---- copies in pieces ----

// The next piece of the ring. Waits until the last copy from it has finished.
static rlhf_status next_piece(struct rlhf__cuda *cu) {
    struct rlhf__cuda_stage *s = &cu->stage;
    RLHF_TRY(rlhf__cuda_check(cu, "cudaEventRecord", cudaEventRecord(s->read[s->at], cu->stream)));
    s->at = (s->at + 1) % PIECES;
    s->used = 0;
    return rlhf__cuda_check(cu, "waiting for an upload", cudaEventSynchronize(s->read[s->at]));
}

rlhf_status rlhf__cuda_send(struct rlhf__cuda *cu, void *to, const void *from, uint64_t bytes) {
    struct rlhf__cuda_stage *s = &cu->stage;
    for (uint64_t done = 0, n; done < bytes; done += n) {
        if (s->used == PIECE) RLHF_TRY(next_piece(cu));
        n = bytes - done < PIECE - s->used ? bytes - done : PIECE - s->used;
        char *at = s->ring + (uint64_t)s->at * PIECE + s->used;
        memcpy(at, (const char *)from + done, n);
        RLHF_TRY(rlhf__cuda_check(
            cu, "upload",
            cudaMemcpyAsync((char *)to + done, at, n, cudaMemcpyHostToDevice, cu->stream)));
        s->used += (n + 63) / 64 * 64;
        if (s->used > PIECE) s->used = PIECE;
    }
    return RLHF_OK;
}

static rlhf_status upload(void *ctx, rlhf_dev dst, const void *host_src, uint64_t bytes) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    RLHF_TRY(rlhf__cuda_not_recording(cu, "upload"));
    rlhf__cuda_wrote(cu, rlhf__cuda_mem(dst), bytes);
    return rlhf__cuda_send(cu, rlhf__cuda_mem(dst), host_src, bytes);
}

static rlhf_status download(void *ctx, void *host_dst, rlhf_dev src, uint64_t bytes) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    RLHF_TRY(rlhf__cuda_not_recording(cu, "download"));
    void *to = bytes <= PIECE ? cu->stage.landing : host_dst;
    if (bytes)
        RLHF_TRY(rlhf__cuda_check(
            cu, "download",
            cudaMemcpyAsync(to, rlhf__cuda_mem(src), bytes, cudaMemcpyDeviceToHost, cu->stream)));
    RLHF_TRY(rlhf__cuda_wait(cu));
    if (bytes && to != host_dst) memcpy(host_dst, to, bytes);
    return RLHF_OK;
}

static rlhf_status wait_for_all(void *ctx) { return rlhf__cuda_wait((struct rlhf__cuda *)ctx); }

// ---- pinned ----

static rlhf_status alloc_host(void *ctx, uint64_t bytes, void **out) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    *out = NULL;
    RLHF_TRY(rlhf__cuda_not_recording(cu, "alloc_host"));
    void *p = NULL;
    const cudaError_t e = cudaMallocHost(&p, bytes ? bytes : 1);
    if (e == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        return rlhf__cuda_fail(cu, RLHF_E_NOMEM, "cannot pin %llu bytes of host memory",
                               (unsigned long long)bytes);
    }
    RLHF_TRY(rlhf__cuda_check(cu, "allocating pinned memory", e));
    if (!rlhf__cuda_blocks_add(&cu->host, p, bytes, ++cu->serial)) {
        cudaFreeHost(p);
        return rlhf__cuda_fail(cu, RLHF_E_NOMEM, "out of host memory for a block");
    }
    memset(p, 0, bytes);
    *out = p;
    return RLHF_OK;
}

static void release_host(void *ctx, void *p) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    struct rlhf__cuda_block *b = p ? rlhf__cuda_blocks_find(&cu->host, p) : NULL;
    if (!b || b->at != p || rlhf__cuda_not_recording(cu, "release_host") < 0) return;
    rlhf__cuda_blocks_remove(&cu->host, b);
    cudaStreamSynchronize(cu->stream); // if this fails, the next call reports it
    cudaFreeHost(p);
}

// Checks that [p, p + bytes) is valid for an asynchronous copy.
static rlhf_status check_host(struct rlhf__cuda *cu, const char *op, const void *p,
                              uint64_t bytes) {
    RLHF_TRY(rlhf__cuda_not_recording(cu, op));
    const struct rlhf__cuda_block *b = rlhf__cuda_blocks_find(&cu->host, p);
    if (b && bytes <= b->bytes - (uint64_t)((const char *)p - b->at)) return RLHF_OK;
    return rlhf__cuda_fail(cu, RLHF_E_INVALID,
                           "%s: the %llu bytes of host memory do not lie in one buffer of "
                           "alloc_host",
                           op, (unsigned long long)bytes);
}

static rlhf_status upload_async(void *ctx, rlhf_dev dst, const void *host_src, uint64_t bytes) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    RLHF_TRY(check_host(cu, "upload_async", host_src, bytes));
    if (!bytes) return RLHF_OK;
    rlhf__cuda_wrote(cu, rlhf__cuda_mem(dst), bytes);
    return rlhf__cuda_check(
        cu, "upload_async",
        cudaMemcpyAsync(rlhf__cuda_mem(dst), host_src, bytes, cudaMemcpyHostToDevice, cu->stream));
}

static rlhf_status download_async(void *ctx, void *host_dst, rlhf_dev src, uint64_t bytes) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    RLHF_TRY(check_host(cu, "download_async", host_dst, bytes));
    if (!bytes) return RLHF_OK;
    return rlhf__cuda_check(
        cu, "download_async",
        cudaMemcpyAsync(host_dst, rlhf__cuda_mem(src), bytes, cudaMemcpyDeviceToHost, cu->stream));
}

// ---- marks: events in a ring, each with a copy of the fault word at its place in the stream ----

static rlhf_status mark(void *ctx, uint64_t *ticket) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    struct rlhf__cuda_marks *m = &cu->marks;
    RLHF_TRY(rlhf__cuda_not_recording(cu, "mark"));
    const uint64_t i = (m->given + 1) % RLHF__CUDA_MARKS;
    RLHF_TRY(rlhf__cuda_check(cu, "reading faults",
                              cudaMemcpyAsync(&m->fault[i], cu->fault, sizeof *m->fault,
                                              cudaMemcpyDeviceToHost, cu->stream)));
    RLHF_TRY(rlhf__cuda_check(cu, "cudaEventRecord", cudaEventRecord(m->reached[i], cu->stream)));
    *ticket = ++m->given;
    return RLHF_OK;
}

static rlhf_status wait_for(void *ctx, uint64_t ticket) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    struct rlhf__cuda_marks *m = &cu->marks;
    RLHF_TRY(rlhf__cuda_not_recording(cu, "wait"));
    if (!ticket) return RLHF_OK;
    if (ticket > m->given)
        return rlhf__cuda_fail(cu, RLHF_E_INVALID, "wait: ticket %llu, mark gave 1 to %llu",
                               (unsigned long long)ticket, (unsigned long long)m->given);
    // If many marks have been made since `ticket`, a later mark has reused its event. The wait then
    // lasts longer than necessary.
    const uint64_t i = ticket % RLHF__CUDA_MARKS;
    RLHF_TRY(rlhf__cuda_check(cu, "waiting for the GPU", cudaEventSynchronize(m->reached[i])));
    return ticket > m->reported ? rlhf__cuda_fault_report(cu, &m->fault[i]) : RLHF_OK;
}

// ---- other libraries ----

static rlhf_status native(void *ctx, rlhf_dev p, void **address, void **stream) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    RLHF_TRY(rlhf__cuda_not_recording(cu, "native"));
    *address = rlhf__cuda_mem(p);
    *stream = cu->stream;
    return RLHF_OK;
}

void rlhf__cuda_fill_transfer(rlhf_compute *t) {
    t->upload = upload;
    t->download = download;
    t->sync = wait_for_all;
    t->alloc_host = alloc_host;
    t->release_host = release_host;
    t->upload_async = upload_async;
    t->download_async = download_async;
    t->mark = mark;
    t->wait = wait_for;
    t->native = native;
}
