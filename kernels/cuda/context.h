// context.h: the state of the CUDA backend: the card, its one stream, the memory account,
// workspaces, the error text, and what kernels found wrong in device arrays.
//
// What it is not: it declares no operation; those are in table.h.
#ifndef RLHF_CUDA_CONTEXT_H
#define RLHF_CUDA_CONTEXT_H

#include "blocks.h"
#include "cuda.h"
#include "fault.h"
#include "product_spec.h"

#include <rlhf/compute.h>

// Workspaces that live in the context; each grows and stays. Work of one stream runs in order, so
// the next op may take the same one.
enum rlhf__cuda_ws {
    RLHF__CUDA_WS_PARTIAL, // partial sums of reductions over rows
    RLHF__CUDA_WS_PRODUCT, // converted operands and biases of a product
    RLHF__CUDA_WS_LIBRARY, // cuBLASLt's own
    RLHF__CUDA_WS_COPIES,  // operands at odd addresses, for cuBLASLt
    RLHF__CUDA_WS_ATTN,
    RLHF__CUDA_WS_LOGITS,
    RLHF__CUDA_WS_REF,
    RLHF__CUDA_WS_DLOGITS,
    RLHF__CUDA_WS_ROWS, // small per-row arrays of the head
    RLHF__CUDA_WS_LIST, // tensors of one optimiser call
    RLHF__CUDA_WS_MUON,
    RLHF__CUDA_WS_SUM, // f32 sums that are rounded, or scattered, at the end; expanded sources
    RLHF__CUDA_WS_COUNT
};

struct rlhf__cuda_buffer {
    void *ptr;
    uint64_t bytes;
};

// A range of device memory.
struct rlhf__cuda_range {
    const char *at;
    uint64_t bytes;
};

// What the logits that lm_head left for lm_head_bwd were made from; a write to any drops them.
struct rlhf__cuda_kept {
    int valid, with_ref;
    struct rlhf__cuda_range from[4]; // hidden, ref_hidden, support; bytes 0: none
    const rlhf_weight *weight, *ref_weight;
    uint64_t generation; // weight_generation of then
    uint32_t rows;
    rlhf_dist dist;
};

enum {
    RLHF__CUDA_STAGE_BYTES = 1 << 20, // of a piece of the ring that uploads go through
    RLHF__CUDA_STAGE_PIECES = 4,
    RLHF__CUDA_MARKS = 64,
    RLHF__CUDA_RECORDINGS = 64
};

// Pinned memory that copies go through; transfer.cu's.
struct rlhf__cuda_stage {
    char *ring;                                // [pieces][bytes]
    char *landing;                             // [bytes], of downloads
    cudaEvent_t read[RLHF__CUDA_STAGE_PIECES]; // the piece has been read
    uint32_t at;                               // the piece in use
    uint64_t used;                             // bytes of it
};

// Ticket t has place t % RLHF__CUDA_MARKS.
struct rlhf__cuda_marks {
    cudaEvent_t reached[RLHF__CUDA_MARKS];
    struct rlhf__fault *fault; // pinned, a place each
    uint64_t given, reported;  // tickets; up to which faults have been reported
};

struct rlhf__cuda_recording {
    uint64_t key;     // 0: none
    uint64_t serial;  // of the newest memory when it ran or was captured
    uint64_t weights; // weight_generation of then
    uint64_t used;    // when
    int ran;          // once as ever
    cudaGraphExec_t graph;
};
struct rlhf__cuda_recordings {
    struct rlhf__cuda_recording kept[RLHF__CUDA_RECORDINGS];
    struct rlhf__cuda_recording *now; // between record and record_end
    int32_t what;                     // and what record said
    rlhf_status status;               // of the first call since that failed
    uint64_t clock;
};

struct rlhf__cuda {
    rlhf_compute table; // what create returns points here
    cudaStream_t stream;
    int gpu, sm;              // index; compute capability, 10 * major + minor
    int shared_most;          // bytes of shared memory that a block may ask for
    int guard;                // faults are reported by the call itself
    uint64_t workspace_bytes; // budget of the lm_head workspace
    cudaMemPool_t pool;       // the driver's; NULL: it has none
    uint64_t bytes;           // in use
    uint64_t serial;          // of the newest allocation
    struct rlhf__cuda_blocks device, host;
    struct rlhf__cuda_stage stage;
    struct rlhf__cuda_marks marks;
    struct rlhf__cuda_recordings recordings;
    struct rlhf__cuda_buffer ws[RLHF__CUDA_WS_COUNT];
    struct rlhf__fault *fault;      // device
    struct rlhf__fault *fault_host; // pinned: its copy
    void *lt;                       // cuBLASLt's state; lt.h's, NULL only in create
    // The library product: sets *taken when it runs the product; NULL: own products only.
    rlhf_status (*library)(struct rlhf__cuda *, const struct rlhf__cuda_product_spec *, int *taken);
    struct rlhf__cuda_kept kept;
    struct rlhf__cuda_buffer staging; // pinned: lm_sample's results on their way
    uint64_t weight_generation;       // counts weight_pack and weight_destroy
    int bf16_weights;                 // a weight of bf16 was made: the dtype of the run, for Muon
    char error[512];
    char detail[256];
};

