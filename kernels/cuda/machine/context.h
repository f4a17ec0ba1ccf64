// context.h: the state of the CUDA backend: the card, its single stream, the number of bytes in
// use, the workspaces, the error text, and the faults that kernels found in device arrays.
//
// Operations are declared in table.h.
#ifndef RLHF_CUDA_MACHINE_CONTEXT_H
#define RLHF_CUDA_MACHINE_CONTEXT_H

#include "blocks.h"
#include "cuda.h"
#include "fault.h"
#include "product_spec.h"

#include <rlhf/compute.h>

// Workspaces of the context. Each grows to the largest size requested and is kept. The stream runs
// its work in order, so the next op may use the same workspace.
enum rlhf__cuda_ws {
    RLHF__CUDA_WS_PARTIAL, // partial sums of reductions over rows
    RLHF__CUDA_WS_PRODUCT, // converted operands and biases of a GEMM
    RLHF__CUDA_WS_LIBRARY, // workspace of cuBLASLt
    RLHF__CUDA_WS_COPIES,  // copies of misaligned operands, for cuBLASLt
    RLHF__CUDA_WS_ATTN,    // attention, and layers with a state
    RLHF__CUDA_WS_LOGITS,
    RLHF__CUDA_WS_REF,
    RLHF__CUDA_WS_DLOGITS,
    RLHF__CUDA_WS_ROWS, // small per-row arrays of the head
    RLHF__CUDA_WS_LIST, // list of the tensors of one optimizer call
    RLHF__CUDA_WS_MUON,
    RLHF__CUDA_WS_WEIGHT, // values of a quantised weight
    RLHF__CUDA_WS_SUM,    // f32 sums that are finally rounded or scattered; expanded sources
    RLHF__CUDA_WS_COUNT
};

struct rlhf__cuda_buffer {
    void *ptr;
    uint64_t bytes;
};

// For each workspace, the smallest size with which a call can run. The function workspace_bytes of
// the table returns these sizes. For every file whose ops use workspaces, table.h declares a
// function that adds the sizes for these ops. It computes them with the same helpers as the ops.
// When a workspace grows, memory.cu may make it larger than its size here.
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

// The inputs from which lm_head computed the logits that it kept for lm_head_bwd. If an op writes
// to one of these inputs, the logits are dropped.
struct rlhf__cuda_kept {
    int valid, with_ref;
    struct rlhf__cuda_range from[4]; // hidden, ref_hidden, support; bytes 0: unused
    const rlhf_weight *weight, *ref_weight;
    uint64_t generation; // weight_generation when the logits were kept
    uint32_t rows;
    rlhf_dist dist;
    double map[4]; // logit_scale, softcap, and those of the reference
};

enum {
    RLHF__CUDA_STAGE_BYTES = 1 << 20, // size of a piece of the upload ring
    RLHF__CUDA_STAGE_PIECES = 4,
    RLHF__CUDA_MARKS = 64,
    RLHF__CUDA_RECORDINGS = 64
};

// Pinned memory for copies in pieces (transfer.cu).
struct rlhf__cuda_stage {
    char *ring;                                // [pieces][bytes] for uploads
    char *landing;                             // [bytes], for downloads
    cudaEvent_t read[RLHF__CUDA_STAGE_PIECES]; // the piece has been read
    uint32_t at;                               // the current piece
    uint64_t used;                             // bytes of this piece already used
};

// Ticket t is in slot t % RLHF__CUDA_MARKS.
struct rlhf__cuda_marks {
    cudaEvent_t reached[RLHF__CUDA_MARKS];
    struct rlhf__fault *fault; // pinned, one per slot
    uint64_t given, reported;  // tickets issued; tickets whose faults were reported
};

struct rlhf__cuda_recording {
    uint64_t key;     // 0: none
    uint64_t serial;  // serial of the newest allocation when it ran or was captured
    uint64_t weights; // weight_generation at that time
    uint64_t used;    // time of last use
    int ran;          // 1: it has run once without capture
    cudaGraphExec_t graph;
};
struct rlhf__cuda_recordings {
    struct rlhf__cuda_recording kept[RLHF__CUDA_RECORDINGS];
    struct rlhf__cuda_recording *now; // between record and record_end
    int32_t what;                     // the argument of record
    rlhf_status status;               // status of the first call that failed since then
    uint64_t clock;
};

