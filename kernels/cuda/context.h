// context.h: the state of the CUDA backend: the card, its single stream, the memory account, the
// workspaces, the error text, and the faults that kernels found in device arrays.
//
// Operations are declared in table.h.
#ifndef RLHF_CUDA_CONTEXT_H
#define RLHF_CUDA_CONTEXT_H

#include "blocks.h"
#include "cuda.h"
#include "fault.h"
#include "product_spec.h"

#include <rlhf/compute.h>

// Workspaces that live in the context. Each grows and stays. Work of one stream runs in order, so
// the next op may use the same workspace.
enum rlhf__cuda_ws {
    RLHF__CUDA_WS_PARTIAL, // partial sums of reductions over rows
    RLHF__CUDA_WS_PRODUCT, // converted operands and biases of a GEMM
    RLHF__CUDA_WS_LIBRARY, // for cuBLASLt
    RLHF__CUDA_WS_COPIES,  // copies of misaligned operands, for cuBLASLt
    RLHF__CUDA_WS_ATTN,
    RLHF__CUDA_WS_LOGITS,
    RLHF__CUDA_WS_REF,
    RLHF__CUDA_WS_DLOGITS,
    RLHF__CUDA_WS_ROWS, // small per-row arrays of the head
    RLHF__CUDA_WS_LIST, // tensors of one optimizer call
    RLHF__CUDA_WS_MUON,
    RLHF__CUDA_WS_SUM, // f32 sums that are rounded or scattered at the end; expanded sources
    RLHF__CUDA_WS_COUNT
};

struct rlhf__cuda_buffer {
    void *ptr;
    uint64_t bytes;
};

// The bytes that a call needs of each workspace, at least. workspace_bytes of the table returns
// this. Each file whose ops take workspaces adds its own sizes in a function of table.h, with the
// size functions that its ops use. A workspace that grows may get more (memory.cu).
struct rlhf__cuda_needs {
    uint64_t bytes[RLHF__CUDA_WS_COUNT];
};
static_assert((int)RLHF__CUDA_WS_COUNT <= RLHF_WORKSPACES, "workspace_bytes reports all of them");

static inline void rlhf__cuda_need(struct rlhf__cuda_needs *n, enum rlhf__cuda_ws which,
                                   uint64_t bytes) {
    if (n->bytes[which] < bytes) n->bytes[which] = bytes;
}

// A range of device memory.
struct rlhf__cuda_range {
    const char *at;
    uint64_t bytes;
};

// The inputs of the logits that lm_head kept for lm_head_bwd. A write to any of them drops the
// logits.
struct rlhf__cuda_kept {
    int valid, with_ref;
    struct rlhf__cuda_range from[4]; // hidden, ref_hidden, support; bytes 0: none
    const rlhf_weight *weight, *ref_weight;
    uint64_t generation; // weight_generation at that time
    uint32_t rows;
    rlhf_dist dist;
};

enum {
    RLHF__CUDA_STAGE_BYTES = 1 << 20, // size of a piece of the upload ring
    RLHF__CUDA_STAGE_PIECES = 4,
    RLHF__CUDA_MARKS = 64,
    RLHF__CUDA_RECORDINGS = 64
};

// Pinned memory for staged copies (transfer.cu).
struct rlhf__cuda_stage {
    char *ring;                                // [pieces][bytes]
    char *landing;                             // [bytes], for downloads
    cudaEvent_t read[RLHF__CUDA_STAGE_PIECES]; // the piece has been read
    uint32_t at;                               // the current piece
    uint64_t used;                             // bytes used of it
};

// Ticket t uses slot t % RLHF__CUDA_MARKS.
struct rlhf__cuda_marks {
    cudaEvent_t reached[RLHF__CUDA_MARKS];
    struct rlhf__fault *fault; // pinned, one per slot
    uint64_t given, reported;  // tickets issued; tickets up to which faults have been reported
};

struct rlhf__cuda_recording {
    uint64_t key;     // 0: none
    uint64_t serial;  // of the newest allocation when it ran or was captured
    uint64_t weights; // weight_generation at that time
    uint64_t used;    // time of last use
    int ran;          // has run once without capture
    cudaGraphExec_t graph;
};
struct rlhf__cuda_recordings {
    struct rlhf__cuda_recording kept[RLHF__CUDA_RECORDINGS];
    struct rlhf__cuda_recording *now; // between record and record_end
    int32_t what;                     // the argument of record
    rlhf_status status;               // of the first call that failed since
    uint64_t clock;
};

struct rlhf__cuda {
    rlhf_compute table; // what open returns points here
    cudaStream_t stream;
    int gpu, sm;              // index; compute capability, 10 * major + minor
    int shared_most;          // bytes of shared memory that a block may use
    int guard;                // each call reports its own faults
    uint64_t workspace_bytes; // budget of the lm_head workspace
    cudaMemPool_t pool;       // the driver's; NULL: not supported
    uint64_t bytes;           // in use
    uint64_t serial;          // of the newest allocation
    struct rlhf__cuda_blocks device, host;
    struct rlhf__cuda_stage stage;
    struct rlhf__cuda_marks marks;
    struct rlhf__cuda_recordings recordings;
    struct rlhf__cuda_buffer ws[RLHF__CUDA_WS_COUNT];
    struct rlhf__fault *fault;      // device
    struct rlhf__fault *fault_host; // pinned: its copy
    void *lt;                       // cuBLASLt's state (lt.h), NULL only in open
    // The library GEMM: sets *taken when it runs the GEMM; NULL: own kernels only.
    rlhf_status (*library)(struct rlhf__cuda *, const struct rlhf__cuda_product_spec *, int *taken);
    struct rlhf__cuda_kept kept;
    struct rlhf__cuda_buffer staging; // pinned: lm_sample's results in transit
    uint64_t weight_generation;       // incremented by weight_pack and weight_destroy
    int bf16_weights;                 // a weight of bf16 was made: the dtype of the run, for Muon
    const rlhf_host *messages;        // gets them; NULL: only `error` keeps them (describe)
    char error[512];
    char detail[256];
};

