// fake_runtime.h: the part of CUDA's runtime that the backend uses, declared as NVIDIA's header
// does.
#ifndef RLHF_TESTS_CUDA_FAKE_RUNTIME_H
#define RLHF_TESTS_CUDA_FAKE_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

enum cudaError {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInvalidDevice = 101
};
typedef enum cudaError cudaError_t;
enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3
};
typedef struct CUstream_st *cudaStream_t;
#define cudaStreamNonBlocking 1u

extern "C" {
cudaError_t cudaSetDevice(int);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *, unsigned);
cudaError_t cudaStreamDestroy(cudaStream_t);
cudaError_t cudaStreamSynchronize(cudaStream_t);
cudaError_t cudaMalloc(void **, size_t);
cudaError_t cudaFree(void *);
cudaError_t cudaMallocHost(void **, size_t);
cudaError_t cudaFreeHost(void *);
cudaError_t cudaMemcpyAsync(void *, const void *, size_t, cudaMemcpyKind, cudaStream_t);
cudaError_t cudaMemsetAsync(void *, int, size_t, cudaStream_t);
cudaError_t cudaGetLastError(void);
cudaError_t cudaMemGetInfo(size_t *, size_t *);
const char *cudaGetErrorString(cudaError_t);

// Of the emulation. A launch is queued: run(arg) makes it happen, drop(arg) frees it.
cudaError_t emu_enqueue(void (*run)(void *), void *arg, void (*drop)(void *), cudaStream_t);
// Lets a kernel take `bytes` of dynamic shared memory; how much it may take (48 KiB unless said).
cudaError_t emu_allow_shared(const void *kernel, uint64_t bytes);
unsigned emu_allowed_shared(const void *kernel);
// What an address is to the device, as the end of a sentence.
void emu_describe_address(const void *p, char *text, size_t cap);
}
#endif
