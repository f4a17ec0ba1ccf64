// lt.h: cuBLASLt for the GEMMs of product.h: opening the library, the choice of algorithms for each
// shape, and the proof (canary.cu) that rows do not depend on each other.
//
// The library is optional. This backend's own kernels are used if the library is missing or too
// old, or if it lacks a function. They are also used for every shape that the library does not
// support, and for every shape that fails its proof.
//
// GEMMs over rows (rows_exact): the choice between the library and our kernels depends only on the
// shape, never on the row count, addresses or timing. So a row has the same bits in any batch.
// Timing only decides between algorithms that give every row the same bits; it chooses one of them
// for few rows and one for many. A call of the library never has more rows than the proof covers.
// When a larger row count first occurs, the proof is extended to cover it. If the extension fails,
// the rows are divided into several calls. The library requires that the bias has the result's
// type. So for a bf16 result, the bias is rounded to bf16 and added to the f32 sum, and the total
// is rounded once.
//
// Sums over rows: our kernels are also used if the sum is too short for the algorithm, or if an
// operand is misaligned. The bits of such a sum may depend on the row count. They never depend on
// timing, so a run is repeatable if its batches and addresses are the same.
//
// Environment variables:
//   RLHF_CUBLASLT     the file to open, or a directory to search
//   RLHF_CUDA_LT_LOG  a file to which each decision about a shape is logged
//   RLHF_CUDA_LT      "off" (our kernels only), "force" (the library, even on cards below compute
//                     capability 9.0) or "free", which measures the cost of exactness
//
// In "free" mode, the library may divide sums in any way, and it chooses an algorithm for each row
// count, without a proof. The table then does not claim row exactness.
#ifndef RLHF_KERNELS_CUDA_PRODUCT_LT_H
#define RLHF_KERNELS_CUDA_PRODUCT_LT_H

#include "machine/context.h"
#include "machine/product_spec.h"
#include "product/lt_api.h"

// A GEMM in the library's terms: column-major D [m, n] = op(A) op(B), with sums in f32. The row
// count of a call is not a part of the shape, so the member that would hold it is 0. That member is
// n or, in a sum over rows, k. For Muon's GEMMs, all three sizes are set.
struct rlhf__lt_shape {
    int32_t dtype, out_dtype; // of A and B; of D and C
    int32_t trans_a, trans_b; // A is stored [m, k] or [k, m]; B is stored [k, n] or [n, k]
    int64_t m, n, k;
    int64_t lda, ldb, ldd; // number of elements between columns
    int32_t bias;          // 1: a bias [m] of D's type is added to every column
    int32_t exact; // 1: n is the row count, and a column's bits may not depend on anything else
};

// Operands on the device. c, a [m, n] matrix with leading dimension ldd, is added to the result. c
// may be the same memory as d. If c is NULL, nothing is added.
struct rlhf__lt_operands {
    const void *a, *b, *c;
    void *d;
    const void *bias; // bias, of D's type
};

struct rlhf__lt_plan; // the decision about a shape

struct rlhf__cuda_lt {
    struct rlhf__lt_api api;
    void *so;
    rlhf__lt_handle handle; // NULL: use only our kernels
    size_t version;
    int multiprocessors; // number of the card's multiprocessors
    int free;            // 1: RLHF_CUDA_LT=free
    struct rlhf__lt_plan *plans;
    unsigned offered_none, not_exact, not_same, no_room; // counts of shapes for our kernels
    size_t detail_at; // where the library's part of the context's detail begins
};

// The size in bytes of the library's workspace. The library is tuned for this size on compute
// capability 9.0.
enum { RLHF__LT_WORKSPACE = 32 << 20 };

// The size in bytes of a bias of n columns after it is rounded to bf16, as the library requires.
static inline uint64_t rlhf__lt_bias_bytes(uint32_t n) { return n * 2ull; }

// The state of the library in a context.
static inline struct rlhf__cuda_lt *rlhf__lt_of(const struct rlhf__cuda *cu) {
    return (struct rlhf__cuda_lt *)cu->lt;
}

// Returns RLHF_E_UNSUPPORTED, with an error text, if the value of RLHF_CUDA_LT is unknown. [main]
rlhf_status rlhf__lt_mode_check(struct rlhf__cuda *cu);

// Open the library. Append to cu->detail which library it is, or why it is not used. Returns
// RLHF_E_UNSUPPORTED if the value of RLHF_CUDA_LT is unknown, or RLHF_E_NOMEM if memory runs out.
// Otherwise returns RLHF_OK, even if there is no library. [main]
rlhf_status rlhf__lt_open(struct rlhf__cuda *cu);
void rlhf__lt_close(struct rlhf__cuda *cu); // call before releasing the stream [main]

// Replaces the library's part of cu->detail. [step]
__attribute__((format(printf, 2, 3))) void rlhf__lt_detail(struct rlhf__cuda *cu, const char *fmt,
                                                           ...);

// Update the library's part of cu->detail, including the shapes that our own kernels compute.
// [step]
void rlhf__lt_say(struct rlhf__cuda *cu);

// Returns one part of the library's version number, major * 10000 + minor * 100 + patch. `which`
// selects the part: 0 major, 1 minor, 2 patch.
static inline unsigned long long rlhf__lt_version_part(size_t version, int which) {
    return which == 0 ? version / 10000 : which == 1 ? version / 100 % 100 : version % 100;
}

// The function cu->library. Runs the GEMM and sets *taken to 1, or sets *taken to 0 if our kernels
// must be used. The first call with a shape decides between the library and our kernels. The
// decision waits for the GPU and needs memory while it runs, so it must not happen in a recording.
// A shape leaves one size open: `rows` or, without rows_exact, `depth`. If that size is 0, the call
// only decides, and does not read the operands' addresses. [step]
rlhf_status rlhf__lt_product(struct rlhf__cuda *cu, const struct rlhf__cuda_product_spec *s,
                             int *taken);

// For every shape in which the linear ops and the LM head use a weight or its gradient, decide
// between the library and our kernels. It is useful to decide early, because a decision is slow and
// is not possible in a recording. Does nothing without the library or in "free" mode. [step]
rlhf_status rlhf__lt_prepare(struct rlhf__cuda *cu, const struct rlhf_weight *w);

// ---- for the files that implement this header ----

// Gets the plan of a shape. Creates the plan if necessary. If *out is NULL, use our kernels. [step]
rlhf_status rlhf__lt_plan_of(struct rlhf__cuda *cu, const struct rlhf__lt_shape *s,
                             struct rlhf__lt_plan **out);
void rlhf__lt_plans_finish(struct rlhf__cuda_lt *lt);

// Queue one GEMM of a plan that uses the library. `rows` is the size that the shape leaves open.
// Every operand must be aligned to 16 bytes. For an exact shape, `rows` must be at most the number
// that the proof covers.
rlhf__lt_status rlhf__lt_run(struct rlhf__cuda *cu, struct rlhf__lt_plan *p,
                             const struct rlhf__lt_operands *o, uint32_t rows);

// Also prove that the plan is exact for calls with this many rows, unless memory is short or a
// recording is in progress.
rlhf_status rlhf__lt_prove_more(struct rlhf__cuda *cu, struct rlhf__lt_plan *p, uint32_t rows);

#endif
