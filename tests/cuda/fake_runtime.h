// fake_runtime.h: the part of CUDA's runtime that the backend uses, declared as in NVIDIA's header.
// It needs no GPU. The file also has the interface for the emulation and the tests.
//
// Work is queued and runs when something waits for it, so code that forgets to wait sees old data.
// Device memory is inaccessible to the host. Every allocation ends at an inaccessible page and is
// NaN until it is written. Addresses are never reused.
#ifndef RLHF_TESTS_CUDA_FAKE_RUNTIME_H
#define RLHF_TESTS_CUDA_FAKE_RUNTIME_H

#include "fake_list.h"

#include <stddef.h>
#include <stdint.h>

#define FAKE_ENUM(name, value) name = value,
enum cudaError { FAKE_ERRORS(FAKE_ENUM) };
typedef enum cudaError cudaError_t;
enum cudaMemcpyKind { FAKE_MEMCPY_KINDS(FAKE_ENUM) };
enum cudaStreamCaptureMode { FAKE_CAPTURE_MODES(FAKE_ENUM) };
enum cudaStreamCaptureStatus { FAKE_CAPTURE_STATES(FAKE_ENUM) };
enum cudaDeviceAttr { FAKE_ATTRIBUTES(FAKE_ENUM) };
enum cudaMemPoolAttr { FAKE_POOL_ATTRIBUTES(FAKE_ENUM) };
enum { FAKE_FLAGS(FAKE_ENUM) };
#undef FAKE_ENUM

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct CUmemPoolHandle_st *cudaMemPool_t;

struct cudaDeviceProp {
    char name[256];
#define FAKE_MEMBER(type, name) type name;
    FAKE_PROPERTIES(FAKE_MEMBER)
#undef FAKE_MEMBER
};

extern "C" {
#define FAKE_DECLARE(type, name, parameters) type name parameters;
FAKE_FUNCTIONS(FAKE_DECLARE)
#undef FAKE_DECLARE

// ---- for the emulation ----

// Queues a launch. run(arg) executes it, possibly more than once (graphs). drop(arg) frees it.
cudaError_t emu_enqueue(void (*run)(void *), void *arg, void (*drop)(void *), cudaStream_t);
// Sets and returns a kernel's limit of dynamic shared memory in bytes (48 KiB by default).
cudaError_t emu_allow_shared(const void *kernel, uint64_t bytes);
unsigned emu_allowed_shared(const void *kernel);
// Advances the clock of the emulated card by the given milliseconds. Called by code that runs on
// the card. Nothing else advances the clock, so times are reproducible.
void emu_tick(float ms);
// Describes an address from the device's point of view, as the end of a message.
void emu_describe_address(const void *p, char *text, size_t cap);

// ---- for tests ----

// Chooses the machine to simulate, and its failures. Returns false if the settings cannot be
// parsed. The settings are comma-separated key=value words. Properties that are not named keep the
// values of a healthy machine. The environment variable RLHF_FAKE_CUDA gives the initial settings
// of a process. A list with / has one value per device; further devices have the last value.
// Numbers of bytes may end with K, M or G.
//   driver=13000     version of the driver; 0: no driver
//   devices=1        number of devices
//   name=TEXT        sm=90[/75]    memory=8G[/1G]    pools=1 (0: no cudaMallocAsync)
//   fail=CALL:CODE@N[xK]
//                    the N-th call of CALL after this setting (1: the next) returns error CODE, as
//                    do the K - 1 calls after it. CALL is a function's name, "launch" or "any". If
//                    CODE makes CUDA lose its context, all later calls return it, too
bool rlhf__fake_cuda(const char *settings);
// The number of calls of any kind since then; memory allocated on the device; work not waited for.
uint64_t rlhf__fake_cuda_calls(void);
uint64_t rlhf__fake_cuda_bytes(void);
uint64_t rlhf__fake_cuda_pending(void);
}
#endif
