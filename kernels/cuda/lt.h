// lt.h: cuBLASLt behind the products of product.h: the library opened, one algorithm for each
// shape, and the proof (canary.cu) that its rows do not depend on each other.
//
// The library is never a must: without it, with one that is too old or lacks a function, and for
// every shape that it cannot take or that the canary finds fault with, the own product is used.
// Which of the two makes rows (rows_exact) depends on their shape alone, never on the row count, on
// addresses or on timing: a row has the same bits in any company. A clock chooses only among
// algorithms whose rows have been found equal to the bit, one for few rows and one for many. No
// call has more rows than were proved: a larger count is proved when it first comes, or else its
// rows are made in pieces. A bias before a bf16 result is rounded to bf16 (the library wants it in
// the type of the result), added to the f32 sum, and the result is rounded once. A sum over rows is
// the own product's, too, where it is too short for the algorithm or an operand is at an odd
// address; its bits may depend on the row count, and a run repeats itself as long as its batches
// and addresses do. No bit depends on timing.
//
// Environment: RLHF_CUBLASLT, the file to open, or a directory to look in; RLHF_CUDA_LT_LOG, a file
// that gets a line for each decision about a shape; RLHF_CUDA_LT, "off" (own products only),
// "force" (the library on cards below compute capability 9.0, too) or "free": to measure what all
// this costs, the library may split sums and share them out as it likes, with an algorithm of its
// choice for each row count and without a proof. The table then does not claim row exactness.
#ifndef RLHF_CUDA_LT_H
#define RLHF_CUDA_LT_H

#include "context.h"
#include "lt_api.h"
#include "product.h"

// A product in the library's terms: column-major D [m, n] = op(A) op(B), sums in f32. Of rows, n is
// the row count of the call and 0 here; of a sum over rows, k is; Muon's products have all sizes.
struct rlhf__lt_shape {
    int32_t dtype, out_dtype; // of A and B; of D and C
    int32_t trans_a, trans_b; // A is stored [m, k], with trans_a [k, m]; B [k, n] or [n, k]
    int64_t m, n, k;
    int64_t lda, ldb, ldd; // elements between columns
    int32_t bias;          // [m] of D's type is added to every column
    int32_t exact;         // n is the row count; a column's bits may depend on nothing else
};

// Operands on the device. c [m, n] (leading dimension ldd, may be d) is added; NULL: nothing is.
struct rlhf__lt_operands {
    const void *a, *b, *c;
    void *d;
    const void *bias; // of D's type
};

struct rlhf__lt_plan; // what was decided about a shape

struct rlhf__cuda_lt {
    struct rlhf__lt_api api;
    void *so;
    rlhf__lt_handle handle; // NULL: own products only
    size_t version;
    int multiprocessors; // of the card
    int free;            // RLHF_CUDA_LT=free
    struct rlhf__lt_plan *plans;
    unsigned offered_none, not_exact, not_same, no_room; // own products' shapes, and why
    size_t detail_at; // where the library's part of the context's detail begins
};

// The library's state of a context.
static inline struct rlhf__cuda_lt *rlhf__lt_of(const struct rlhf__cuda *cu) {
    return (struct rlhf__cuda_lt *)cu->lt;
}

// RLHF_E_UNSUPPORTED with a sentence for another value of RLHF_CUDA_LT. [main]
rlhf_status rlhf__lt_mode_check(struct rlhf__cuda *cu);

// Opens the library and says in cu->detail (behind what is there) which it is or why there is none.
// RLHF_E_UNSUPPORTED as above, RLHF_E_NOMEM; else RLHF_OK. [main]
rlhf_status rlhf__lt_open(struct rlhf__cuda *cu);
void rlhf__lt_close(struct rlhf__cuda *cu); // before the stream and the memory go [main]

// Write the library's part of cu->detail anew. [step]
__attribute__((format(printf, 2, 3))) void rlhf__lt_detail(struct rlhf__cuda *cu, const char *fmt,
                                                           ...);

// Write the library's part of cu->detail again, with the shapes that own products make. [step]
void rlhf__lt_say(struct rlhf__cuda *cu);

// A version of the library is major * 10000 + minor * 100 + patch; which: 0, 1 or 2.
static inline unsigned long long rlhf__lt_version_part(size_t version, int which) {
    return which == 0 ? version / 10000 : which == 1 ? version / 100 % 100 : version % 100;
}

// cu->library: makes the product and sets *taken, or leaves both to the own product. Decides about
// a shape that is new: that waits for the GPU and takes memory for the time of the call, so it is
// not done inside a recording; rows 0 (depth 0 without rows_exact) only decides, and reads no
// operand's address. [step]
rlhf_status rlhf__lt_product(struct rlhf__cuda *cu, const struct rlhf__cuda_product_spec *s,
                             int *taken);

// Decides about the shapes that the linear ops and the LM head make of a weight, its gradient's
// included, before anybody needs one in a hurry or in a recording. Returns at once without the
// library, or when it is free. [step]
rlhf_status rlhf__lt_prepare(struct rlhf__cuda *cu, const struct rlhf_weight *w);

// ---- between the files of this header ----

// The plan of a shape, made if there is none; *out NULL: the own product's. [step]
rlhf_status rlhf__lt_plan_of(struct rlhf__cuda *cu, const struct rlhf__lt_shape *s,
                             struct rlhf__lt_plan **out);
void rlhf__lt_plans_free(struct rlhf__cuda_lt *lt);

// Queues one product of a library plan; rows: the dimension that the shape leaves open. Requires
// every operand at a multiple of 16 bytes and, for an exact shape, no more rows than are proved.
rlhf__lt_status rlhf__lt_run(struct rlhf__cuda *cu, struct rlhf__lt_plan *p,
                             const struct rlhf__lt_operands *o, uint32_t rows);

// Proves an exact plan for `rows`, where memory and time allow: not between record and record_end.
rlhf_status rlhf__lt_prove_more(struct rlhf__cuda *cu, struct rlhf__lt_plan *p, uint32_t rows);

#endif
