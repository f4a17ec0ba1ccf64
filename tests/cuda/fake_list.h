// fake_list.h: lists of the functions, values and members of CUDA's runtime that the backend uses.
// fake_runtime.h declares them, and test_prototypes.cpp compares them with NVIDIA's header.
#ifndef RLHF_TESTS_CUDA_FAKE_LIST_H
#define RLHF_TESTS_CUDA_FAKE_LIST_H

// X(name, value) for each value of enum cudaError
#define FAKE_ERRORS(X)                                                                             \
    X(cudaSuccess, 0)                                                                              \
    X(cudaErrorInvalidValue, 1)                                                                    \
    X(cudaErrorMemoryAllocation, 2)                                                                \
    X(cudaErrorInvalidConfiguration, 9)                                                            \
    X(cudaErrorInsufficientDriver, 35)                                                             \
    X(cudaErrorDevicesUnavailable, 46)                                                             \
    X(cudaErrorNoDevice, 100)                                                                      \
    X(cudaErrorInvalidDevice, 101)                                                                 \
    X(cudaErrorNoKernelImageForDevice, 209)                                                        \
    X(cudaErrorECCUncorrectable, 214)                                                              \
    X(cudaErrorNvlinkUncorrectable, 220)                                                           \
    X(cudaErrorContained, 226)                                                                     \
    X(cudaErrorInvalidResourceHandle, 400)                                                         \
    X(cudaErrorNotReady, 600)                                                                      \
    X(cudaErrorIllegalAddress, 700)                                                                \
    X(cudaErrorLaunchOutOfResources, 701)                                                          \
    X(cudaErrorLaunchTimeout, 702)                                                                 \
    X(cudaErrorAssert, 710)                                                                        \
    X(cudaErrorHardwareStackError, 714)                                                            \
    X(cudaErrorIllegalInstruction, 715)                                                            \
    X(cudaErrorMisalignedAddress, 716)                                                             \
    X(cudaErrorInvalidAddressSpace, 717)                                                           \
    X(cudaErrorInvalidPc, 718)                                                                     \
    X(cudaErrorLaunchFailure, 719)                                                                 \
    X(cudaErrorSystemDriverMismatch, 803)                                                          \
    X(cudaErrorMpsClientTerminated, 810)                                                           \
    X(cudaErrorStreamCaptureUnsupported, 900)                                                      \
    X(cudaErrorStreamCaptureInvalidated, 901)                                                      \
    X(cudaErrorStreamCaptureUnmatched, 903)                                                        \
    X(cudaErrorUnknown, 999)

// X(name, value) for each value of the other enums, one list per enum
#define FAKE_MEMCPY_KINDS(X)                                                                       \
    X(cudaMemcpyHostToHost, 0)                                                                     \
    X(cudaMemcpyHostToDevice, 1)                                                                   \
    X(cudaMemcpyDeviceToHost, 2)                                                                   \
    X(cudaMemcpyDeviceToDevice, 3)
#define FAKE_CAPTURE_MODES(X)                                                                      \
    X(cudaStreamCaptureModeGlobal, 0)                                                              \
    X(cudaStreamCaptureModeThreadLocal, 1)                                                         \
    X(cudaStreamCaptureModeRelaxed, 2)
#define FAKE_CAPTURE_STATES(X)                                                                     \
    X(cudaStreamCaptureStatusNone, 0)                                                              \
    X(cudaStreamCaptureStatusActive, 1)                                                            \
    X(cudaStreamCaptureStatusInvalidated, 2)
#define FAKE_ATTRIBUTES(X)                                                                         \
    X(cudaDevAttrMultiProcessorCount, 16)                                                          \
    X(cudaDevAttrComputeCapabilityMajor, 75)                                                       \
    X(cudaDevAttrComputeCapabilityMinor, 76)                                                       \
    X(cudaDevAttrMaxSharedMemoryPerBlockOptin, 97)                                                 \
    X(cudaDevAttrMemoryPoolsSupported, 115)
#define FAKE_POOL_ATTRIBUTES(X)                                                                    \
    X(cudaMemPoolAttrReleaseThreshold, 4)                                                          \
    X(cudaMemPoolAttrReservedMemCurrent, 5)                                                        \
    X(cudaMemPoolAttrUsedMemCurrent, 7)

// X(name, value) for each macro
#define FAKE_FLAGS(X)                                                                              \
    X(cudaStreamNonBlocking, 1)                                                                    \
    X(cudaEventDisableTiming, 2)

