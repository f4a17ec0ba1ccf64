// test_fake_runtime.cpp: the errors that the fake runtime rejects or detects, and the failures that
// it can simulate.
#include "machine/cuda.h"

#include <sys/wait.h>
#include <unistd.h>
extern "C" {
#include "support/check.h"
}

namespace {

#define OK(call) assert_int_equal((call), cudaSuccess)

enum { N = 512, BYTES = N * 4 };

__global__ void increase(float *x, int n) {
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) x[i] += 1.0f;
}
cudaError_t run(float *x, cudaStream_t s) {
    return LAUNCH(increase, dim3(N / 128), dim3(128), 0, s, x, (int)N);
}

struct fixture {
    cudaStream_t s;
    float *dev, *pinned, host[N];
};
int setup(void **state) {
    assert_true(rlhf__fake_cuda(""));
    fixture *f = new fixture();
    OK(cudaStreamCreateWithFlags(&f->s, cudaStreamNonBlocking));
    OK(cudaMalloc((void **)&f->dev, BYTES));
    OK(cudaMallocHost((void **)&f->pinned, BYTES));
    for (int i = 0; i < N; i++)
        f->host[i] = f->pinned[i] = (float)i;
    *state = f;
    return 0;
}
int teardown(void **state) {
    fixture *f = (fixture *)*state;
    rlhf__fake_cuda("");
    cudaFreeHost(f->pinned);
    cudaFree(f->dev);
    cudaStreamDestroy(f->s);
    delete f;
    return 0;
}
cudaError_t up(fixture *f, const float *from) {
    return cudaMemcpyAsync(f->dev, from, BYTES, cudaMemcpyHostToDevice, f->s);
}
cudaError_t down(fixture *f, float *to) {
    return cudaMemcpyAsync(to, f->dev, BYTES, cudaMemcpyDeviceToHost, f->s);
}

