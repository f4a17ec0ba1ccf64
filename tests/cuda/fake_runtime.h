// fake_runtime.h: the part of CUDA's runtime that the backend uses, declared as NVIDIA's header
// does, for a machine without a GPU; and what the emulation and tests say to it.
//
// Work is queued and runs when something waits for it, so what forgets to wait sees old data.
// Device memory is out of reach of the host, every allocation ends at an unreadable page and is NaN
// until written; addresses are never used again.
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

// ---- to the emulation ----

// A launch: run(arg) makes it happen, maybe more than once (graphs), drop(arg) frees it.
cudaError_t emu_enqueue(void (*run)(void *), void *arg, void (*drop)(void *), cudaStream_t);
// Lets a kernel take `bytes` of dynamic shared memory; how much it may take (48 KiB unless said).
cudaError_t emu_allow_shared(const void *kernel, uint64_t bytes);
unsigned emu_allowed_shared(const void *kernel);
// Advances the emulated card's clock by so many milliseconds; for code that runs on it. Nothing
// else advances it, so times are reproducible.
void emu_tick(float ms);
// What an address is to the device, as the end of a sentence.
void emu_describe_address(const void *p, char *text, size_t cap);

// ---- to tests ----

// What the machine is and what fails on it: words key=value with commas between; what is not named
// is as on a machine where all is well. The environment variable RLHF_FAKE_CUDA says the same of a
// process's begin. A list with a / is one value a device, the last for all further ones. Bytes take
// K, M or G.
//   driver=13000     version of the driver; 0: there is none
//   devices=1        how many
//   name=TEXT        sm=90[/75]    memory=8G[/1G]    pools=1 (0: no cudaMallocAsync)
//   fail=CALL:CODE@N[xK]
//                    the N-th call from here on (1: the next) of CALL (a function's name, "launch",
//                    or "any") gives error CODE, as do the K - 1 after it; codes after which CUDA's
//                    context is lost stay for all later calls
// False for what it does not understand.
bool rlhf__fake_cuda(const char *settings);
// Calls of any kind since then; what is allocated on the device; work that nobody has waited for.
uint64_t rlhf__fake_cuda_calls(void);
uint64_t rlhf__fake_cuda_bytes(void);
uint64_t rlhf__fake_cuda_pending(void);
}
#endif