// X(type, name) for each member of struct cudaDeviceProp
#define FAKE_PROPERTIES(X)                                                                         \
    X(size_t, totalGlobalMem)                                                                      \
    X(int, major)                                                                                  \
    X(int, minor)                                                                                  \
    X(int, multiProcessorCount)

// X(type, name, (parameters)) for each function
#define FAKE_FUNCTIONS(X)                                                                          \
    X(cudaError_t, cudaDriverGetVersion, (int *))                                                  \
    X(cudaError_t, cudaRuntimeGetVersion, (int *))                                                 \
    X(cudaError_t, cudaGetDeviceCount, (int *))                                                    \
    X(cudaError_t, cudaGetDeviceProperties, (struct cudaDeviceProp *, int))                        \
    X(cudaError_t, cudaDeviceGetAttribute, (int *, enum cudaDeviceAttr, int))                      \
    X(cudaError_t, cudaSetDevice, (int))                                                           \
    X(cudaError_t, cudaGetDevice, (int *))                                                         \
    X(cudaError_t, cudaDeviceSynchronize, (void))                                                  \
    X(cudaError_t, cudaGetLastError, (void))                                                       \
    X(cudaError_t, cudaPeekAtLastError, (void))                                                    \
    X(const char *, cudaGetErrorString, (cudaError_t))                                             \
    X(const char *, cudaGetErrorName, (cudaError_t))                                               \
    X(cudaError_t, cudaMemGetInfo, (size_t *, size_t *))                                           \
    X(cudaError_t, cudaMalloc, (void **, size_t))                                                  \
    X(cudaError_t, cudaFree, (void *))                                                             \
    X(cudaError_t, cudaMallocAsync, (void **, size_t, cudaStream_t))                               \
    X(cudaError_t, cudaFreeAsync, (void *, cudaStream_t))                                          \
    X(cudaError_t, cudaDeviceGetDefaultMemPool, (cudaMemPool_t *, int))                            \
    X(cudaError_t, cudaMemPoolSetAttribute, (cudaMemPool_t, enum cudaMemPoolAttr, void *))         \
    X(cudaError_t, cudaMemPoolGetAttribute, (cudaMemPool_t, enum cudaMemPoolAttr, void *))         \
    X(cudaError_t, cudaMemPoolTrimTo, (cudaMemPool_t, size_t))                                     \
    X(cudaError_t, cudaMallocHost, (void **, size_t))                                              \
    X(cudaError_t, cudaFreeHost, (void *))                                                         \
    X(cudaError_t, cudaMemcpyAsync,                                                                \
      (void *, const void *, size_t, enum cudaMemcpyKind, cudaStream_t))                           \
    X(cudaError_t, cudaMemsetAsync, (void *, int, size_t, cudaStream_t))                           \
    X(cudaError_t, cudaStreamCreateWithFlags, (cudaStream_t *, unsigned))                          \
    X(cudaError_t, cudaStreamDestroy, (cudaStream_t))                                              \
    X(cudaError_t, cudaStreamSynchronize, (cudaStream_t))                                          \
    X(cudaError_t, cudaStreamWaitEvent, (cudaStream_t, cudaEvent_t, unsigned))                     \
    X(cudaError_t, cudaEventCreateWithFlags, (cudaEvent_t *, unsigned))                            \
    X(cudaError_t, cudaEventDestroy, (cudaEvent_t))                                                \
    X(cudaError_t, cudaEventRecord, (cudaEvent_t, cudaStream_t))                                   \
    X(cudaError_t, cudaEventElapsedTime, (float *, cudaEvent_t, cudaEvent_t))                      \
    X(cudaError_t, cudaEventQuery, (cudaEvent_t))                                                  \
    X(cudaError_t, cudaEventSynchronize, (cudaEvent_t))                                            \
    X(cudaError_t, cudaStreamBeginCapture, (cudaStream_t, enum cudaStreamCaptureMode))             \
    X(cudaError_t, cudaStreamEndCapture, (cudaStream_t, cudaGraph_t *))                            \
    X(cudaError_t, cudaStreamIsCapturing, (cudaStream_t, enum cudaStreamCaptureStatus *))          \
    X(cudaError_t, cudaGraphInstantiate, (cudaGraphExec_t *, cudaGraph_t, unsigned long long))     \
    X(cudaError_t, cudaGraphDestroy, (cudaGraph_t))                                                \
    X(cudaError_t, cudaGraphExecDestroy, (cudaGraphExec_t))                                        \
    X(cudaError_t, cudaGraphLaunch, (cudaGraphExec_t, cudaStream_t))

#endif
