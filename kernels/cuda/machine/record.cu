// record.cu: repeated calls, which are kept as CUDA graphs.
//
// The first time that a key occurs, its calls run normally, so that workspaces get their sizes, and
// kernels get their attributes. The second time, they are captured. From then on, the captured
// graph is launched. A graph contains addresses. So it is dropped if memory that existed at its
// capture is released, if a workspace grows, or if a weight is packed. A recording whose calls have
// run but were not captured yet is dropped in these cases too, because other calls may then follow
// with the same key.
#include "table.h"

#include <string.h>

static void drop(struct rlhf__cuda_recording *r) {
    if (r->graph) cudaGraphExecDestroy(r->graph);
    memset(r, 0, sizeof *r);
}

void rlhf__cuda_recordings_drop(struct rlhf__cuda *cu, uint64_t serial) {
    for (struct rlhf__cuda_recording &r : cu->recordings.kept)
        if (r.key && r.serial >= serial && &r != cu->recordings.now) drop(&r);
}

// Returns the recording with this key. If there is none, the slot of the least recently used
// recording is reused for it.
static struct rlhf__cuda_recording *place_of(struct rlhf__cuda *cu, uint64_t key) {
    struct rlhf__cuda_recording *oldest = cu->recordings.kept;
    for (struct rlhf__cuda_recording &r : cu->recordings.kept) {
        if (r.key == key && r.weights == cu->weight_generation) return &r;
        if (r.key == key) {
            oldest = &r;
            break;
        }
        if (r.used < oldest->used) oldest = &r;
    }
    drop(oldest);
    oldest->key = key;
    oldest->weights = cu->weight_generation;
    return oldest;
}

static rlhf_status record(void *ctx, uint64_t key, int32_t *what) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    struct rlhf__cuda_recordings *all = &cu->recordings;
    RLHF_TRY(rlhf__cuda_not_recording(cu, "record"));
    if (!key) return rlhf__cuda_fail(cu, RLHF_E_INVALID, "record: key 0, any other is allowed");
    *what = RLHF_RECORD_RUN;
    all->status = RLHF_OK;
    cu->kept.valid = 0; // because a replayed call does not announce its writes
    struct rlhf__cuda_recording *r = place_of(cu, key);
    r->used = ++all->clock;
    if (cu->guard) { // in guard mode each call must wait and report
        all->what = *what;
        all->now = r;
        return RLHF_OK;
    }
    if (r->graph)
        *what = RLHF_RECORD_REPLAY;
    else if (r->ran) {
        RLHF_TRY(
            rlhf__cuda_check(cu, "beginning a capture",
                             cudaStreamBeginCapture(cu->stream, cudaStreamCaptureModeThreadLocal)));
        *what = RLHF_RECORD_CAPTURE;
    }
    all->what = *what;
    all->now = r;
    return RLHF_OK;
}

// Ends the capture, even if a captured call failed. On success, *out is the graph. On failure, *out
// is NULL, and the function returns the error.
static cudaError_t end_capture(struct rlhf__cuda *cu, cudaGraphExec_t *out) {
    cudaGraph_t graph = NULL;
    *out = NULL;
    cudaError_t e = cudaStreamEndCapture(cu->stream, &graph);
    if (e == cudaSuccess) e = cudaGraphInstantiate(out, graph, 0);
    if (e == cudaErrorMemoryAllocation && rlhf__cuda_memory_spare(cu) == cudaSuccess)
        e = cudaGraphInstantiate(out, graph, 0);
    if (graph) cudaGraphDestroy(graph);
    return e;
}

static rlhf_status record_end(void *ctx) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    struct rlhf__cuda_recordings *all = &cu->recordings;
    struct rlhf__cuda_recording *r = all->now;
    if (!r) return rlhf__cuda_fail(cu, RLHF_E_INVALID, "record_end without record");
    all->now = NULL;
    rlhf_status st = all->status; // status of the first call that failed; the host has its text
    if (all->what == RLHF_RECORD_CAPTURE) {
        const cudaError_t e = end_capture(cu, &r->graph);
        if (st == RLHF_OK) st = rlhf__cuda_check(cu, "keeping what was recorded", e);
        if (e != cudaSuccess) cudaGetLastError();
    }
    r->serial = cu->serial;
    if (st < 0) {
        drop(r);
        return st;
    }
    r->ran = 1;
    if (all->what == RLHF_RECORD_RUN) return RLHF_OK;
    return rlhf__cuda_check(cu, "running what was recorded", cudaGraphLaunch(r->graph, cu->stream));
}

void rlhf__cuda_fill_record(rlhf_compute *t) {
    t->record = record;
    t->record_end = record_end;
}
