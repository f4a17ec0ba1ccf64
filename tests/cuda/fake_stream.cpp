// fake_stream.cpp: the queued operations of the fake runtime: copies and launches, streams, events,
// and graphs captured from a stream.
#include "fake_state.h"

#include <map>
#include <set>
#include <stdlib.h>
#include <string.h>

namespace {

double card_clock; // milliseconds

CUstream_st by_default;
std::set<CUstream_st *> streams = {&by_default};
std::map<const void *, unsigned> shared_allowed; // kernel -> bytes of dynamic shared memory

int depth; // depth of run_until: work may wait for another stream's work
void run_until(CUstream_st *s, uint64_t at) {
    if (s->done >= at) return;
    if (depth++ == 0) fake::memory_open();
    while (s->done < at) {
        const fake_work work = std::move(s->queue.front());
        s->queue.pop_front();
        s->done++;
        work();
    }
    if (--depth == 0) fake::memory_shut();
}

cudaError_t known(cudaStream_t s) {
    return !s || streams.count(s) ? cudaSuccess : fake::failed(cudaErrorInvalidResourceHandle);
}

cudaError_t broken(CUstream_st *s) {
    s->broken = true;
    return fake::failed(cudaErrorStreamCaptureUnsupported);
}

} // namespace

namespace fake {

CUstream_st *stream_of(cudaStream_t s) { return s ? s : &by_default; }

cudaError_t submit(cudaStream_t stream, fake_work work) {
    if (known(stream) != cudaSuccess) return cudaErrorInvalidResourceHandle;
    CUstream_st *s = stream_of(stream);
    if (s->graph) {
        if (s->broken) return failed(cudaErrorStreamCaptureInvalidated);
        s->graph->nodes.push_back(std::move(work));
        return cudaSuccess;
    }
    s->queue.push_back(std::move(work));
    s->begun++;
    return cudaSuccess;
}
void run_all() {
    for (CUstream_st *s : streams)
        run_until(s, s->begun);
}
cudaError_t refuse_while_capturing(CUstream_st *s) { return s->graph ? broken(s) : cudaSuccess; }
cudaError_t refuse_while_capturing() {
    for (CUstream_st *s : streams)
        if (s->graph) return broken(s);
    return cudaSuccess;
}

} // namespace fake