// Returns the signal that ends `f` in a child process, or 0.
template <class F> int signal_of(F f) {
    fflush(NULL);
    const pid_t p = fork();
    if (p == 0) {
        close(1);
        close(2);
        signal(SIGSEGV, SIG_DFL);
        f();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(p, &status, 0), p);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

// ---- memory ----

void memory_is_out_of_reach_of_the_host(void **state) {
    fixture *f = (fixture *)*state;
    OK(up(f, f->host));
    OK(cudaStreamSynchronize(f->s));
    assert_int_equal(signal_of([&] { f->host[0] = *(volatile float *)f->dev; }), SIGSEGV);
    assert_int_equal(signal_of([&] {
                         LAUNCH(increase, dim3(1), dim3(1024), 0, f->s, f->dev, N + 1);
                         cudaStreamSynchronize(f->s);
                     }),
                     SIGABRT);
    float *gone;
    OK(cudaMalloc((void **)&gone, BYTES));
    OK(cudaFree(gone));
    assert_int_equal(signal_of([&] {
                         run(gone, f->s);
                         cudaStreamSynchronize(f->s);
                     }),
                     SIGABRT);
    assert_int_equal(cudaFree(gone), cudaErrorInvalidValue);
}

void copies_are_checked(void **state) {
    fixture *f = (fixture *)*state;
    const cudaError_t bad = cudaErrorInvalidValue;
    const cudaMemcpyKind to_device = cudaMemcpyHostToDevice, to_host = cudaMemcpyDeviceToHost;
    assert_int_equal(cudaMemcpyAsync(f->dev, f->host, BYTES + 1, to_device, f->s), bad);
    assert_int_equal(cudaMemcpyAsync(f->dev + 1, f->host, BYTES, to_device, f->s), bad);
    assert_int_equal(cudaMemcpyAsync(f->host, f->pinned, 4, to_device, f->s), bad);
    assert_int_equal(cudaMemcpyAsync(f->host, f->pinned, 4, to_host, f->s), bad);
    assert_int_equal(cudaMemcpyAsync(f->dev, f->dev + N, 4, cudaMemcpyDeviceToDevice, f->s), bad);
    assert_int_equal(cudaMemsetAsync(f->host, 0, 4, f->s), bad);
    assert_int_equal(cudaGetLastError(), bad);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
}

void a_failed_call_shows_at_the_next_launch(void **state) {
    fixture *f = (fixture *)*state;
    assert_int_equal(cudaMemsetAsync(f->host, 0, 4, f->s), cudaErrorInvalidValue);
    assert_int_equal(run(f->dev, f->s), cudaErrorInvalidValue);
    OK(run(f->dev, f->s));
}

void memory_nobody_wrote_is_nan(void **state) {
    fixture *f = (fixture *)*state;
    OK(down(f, f->host));
    for (int i = 0; i < N; i++)
        assert_true(f->host[i] != f->host[i]);
}

void memory_runs_out(void **) {
    void *a, *b, *c;
    size_t left, total;
    assert_true(rlhf__fake_cuda("memory=1M"));
    const uint64_t before = rlhf__fake_cuda_bytes();
    OK(cudaMemGetInfo(&left, &total));
    assert_int_equal(total, 1 << 20);
    assert_int_equal(left, (1 << 20) - before);
    OK(cudaMalloc(&a, 600 << 10));
    assert_int_equal(cudaMalloc(&b, 600 << 10), cudaErrorMemoryAllocation);
    assert_null(b);
    // The pool keeps freed memory until it is trimmed.
    OK(cudaMallocAsync(&b, 300 << 10, NULL));
    OK(cudaFreeAsync(b, NULL));
    assert_int_equal(cudaMalloc(&c, 300 << 10), cudaErrorMemoryAllocation);
    cudaMemPool_t pool;
    OK(cudaDeviceGetDefaultMemPool(&pool, 0));
    OK(cudaMemPoolTrimTo(pool, 0));
    assert_int_equal(cudaMalloc(&c, 300 << 10), cudaErrorMemoryAllocation); // not yet freed
    OK(cudaStreamSynchronize(NULL));
    OK(cudaMemPoolTrimTo(pool, 0));
    OK(cudaMalloc(&c, 300 << 10));
    OK(cudaFree(c));
    OK(cudaFree(a));
    assert_int_equal(rlhf__fake_cuda_bytes(), before);
}

// ---- order: code that does not wait always sees old data ----

void pageable_memory_is_staged(void **state) {
    fixture *f = (fixture *)*state;
    OK(up(f, f->host));
    f->host[1] = -1;
    OK(down(f, f->host)); // waits
    assert_true(f->host[1] == 1.0f);
}

void pinned_memory_is_read_late(void **state) {
    fixture *f = (fixture *)*state;
    OK(up(f, f->pinned));
    f->pinned[1] = -1;
    OK(down(f, f->host));
    assert_true(f->host[1] == -1.0f);
}

void pinned_memory_is_written_late(void **state) {
    fixture *f = (fixture *)*state;
    OK(up(f, f->host));
    OK(run(f->dev, f->s));
    OK(down(f, f->pinned));
    assert_true(f->pinned[5] == 5.0f);
    assert_int_equal(rlhf__fake_cuda_pending(), 3);
    OK(cudaStreamSynchronize(f->s));
    assert_true(f->pinned[5] == 6.0f);
    assert_int_equal(rlhf__fake_cuda_pending(), 0);
}

void an_event_ends_at_its_place(void **state) {
    fixture *f = (fixture *)*state;
    cudaEvent_t e;
    OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    OK(cudaEventQuery(e)); // never recorded
    OK(up(f, f->host));
    OK(down(f, f->pinned));
    OK(cudaEventRecord(e, f->s));
    OK(run(f->dev, f->s));
    assert_int_equal(cudaEventQuery(e), cudaErrorNotReady);
    assert_int_equal(cudaGetLastError(), cudaErrorNotReady);
    OK(cudaEventSynchronize(e));
    OK(cudaEventQuery(e));
    assert_true(f->pinned[7] == 7.0f);
    assert_int_equal(rlhf__fake_cuda_pending(), 1);
    OK(cudaEventDestroy(e));
}

void streams_wait_for_events_only(void **state) {
    fixture *f = (fixture *)*state;
    cudaStream_t other;
    cudaEvent_t e;
    OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    OK(up(f, f->host));
    OK(cudaStreamSynchronize(f->s));
    OK(run(f->dev, other)); // not ordered before the copy
    OK(down(f, f->pinned));
    OK(cudaStreamSynchronize(f->s));
    assert_true(f->pinned[3] == 3.0f);
    OK(cudaEventRecord(e, other));
    OK(cudaStreamWaitEvent(f->s, e, 0));
    OK(down(f, f->pinned));
    OK(cudaStreamSynchronize(f->s));
    assert_true(f->pinned[3] == 4.0f);
    OK(cudaEventDestroy(e));
    OK(cudaStreamDestroy(other));
}

void memory_freed_in_the_stream_lives_until_there(void **state) {
    fixture *f = (fixture *)*state;
    float *p;
    OK(cudaMallocAsync((void **)&p, BYTES, f->s));
    OK(cudaMemcpyAsync(p, f->host, BYTES, cudaMemcpyHostToDevice, f->s));
    OK(cudaMemcpyAsync(f->pinned, p, BYTES, cudaMemcpyDeviceToHost, f->s));
    OK(cudaFreeAsync(p, f->s));
    assert_int_equal(cudaMemsetAsync(p, 0, 4, f->s), cudaErrorInvalidValue);
    OK(cudaStreamSynchronize(f->s));
    assert_true(f->pinned[9] == 9.0f);
    assert_int_equal(cudaFreeAsync(f->dev, f->s), cudaErrorInvalidValue); // it came from cudaMalloc
}

// ---- graphs ----

void a_graph_repeats_what_was_captured(void **state) {
    fixture *f = (fixture *)*state;
    cudaGraph_t g;
    cudaGraphExec_t x;
    cudaStreamCaptureStatus now;
    OK(cudaStreamBeginCapture(f->s, cudaStreamCaptureModeThreadLocal));
    OK(cudaStreamIsCapturing(f->s, &now));
    assert_int_equal(now, cudaStreamCaptureStatusActive);
    OK(up(f, f->pinned));
    float *arg = f->dev;
    OK(run(arg, f->s));
    OK(run(arg, f->s));
    arg = NULL; // captured by value
    OK(down(f, f->pinned));
    OK(cudaStreamEndCapture(f->s, &g));
    OK(cudaGraphInstantiate(&x, g, 0));
    OK(cudaGraphDestroy(g));
    OK(cudaStreamSynchronize(f->s));
    assert_true(f->pinned[4] == 4.0f); // captured, not executed
    for (int i = 0; i < 3; i++)
        OK(cudaGraphLaunch(x, f->s));
    OK(cudaStreamSynchronize(f->s));
    assert_true(f->pinned[4] == 10.0f);
    OK(cudaGraphExecDestroy(x));
}

void a_capture_breaks(void **state) {
    fixture *f = (fixture *)*state;
    for (int i = 0; i < 8; i++) {
        cudaGraph_t g;
        void *p = NULL;
        OK(cudaStreamBeginCapture(f->s, cudaStreamCaptureModeGlobal));
        const cudaError_t e = i == 0   ? cudaStreamSynchronize(f->s)
                              : i == 1 ? cudaMalloc(&p, 4)
                              : i == 2 ? cudaMallocHost(&p, 4)
                              : i == 3 ? up(f, f->host)
                              : i == 4 ? down(f, f->host)
                              : i == 5 ? cudaDeviceSynchronize()
                              : i == 6 ? cudaFree(f->dev)
                                       : cudaMallocAsync(&p, 4, f->s);
        assert_int_equal(e, cudaErrorStreamCaptureUnsupported);
        assert_int_equal(up(f, f->pinned), cudaErrorStreamCaptureInvalidated);
        assert_int_equal(cudaStreamEndCapture(f->s, &g), cudaErrorStreamCaptureInvalidated);
        assert_null(g);
        cudaGetLastError();
        OK(cudaStreamSynchronize(f->s)); // the stream still works
    }
    cudaGraph_t g;
    assert_int_equal(cudaStreamEndCapture(f->s, &g), cudaErrorStreamCaptureUnmatched);
}

// ---- simulated machines and failures ----

void machines(void **) {
    int n, v;
    cudaDeviceProp p;
    assert_true(rlhf__fake_cuda("driver=0"));
    OK(cudaDriverGetVersion(&v));
    assert_int_equal(v, 0);
    assert_int_equal(cudaGetDeviceCount(&n), cudaErrorInsufficientDriver);
    assert_true(rlhf__fake_cuda("driver=12040"));
    assert_int_equal(cudaSetDevice(0), cudaErrorInsufficientDriver);
    assert_true(rlhf__fake_cuda("devices=0"));
    assert_int_equal(cudaGetDeviceCount(&n), cudaErrorNoDevice);
    assert_true(rlhf__fake_cuda("devices=3,name=One/Two,sm=90/75,memory=2G/1M,driver=13010"));
    OK(cudaGetDeviceCount(&n));
    assert_int_equal(n, 3);
    OK(cudaGetDeviceProperties(&p, 0));
    assert_string_equal(p.name, "One");
    assert_int_equal(p.major * 10 + p.minor, 90);
    assert_int_equal(p.totalGlobalMem, 2ull << 30);
    OK(cudaGetDeviceProperties(&p, 2));
    assert_string_equal(p.name, "Two");
    assert_int_equal(p.major * 10 + p.minor, 75);
    OK(cudaDeviceGetAttribute(&v, cudaDevAttrComputeCapabilityMinor, 2));
    assert_int_equal(v, 5);
    assert_int_equal(cudaSetDevice(3), cudaErrorInvalidDevice);
    assert_true(rlhf__fake_cuda("sm=86"));
    assert_int_equal(ALLOW_SHARED(increase, 100 << 10), cudaErrorInvalidValue);
    OK(ALLOW_SHARED(increase, 99 << 10));
    assert_false(rlhf__fake_cuda("cards=2"));
    assert_false(rlhf__fake_cuda("fail=launch"));
    assert_false(rlhf__fake_cuda("memory=lots"));
}

void planned_failures(void **state) {
    fixture *f = (fixture *)*state;
    void *p;
    assert_true(rlhf__fake_cuda("fail=cudaMalloc:2@2,fail=launch:701@1"));
    OK(cudaMalloc(&p, 4));
    OK(cudaFree(p));
    assert_int_equal(cudaMalloc(&p, 4), cudaErrorMemoryAllocation);
    OK(cudaMalloc(&p, 4)); // once
    OK(cudaFree(p));
    assert_int_equal(run(f->dev, f->s), cudaErrorLaunchOutOfResources);
    cudaGetLastError();
    OK(run(f->dev, f->s));
    OK(cudaStreamSynchronize(f->s));
    assert_true(rlhf__fake_cuda("fail=cudaMalloc:2@1x2"));
    assert_int_equal(cudaMalloc(&p, 4), cudaErrorMemoryAllocation);
    assert_int_equal(cudaMalloc(&p, 4), cudaErrorMemoryAllocation);
    OK(cudaMalloc(&p, 4));
    OK(cudaFree(p));
    assert_true(rlhf__fake_cuda("fail=any:214@3"));
    OK(run(f->dev, f->s));
    OK(run(f->dev, f->s));
    assert_int_equal(cudaStreamSynchronize(f->s), cudaErrorECCUncorrectable);
    assert_int_equal(cudaGetLastError(), cudaErrorECCUncorrectable);
    assert_int_equal(cudaMalloc(&p, 4), cudaErrorECCUncorrectable); // permanently
    assert_int_equal(cudaGetLastError(), cudaErrorECCUncorrectable);
    assert_int_equal(rlhf__fake_cuda_calls(), 4);
}

} // namespace

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(memory_is_out_of_reach_of_the_host),
        TEST(copies_are_checked),
        TEST(a_failed_call_shows_at_the_next_launch),
        TEST(memory_nobody_wrote_is_nan),
        TEST(memory_runs_out),
        TEST(pageable_memory_is_staged),
        TEST(pinned_memory_is_read_late),
        TEST(pinned_memory_is_written_late),
        TEST(an_event_ends_at_its_place),
        TEST(streams_wait_for_events_only),
        TEST(memory_freed_in_the_stream_lives_until_there),
        TEST(a_graph_repeats_what_was_captured),
        TEST(a_capture_breaks),
        TEST(machines),
        TEST(planned_failures),
    };
    return cmocka_run_group_tests_name("cuda: fake runtime", tests, NULL, NULL);
}