// The memory behind a device address (NULL for NULL), and back: the one place of this backend that
// knows what an rlhf_dev is. Host code never reads through it.
template <class T = void> static inline T *rlhf__cuda_mem(rlhf_dev p) { return (T *)(void *)p; }
static inline float *rlhf__cuda_f32(rlhf_dev p) { return rlhf__cuda_mem<float>(p); }
static inline const int32_t *rlhf__cuda_i32(rlhf_dev p) { return rlhf__cuda_mem<const int32_t>(p); }
static inline rlhf_dev rlhf__cuda_dev(const void *p) { return (rlhf_dev)(uintptr_t)p; }

// Set the error text and return code. [step]
__attribute__((format(printf, 3, 4))) rlhf_status
rlhf__cuda_fail(struct rlhf__cuda *cu, rlhf_status code, const char *fmt, ...);

// RLHF_OK for cudaSuccess, else RLHF_E_DEVICE (RLHF_E_NOMEM for want of memory) with a sentence
// that says what was being done and what CUDA said. [step]
rlhf_status rlhf__cuda_check(struct rlhf__cuda *cu, const char *what, cudaError_t e);

// rlhf_copy_in with a sentence. [step]
rlhf_status rlhf__cuda_copy_in(struct rlhf__cuda *cu, const char *op, void *dst, uint32_t own,
                               const void *src, uint32_t first);

// f32 or bf16, else RLHF_E_UNSUPPORTED; d at least 1, else RLHF_E_INVALID. [step]
rlhf_status rlhf__cuda_check_dtype(struct rlhf__cuda *cu, const char *op, int32_t dtype);
rlhf_status rlhf__cuda_check_d(struct rlhf__cuda *cu, const char *op, int32_t d);

// Launches on the stream; returns from the calling function when that fails.
#define RUN(cu, kernel, grid, block, smem, ...)                                                    \
    RLHF_TRY(rlhf__cuda_check((cu), #kernel,                                                       \
                              LAUNCH(kernel, (grid), (block), (smem), (cu)->stream, __VA_ARGS__)))

// The end of every op that may have raised a fault: with guard it waits and reports. [step]
rlhf_status rlhf__cuda_done(struct rlhf__cuda *cu);

// Waits for the stream and reports the first fault since the last wait; RLHF_E_INVALID between
// record and record_end. [step]
rlhf_status rlhf__cuda_wait(struct rlhf__cuda *cu);

// The sentence of a fault that was copied to the host, and the device's word cleared; RLHF_OK when
// there is none. [step]
rlhf_status rlhf__cuda_fault_report(struct rlhf__cuda *cu, const struct rlhf__fault *f);

// RLHF_E_INVALID with `what` between record and record_end; the second in a capture only. [step]
rlhf_status rlhf__cuda_not_recording(struct rlhf__cuda *cu, const char *what);
rlhf_status rlhf__cuda_not_capturing(struct rlhf__cuda *cu, const char *what);

// Drops recordings that ran or were captured when the allocation `serial` was there already; 0:
// all. [step]
void rlhf__cuda_recordings_drop(struct rlhf__cuda *cu, uint64_t serial);

// Says that [p, p + bytes) was or will be written: logits kept from it are dropped. Every op calls
// it for its outputs. [step]
void rlhf__cuda_wrote(struct rlhf__cuda *cu, const void *p, uint64_t bytes);

// Device memory that counts in bytes_in_use, 256-byte aligned; contents undefined. [step]
rlhf_status rlhf__cuda_mem_alloc(struct rlhf__cuda *cu, uint64_t bytes, void **out);
void rlhf__cuda_mem_free(struct rlhf__cuda *cu, void *ptr); // NULL allowed
void rlhf__cuda_mem_free_all(struct rlhf__cuda *cu);        // for destroy

// Gives the driver back what was freed but is still under way, and what lies in the pool in pieces
// of another size; for a call that had no memory and is tried again. [step]
cudaError_t rlhf__cuda_memory_spare(struct rlhf__cuda *cu);

// Bytes from p to the end of its allocation; 0 when p is in none. [step]
uint64_t rlhf__cuda_extent(const struct rlhf__cuda *cu, const void *p);

// Workspace `which` with at least `bytes` bytes, 256-byte aligned, contents undefined. [step]
rlhf_status rlhf__cuda_workspace(struct rlhf__cuda *cu, enum rlhf__cuda_ws which, uint64_t bytes,
                                 void **out);

// Its memory released; for a call that goes on with less. [step]
void rlhf__cuda_workspace_drop(struct rlhf__cuda *cu, enum rlhf__cuda_ws which);

// `bytes` from host memory to the device in the order of the stream; `from` has been read when it
// returns. For lists that an op hands to its kernel. [step]
rlhf_status rlhf__cuda_send(struct rlhf__cuda *cu, void *to, const void *from, uint64_t bytes);

// Of create and destroy: what allocations and transfers need. [main]
rlhf_status rlhf__cuda_memory_open(struct rlhf__cuda *cu);
rlhf_status rlhf__cuda_transfer_open(struct rlhf__cuda *cu);
void rlhf__cuda_transfer_close(struct rlhf__cuda *cu);

#endif