struct rlhf__cuda {
    rlhf_compute table; // open() returns a pointer to this
    cudaStream_t stream;
    int gpu, sm;              // index; compute capability, 10 * major + minor
    int shared_most;          // bytes of shared memory that a block may use
    int guard;                // 1: each call reports its own faults
    uint64_t workspace_bytes; // budget of the lm_head workspace
    cudaMemPool_t pool;       // the pool of the driver; NULL: not supported
    uint64_t bytes;           // bytes of memory in use
    uint64_t serial;          // serial of the newest allocation
    struct rlhf__cuda_blocks device, host;
    struct rlhf__cuda_stage stage;
    struct rlhf__cuda_marks marks;
    struct rlhf__cuda_recordings recordings;
    struct rlhf__cuda_buffer ws[RLHF__CUDA_WS_COUNT];
    struct rlhf__fault *fault;      // device
    struct rlhf__fault *fault_host; // pinned memory: a copy of it
    void *lt;                       // state of cuBLASLt (lt.h); NULL only during open
    // Offers a GEMM to the library. Sets *taken to 1 if the library has run the GEMM. Otherwise
    // sets *taken to 0, and the caller runs the GEMM with this backend's own kernels. If `library`
    // is NULL, only this backend's kernels are used.
    rlhf_status (*library)(struct rlhf__cuda *, const struct rlhf__cuda_product_spec *, int *taken);
    struct rlhf__cuda_kept kept;
    struct rlhf__cuda_buffer staging; // pinned memory: results of lm_sample during their transfer
    uint64_t weight_generation;       // incremented by weight_pack and weight_destroy
    int bf16_weights;                 // 1: a bf16 weight exists, so the run is in bf16 (for Muon)
    const rlhf_host *messages;        // gets the messages; NULL (describe): only `error` has them
    char error[512];
    char detail[256];
};

// Convert between a device address and a pointer (NULL becomes NULL). Only these functions of this
// backend know what an rlhf_dev is. Host code never dereferences the pointer.
template <class T = void> static inline T *rlhf__cuda_mem(rlhf_dev p) { return (T *)(void *)p; }
static inline float *rlhf__cuda_f32(rlhf_dev p) { return rlhf__cuda_mem<float>(p); }
static inline const int32_t *rlhf__cuda_i32(rlhf_dev p) { return rlhf__cuda_mem<const int32_t>(p); }
static inline rlhf_dev rlhf__cuda_dev(const void *p) { return (rlhf_dev)(uintptr_t)p; }

// Passes the text to the host and returns `code`. [step]
__attribute__((format(printf, 3, 4))) rlhf_status
rlhf__cuda_fail(struct rlhf__cuda *cu, rlhf_status code, const char *fmt, ...);

// Returns RLHF_OK for cudaSuccess, RLHF_E_NOMEM if memory ran out, otherwise RLHF_E_DEVICE. The
// error text has the operation and CUDA's error. [step]
rlhf_status rlhf__cuda_check(struct rlhf__cuda *cu, const char *what, cudaError_t e);

// Like rlhf_copy_in, but sets an error text. [step]
rlhf_status rlhf__cuda_copy_in(struct rlhf__cuda *cu, const char *op, void *dst, uint32_t own,
                               const void *src, uint32_t first);

// rlhf__cuda_check_dtype returns RLHF_E_UNSUPPORTED unless dtype is f32 or bf16. rlhf__cuda_check_d
// returns RLHF_E_INVALID unless d is at least 1. [step]
rlhf_status rlhf__cuda_check_dtype(struct rlhf__cuda *cu, const char *op, int32_t dtype);
rlhf_status rlhf__cuda_check_d(struct rlhf__cuda *cu, const char *op, int32_t d);