extern "C" {

__attribute__((visibility("default"))) uint64_t rlhf__fake_cuda_pending(void) {
    uint64_t n = 0;
    for (CUstream_st *s : streams)
        n += s->begun - s->done;
    return n;
}

// ---- work ----

__attribute__((visibility("default"))) void emu_tick(float ms) { card_clock += (double)ms; }

__attribute__((visibility("default"))) cudaError_t
emu_enqueue(void (*run)(void *), void *arg, void (*drop)(void *), cudaStream_t s) {
    const std::shared_ptr<void> held(arg, drop);
    const cudaError_t no = fake::enter("launch");
    if (no != cudaSuccess) return no;
    if (s && streams.count(s) && s->device != fake::current()) // belongs to another card
        return fake::failed(cudaErrorInvalidResourceHandle), fake::take_last_error();
    const cudaError_t e = fake::submit(s, [=] { run(held.get()); });
    // cudaGetLastError, which the backend calls after a launch, reports any failure since it was
    // last called.
    return e != cudaSuccess ? e : fake::take_last_error();
}
cudaError_t emu_allow_shared(const void *kernel, uint64_t bytes) {
    const cudaError_t no = fake::enter("cudaFuncSetAttribute");
    if (no != cudaSuccess) return no;
    if (bytes > fake::shared_limit()) return fake::failed(cudaErrorInvalidValue);
    shared_allowed[kernel] = (unsigned)bytes;
    return cudaSuccess;
}
unsigned emu_allowed_shared(const void *kernel) {
    const auto it = shared_allowed.find(kernel);
    return it == shared_allowed.end() || it->second < 48 * 1024 ? 48 * 1024 : it->second;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
    FAKE_ENTER();
    const bool up = kind == cudaMemcpyHostToDevice, down = kind == cudaMemcpyDeviceToHost;
    if (kind == cudaMemcpyHostToHost || (!down && !fake::is_device(to, n)) ||
        (!up && !fake::is_device(from, n)))
        return fake::failed(cudaErrorInvalidValue);
    const bool pageable = (up && !fake::is_pinned(from, n)) || (down && !fake::is_pinned(to, n));
    CUstream_st *s = fake::stream_of(stream);
    if (pageable && s->graph) return broken(s);
    if (pageable && up) { // copied to a staging buffer before the call returns
        void *copy = malloc(n ? n : 1);
        memcpy(copy, from, n);
        const std::shared_ptr<void> held(copy, free);
        return fake::submit(stream, [=] { memcpy(to, held.get(), n); });
    }
    // Pinned memory is read and written as late as the rules allow.
    const cudaError_t e = fake::submit(stream, [=] { memmove(to, from, n); });
    if (e == cudaSuccess && pageable) run_until(s, s->begun);
    return e;
}
cudaError_t cudaMemsetAsync(void *to, int v, size_t n, cudaStream_t s) {
    FAKE_ENTER();
    if (!fake::is_device(to, n)) return fake::failed(cudaErrorInvalidValue);
    return fake::submit(s, [=] { memset(to, v, n); });
}

// ---- streams and events ----

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned) {
    FAKE_ENTER();
    streams.insert(*out = new CUstream_st);
    (*out)->device = fake::current();
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
    FAKE_ENTER();
    if (!s || known(s) != cudaSuccess) return fake::failed(cudaErrorInvalidResourceHandle);
    run_until(s, s->begun);
    streams.erase(s);
    delete s;
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    FAKE_ENTER();
    if (known(stream) != cudaSuccess) return cudaErrorInvalidResourceHandle;
    CUstream_st *s = fake::stream_of(stream);
    if (s->graph) return broken(s);
    run_until(s, s->begun);
    return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize(void) {
    FAKE_ENTER();
    const cudaError_t no = fake::refuse_while_capturing();
    if (no == cudaSuccess) fake::run_all();
    return no;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) {
    FAKE_ENTER();
    *out = new CUevent_st;
    if (!(flags & cudaEventDisableTiming)) (*out)->clock = std::make_shared<double>(-1.0);
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t e) {
    FAKE_ENTER();
    delete e;
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t stream) {
    FAKE_ENTER();
    if (known(stream) != cudaSuccess) return cudaErrorInvalidResourceHandle;
    CUstream_st *s = fake::stream_of(stream);
    if (s->graph) return broken(s);
    if (e->clock) {
        const std::shared_ptr<double> to = e->clock;
        const cudaError_t no = fake::submit(stream, [=] { *to = card_clock; });
        if (no != cudaSuccess) return no;
    }
    e->stream = s;
    e->at = s->begun;
    return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to) {
    FAKE_ENTER();
    if (!from->clock || !to->clock) return fake::failed(cudaErrorInvalidResourceHandle);
    if (*from->clock < 0 || *to->clock < 0) return fake::failed(cudaErrorNotReady);
    *ms = (float)(*to->clock - *from->clock);
    return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t e) {
    FAKE_ENTER();
    const bool done = !e->stream || !streams.count(e->stream) || e->stream->done >= e->at;
    return done ? cudaSuccess : fake::failed(cudaErrorNotReady);
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
    FAKE_ENTER();
    const cudaError_t no = fake::refuse_while_capturing();
    if (no != cudaSuccess) return no;
    if (e->stream && streams.count(e->stream)) run_until(e->stream, e->at);
    return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t e, unsigned) {
    FAKE_ENTER();
    CUstream_st *first = e->stream;
    const uint64_t at = e->at;
    if (!first) return cudaSuccess;
    return fake::submit(stream, [=] {
        if (streams.count(first)) run_until(first, at);
    });
}

// ---- graphs ----

cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode) {
    FAKE_ENTER();
    if (!s) return fake::failed(cudaErrorStreamCaptureUnsupported); // not the default stream
    if (known(s) != cudaSuccess) return cudaErrorInvalidResourceHandle;
    if (s->graph) return fake::failed(cudaErrorInvalidValue);
    s->graph = new CUgraph_st;
    s->broken = false;
    return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *out) {
    *out = NULL;
    FAKE_ENTER();
    if (!s || known(s) != cudaSuccess) return fake::failed(cudaErrorInvalidResourceHandle);
    if (!s->graph) return fake::failed(cudaErrorStreamCaptureUnmatched);
    CUgraph_st *g = s->graph;
    s->graph = NULL;
    if (s->broken) {
        delete g;
        return fake::failed(cudaErrorStreamCaptureInvalidated);
    }
    *out = g;
    return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *out) {
    FAKE_ENTER();
    const CUstream_st *s = fake::stream_of(stream);
    *out = !s->graph   ? cudaStreamCaptureStatusNone
           : s->broken ? cudaStreamCaptureStatusInvalidated
                       : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t g, unsigned long long) {
    *out = NULL;
    FAKE_ENTER();
    *out = new CUgraphExec_st{std::make_shared<std::vector<fake_work>>(g->nodes)};
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t g) {
    FAKE_ENTER();
    delete g;
    return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t g) {
    FAKE_ENTER();
    delete g;
    return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t g, cudaStream_t s) {
    FAKE_ENTER();
    const auto nodes = g->nodes;
    return fake::submit(s, [=] {
        for (const fake_work &work : *nodes)
            work();
    });
}

} // extern "C"
