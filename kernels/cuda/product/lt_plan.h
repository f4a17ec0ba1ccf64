// lt_plan.h: a plan is the decision about a shape. This header is for the files that make plans.
#ifndef RLHF_KERNELS_CUDA_PRODUCT_LT_PLAN_H
#define RLHF_KERNELS_CUDA_PRODUCT_LT_PLAN_H

#include "product/lt.h"

enum { RLHF__LT_ALIGN = 16 }; // alignment of every address and column, in bytes

// The row counts for which algorithms are searched: a large microbatch, and a decoding step.
enum { RLHF__LT_ROWS_LARGE = 16384, RLHF__LT_ROWS_SMALL = 256 };

// Calls of at most RLHF__LT_FEW rows (a decoding step) use algo[0]. Larger calls (a microbatch) use
// algo[1].
enum { RLHF__LT_FEW = 1024, RLHF__LT_CANDIDATES = 6 };

struct rlhf__lt_plan {
    struct rlhf__lt_plan *next;
    struct rlhf__lt_shape shape;
    int own; // 1: our own kernels are used
    rlhf__lt_desc desc;
    rlhf__lt_layout a, b, d; // C has the layout of D
    rlhf__lt_algo algo[2]; // for few rows and for many; for an exact shape, both give the same bits
    uint64_t workspace;    // size of the largest workspace that it may use
    uint64_t rows;         // row count that the layouts have now
    uint64_t searched; // row count for which algo was chosen; 0: for all counts, or not chosen yet
    uint64_t proved;   // for an exact shape: the most rows allowed in a call
    int proved_all;    // 1: `proved` cannot grow: a larger proof fails or needs too much memory
};

// The algorithms that the search found for a shape, most promising first. Their order depends only
// on what the library offers.
struct rlhf__lt_candidates {
    int n;
    rlhf__lt_algo algo[RLHF__LT_CANDIDATES];
};

#define LT_TRY(expr)                                                                               \
    do {                                                                                           \
        const rlhf__lt_status lt_st = (expr);                                                      \
        if (lt_st != RLHF__LT_SUCCESS) return lt_st;                                               \
    } while (0)

// Sets the row count of the layouts to `rows`.
rlhf__lt_status rlhf__lt_rows_set(struct rlhf__cuda_lt *lt, struct rlhf__lt_plan *p, uint64_t rows);

// Find algorithms for a plan. The plan's descriptors must exist. Returns 0 if the library offers no
// algorithm.
int rlhf__lt_search(struct rlhf__cuda_lt *lt, struct rlhf__lt_plan *p,
                    struct rlhf__lt_candidates *out);

// With RLHF_CUDA_LT=free: find the library's own choice for calls with `rows` rows. Returns 0 if
// the library offers none.
int rlhf__lt_search_at(struct rlhf__cuda_lt *lt, struct rlhf__lt_plan *p, uint64_t rows);

// Chooses among the candidates and sets p->own, p->algo and p->proved. [step]
rlhf_status rlhf__lt_choose(struct rlhf__cuda *cu, struct rlhf__lt_plan *p,
                            const struct rlhf__lt_candidates *from);

// Calls the library once with a given algorithm.
rlhf__lt_status rlhf__lt_run_as(struct rlhf__cuda *cu, struct rlhf__lt_plan *p,
                                const rlhf__lt_algo *algo, const struct rlhf__lt_operands *o,
                                uint32_t rows);

// ---- proofs (canary.cu, canary_sums.cu) ----

// For an exact shape, compares the results of the algorithms `whole` and `some` on 513 random rows.
// `whole` computes all rows in one call. `some` computes selections of the rows: one row, several
// rows, and repeated rows, up to `tall` rows (at least 513) in one call. Every call is made with
// and without the addend c. Sets *same to 1 if every row always has the same bits. Returns
// RLHF_E_NOMEM if there is not enough memory; *same is then meaningless.
rlhf_status rlhf__lt_canary_rows(struct rlhf__cuda *cu, struct rlhf__lt_plan *p,
                                 const rlhf__lt_algo *whole, const rlhf__lt_algo *some,
                                 unsigned tall, int *same);
// rlhf__lt_canary_tall: the number of rows that the proof covers when a plan is made.
// rlhf__lt_canary_most: the largest number of rows for which memory is allocated.
unsigned rlhf__lt_canary_tall(const struct rlhf__cuda *cu, const struct rlhf__lt_shape *s);
unsigned rlhf__lt_canary_most(const struct rlhf__lt_shape *s);

// Measure the time of each algorithm at 256 rows and at `tall` rows, in milliseconds. The caller
// uses the times to choose. [step]
rlhf_status rlhf__lt_canary_time(struct rlhf__cuda *cu, struct rlhf__lt_plan *p,
                                 const rlhf__lt_algo *const *algos, int n, unsigned tall,
                                 float (*ms)[2]);

// For an inexact shape, sets *same to 1 if the GEMM gives the same bits when it is repeated
// immediately and when it is repeated after other GEMMs of the plan. Returns RLHF_E_NOMEM if there
// is not enough memory; *same is then meaningless.
rlhf_status rlhf__lt_canary_sums(struct rlhf__cuda *cu, struct rlhf__lt_plan *p,
                                 const rlhf__lt_algo *algo, int *same);

// ---- RLHF_CUDA_LT_LOG (lt_log.cu) ----

// Append a line with the shape, the algorithm (NULL: there is none), and a remark.
__attribute__((format(printf, 4, 5))) void rlhf__lt_log(struct rlhf__cuda_lt *lt,
                                                        const struct rlhf__lt_shape *s,
                                                        const rlhf__lt_algo *algo, const char *fmt,
                                                        ...);

#endif