// Launches a kernel on the stream. If that fails, returns from the calling function.
#define RUN(cu, kernel, grid, block, smem, ...)                                                    \
    RLHF_TRY(rlhf__cuda_check((cu), #kernel,                                                       \
                              LAUNCH(kernel, (grid), (block), (smem), (cu)->stream, __VA_ARGS__)))

// Call this function at the end of every op that may have raised a fault. In guard mode, it waits
// for the stream and reports the fault. [step]
rlhf_status rlhf__cuda_done(struct rlhf__cuda *cu);

// Waits for the stream. If kernels have raised a fault since the last wait, sets the error text for
// the first fault and returns its status. Returns RLHF_E_INVALID if called between record and
// record_end. [step]
rlhf_status rlhf__cuda_wait(struct rlhf__cuda *cu);

// f is a host copy of the device's fault word. If f contains no fault, returns RLHF_OK. Otherwise
// clears the device's fault word, sets the error text for the fault, and returns the fault's
// status. [step]
rlhf_status rlhf__cuda_fault_report(struct rlhf__cuda *cu, const struct rlhf__fault *f);

// rlhf__cuda_not_recording returns RLHF_E_INVALID if called between record and record_end.
// rlhf__cuda_not_capturing returns RLHF_E_INVALID only if the calls since record are being
// captured. The error text contains `what`. [step]
rlhf_status rlhf__cuda_not_recording(struct rlhf__cuda *cu, const char *what);
rlhf_status rlhf__cuda_not_capturing(struct rlhf__cuda *cu, const char *what);

// Drop the recordings that were made after the allocation with number `serial`, because they may
// use its memory. With serial 0, drop all recordings. [step]
void rlhf__cuda_recordings_drop(struct rlhf__cuda *cu, uint64_t serial);

// Announce that [p, p + bytes) was or will be written. Every op calls this for its outputs. If
// lm_head kept logits that it computed from data in this range, the logits are dropped. [step]
void rlhf__cuda_wrote(struct rlhf__cuda *cu, const void *p, uint64_t bytes);

// Allocate device memory, aligned to 256 bytes, and add its size to bytes_in_use. The contents are
// undefined. [step]
rlhf_status rlhf__cuda_mem_alloc(struct rlhf__cuda *cu, uint64_t bytes, void **out);
void rlhf__cuda_mem_free(struct rlhf__cuda *cu, void *ptr); // NULL allowed
void rlhf__cuda_mem_free_all(struct rlhf__cuda *cu);        // for destroy

// Return memory to the driver: freed memory whose release is still pending, and unused blocks of
// the pool. Called when an allocation has failed, before the allocation is tried again. [step]
cudaError_t rlhf__cuda_memory_spare(struct rlhf__cuda *cu);

// The number of bytes from p to the end of its allocation; 0 if p is not in an allocation. [step]
uint64_t rlhf__cuda_extent(const struct rlhf__cuda *cu, const void *p);

// Get workspace `which`, of at least this size. It is aligned to 256 bytes, and its contents are
// undefined. [step]
rlhf_status rlhf__cuda_workspace(struct rlhf__cuda *cu, enum rlhf__cuda_ws which, uint64_t bytes,
                                 void **out);

// Releases the memory of a workspace, for a call that continues with less memory. [step]
void rlhf__cuda_workspace_drop(struct rlhf__cuda *cu, enum rlhf__cuda_ws which);

// Copy `bytes` bytes from host memory to the device, in the order of the stream. Ops use this for
// the lists that they pass to a kernel. The caller may reuse `from` as soon as the function has
// returned. [step]
rlhf_status rlhf__cuda_send(struct rlhf__cuda *cu, void *to, const void *from, uint64_t bytes);

// For create and destroy: set up and release the resources of allocations and transfers. [main]
rlhf_status rlhf__cuda_memory_open(struct rlhf__cuda *cu);
rlhf_status rlhf__cuda_transfer_open(struct rlhf__cuda *cu);
void rlhf__cuda_transfer_close(struct rlhf__cuda *cu);

#endif