// Convert between a device address and memory (NULL for NULL). Only these two functions of this
// backend know what an rlhf_dev is. Host code never dereferences it.
template <class T = void> static inline T *rlhf__cuda_mem(rlhf_dev p) { return (T *)(void *)p; }
static inline float *rlhf__cuda_f32(rlhf_dev p) { return rlhf__cuda_mem<float>(p); }
static inline const int32_t *rlhf__cuda_i32(rlhf_dev p) { return rlhf__cuda_mem<const int32_t>(p); }
static inline rlhf_dev rlhf__cuda_dev(const void *p) { return (rlhf_dev)(uintptr_t)p; }

// Passes the text to the host and returns code. [step]
__attribute__((format(printf, 3, 4))) rlhf_status
rlhf__cuda_fail(struct rlhf__cuda *cu, rlhf_status code, const char *fmt, ...);

// RLHF_OK for cudaSuccess, otherwise RLHF_E_DEVICE (RLHF_E_NOMEM when out of memory). The error
// text names the operation and CUDA's error. [step]
rlhf_status rlhf__cuda_check(struct rlhf__cuda *cu, const char *what, cudaError_t e);

// rlhf_copy_in with an error text. [step]
rlhf_status rlhf__cuda_copy_in(struct rlhf__cuda *cu, const char *op, void *dst, uint32_t own,
                               const void *src, uint32_t first);

// RLHF_E_UNSUPPORTED unless dtype is f32 or bf16; RLHF_E_INVALID unless d is at least 1. [step]
rlhf_status rlhf__cuda_check_dtype(struct rlhf__cuda *cu, const char *op, int32_t dtype);
rlhf_status rlhf__cuda_check_d(struct rlhf__cuda *cu, const char *op, int32_t d);

// Launches on the stream; returns from the calling function on failure.
#define RUN(cu, kernel, grid, block, smem, ...)                                                    \
    RLHF_TRY(rlhf__cuda_check((cu), #kernel,                                                       \
                              LAUNCH(kernel, (grid), (block), (smem), (cu)->stream, __VA_ARGS__)))

// Ends every op that may have raised a fault. In guard mode it waits and reports. [step]
rlhf_status rlhf__cuda_done(struct rlhf__cuda *cu);

// Wait for the stream and report the first fault since the last wait. RLHF_E_INVALID between record
// and record_end. [step]
rlhf_status rlhf__cuda_wait(struct rlhf__cuda *cu);

// Set the error text of a fault that was copied to the host, and clear the device's fault word.
// Returns RLHF_OK if there was no fault. [step]
rlhf_status rlhf__cuda_fault_report(struct rlhf__cuda *cu, const struct rlhf__fault *f);

// Between record and record_end, the first function returns RLHF_E_INVALID; its error text contains
// `what`. The second function does so only during a capture. [step]
rlhf_status rlhf__cuda_not_recording(struct rlhf__cuda *cu, const char *what);
rlhf_status rlhf__cuda_not_capturing(struct rlhf__cuda *cu, const char *what);

// Drop the recordings that ran, or were captured, while the allocation `serial` existed; with
// serial 0, drop all recordings. [step]
void rlhf__cuda_recordings_drop(struct rlhf__cuda *cu, uint64_t serial);

// Announce that [p, p + bytes) was or will be written. If lm_head kept logits that were computed
// from this range, they are dropped. Every op calls this for its outputs. [step]
void rlhf__cuda_wrote(struct rlhf__cuda *cu, const void *p, uint64_t bytes);

// Device memory that counts in bytes_in_use, 256-byte aligned; contents undefined. [step]
rlhf_status rlhf__cuda_mem_alloc(struct rlhf__cuda *cu, uint64_t bytes, void **out);
void rlhf__cuda_mem_free(struct rlhf__cuda *cu, void *ptr); // NULL allowed
void rlhf__cuda_mem_free_all(struct rlhf__cuda *cu);        // for destroy

// Return memory to the driver: freed memory whose release is still pending, and unused blocks of
// the pool. Used before a call that ran out of memory is retried. [step]
cudaError_t rlhf__cuda_memory_spare(struct rlhf__cuda *cu);

// Bytes from p to the end of its allocation; 0 if p is not in an allocation. [step]
uint64_t rlhf__cuda_extent(const struct rlhf__cuda *cu, const void *p);

// Workspace `which` with at least `bytes` bytes, 256-byte aligned, contents undefined. [step]
rlhf_status rlhf__cuda_workspace(struct rlhf__cuda *cu, enum rlhf__cuda_ws which, uint64_t bytes,
                                 void **out);

// Releases a workspace's memory, for a call that continues with less. [step]
void rlhf__cuda_workspace_drop(struct rlhf__cuda *cu, enum rlhf__cuda_ws which);

// Copy `bytes` from host memory to the device in stream order, for lists that an op passes to its
// kernel. The caller may reuse `from` at once. [step]
rlhf_status rlhf__cuda_send(struct rlhf__cuda *cu, void *to, const void *from, uint64_t bytes);

// For create and destroy: set up and release what allocations and transfers need. [main]
rlhf_status rlhf__cuda_memory_open(struct rlhf__cuda *cu);
rlhf_status rlhf__cuda_transfer_open(struct rlhf__cuda *cu);
void rlhf__cuda_transfer_close(struct rlhf__cuda *cu);

#endif
