// fake_state.h: declarations shared by the files of the fake runtime.
#ifndef RLHF_TESTS_CUDA_FAKE_STATE_H
#define RLHF_TESTS_CUDA_FAKE_STATE_H

#include "fake_runtime.h"

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

typedef std::function<void()> fake_work; // may run again (graphs)

struct CUstream_st {
    int device = 0;
    std::deque<fake_work> queue;
    uint64_t begun = 0, done = 0;
    CUgraph_st *graph = NULL; // the graph being captured into
    bool broken = false;      // whether the capture is broken
};
struct CUevent_st {
    CUstream_st *stream = NULL; // NULL: never recorded, which counts as done
    uint64_t at = 0;
    std::shared_ptr<double> clock; // receives the time of its record; NULL: created without timing
};
struct CUgraph_st {
    std::vector<fake_work> nodes;
};
struct CUgraphExec_st {
    std::shared_ptr<std::vector<fake_work>> nodes;
};

namespace fake {

struct device {
    std::string name;
    int sm = 90;
    uint64_t memory = 0;
};

// ---- device.cpp: settings and errors ----
device device_of(int index);
int current(); // the thread's device
// Every function of the runtime calls this first. Returns the error that the call must fail with.
cudaError_t enter(const char *call);
// Stores e for cudaGetLastError, and returns it.
cudaError_t failed(cudaError_t e);
cudaError_t take_last_error();
unsigned shared_limit(); // largest size for a block, with the attribute

// ---- memory.cpp ----
void memory_open(); // makes device memory accessible to the OS thread while work runs
void memory_shut();
bool is_device(const void *p, size_t n);
bool is_pinned(const void *p, size_t n);

// ---- stream.cpp ----
CUstream_st *stream_of(cudaStream_t s); // NULL: the default stream
// Queues or captures work.
cudaError_t submit(cudaStream_t s, fake_work work);
void run_all();
// For calls that are not allowed during a capture: returns an error if a stream is being captured,
// and breaks the capture.
cudaError_t refuse_while_capturing();
cudaError_t refuse_while_capturing(CUstream_st *s);

} // namespace fake

#define FAKE_ENTER()                                                                               \
    do {                                                                                           \
        const cudaError_t no_ = fake::enter(__func__);                                             \
        if (no_ != cudaSuccess) return no_;                                                        \
    } while (0)

#endif
