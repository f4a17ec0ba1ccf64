// lt_plan.h: what was decided about a shape, between the files that decide it.
#ifndef RLHF_CUDA_LT_PLAN_H
#define RLHF_CUDA_LT_PLAN_H

#include "lt.h"

enum { RLHF__LT_ALIGN = 16 }; // bytes, of every address and every column

// The row counts that algorithms are searched at: a large microbatch, and a decode step.
enum { RLHF__LT_ROWS_LARGE = 16384, RLHF__LT_ROWS_SMALL = 256 };

// A call of at most RLHF__LT_FEW rows has the algorithm [0], one of more [1]: a decode step, and a
// microbatch.
enum { RLHF__LT_FEW = 1024, RLHF__LT_CANDIDATES = 6 };

struct rlhf__lt_plan {
    struct rlhf__lt_plan *next;
    struct rlhf__lt_shape shape;
    int own; // made by the own product
    rlhf__lt_desc desc;
    rlhf__lt_layout a, b, d; // C lies as D does
    rlhf__lt_algo algo[2];   // of few rows and of many; of an exact shape with the same bits
    uint64_t workspace;      // it may take
    uint64_t rows;           // what the layouts say now
    uint64_t searched;       // the row count that algo was chosen for; 0: all, or none yet
    uint64_t proved;         // of an exact shape: calls have at most so many rows
    int proved_all;          // ... and will not have more: that failed, or takes too much memory
};

// Algorithms that the search found for a shape, the most promising first. The order depends on what
// the library offers alone.
struct rlhf__lt_candidates {
    int n;
    rlhf__lt_algo algo[RLHF__LT_CANDIDATES];
};

#define LT_TRY(expr)                                                                               \
    do {                                                                                           \
        const rlhf__lt_status lt_st = (expr);                                                      \
        if (lt_st != RLHF__LT_SUCCESS) return lt_st;                                               \
    } while (0)

// The layouts say `rows` from here on.
rlhf__lt_status rlhf__lt_rows_set(struct rlhf__cuda_lt *lt, struct rlhf__lt_plan *p, uint64_t rows);

// Finds algorithms for a plan whose descriptors exist; 0 when the library offers none.
int rlhf__lt_search(struct rlhf__cuda_lt *lt, struct rlhf__lt_plan *p,
                    struct rlhf__lt_candidates *out);

// With RLHF_CUDA_LT=free: the library's own choice for `rows`; 0 when it has none.
int rlhf__lt_search_at(struct rlhf__cuda_lt *lt, struct rlhf__lt_plan *p, uint64_t rows);

// Chooses among the candidates and sets p->own, p->algo and p->proved. [step]
rlhf_status rlhf__lt_choose(struct rlhf__cuda *cu, struct rlhf__lt_plan *p,
                            const struct rlhf__lt_candidates *from);

// One call of the library with an algorithm of the caller's.
rlhf__lt_status rlhf__lt_run_as(struct rlhf__cuda *cu, struct rlhf__lt_plan *p,
                                const rlhf__lt_algo *algo, const struct rlhf__lt_operands *o,
                                uint32_t rows);

// ---- proofs (canary.cu, canary_sums.cu) ----

// Sets *same, for an exact shape: 513 random rows of `whole` have the bits that `some` gives them
// alone and in any company, up to `tall` rows (at least 513), with c and without. RLHF_E_NOMEM when
// memory does not suffice: the result is then unknown.
rlhf_status rlhf__lt_canary_rows(struct rlhf__cuda *cu, struct rlhf__lt_plan *p,
                                 const rlhf__lt_algo *whole, const rlhf__lt_algo *some,
                                 unsigned tall, int *same);
// The rows that are proved when a plan is made, and the most that memory is taken for.
unsigned rlhf__lt_canary_tall(const struct rlhf__cuda *cu, const struct rlhf__lt_shape *s);
unsigned rlhf__lt_canary_most(const struct rlhf__lt_shape *s);

// Milliseconds of each algorithm at 256 rows and at `tall`. Decides nothing. [step]
rlhf_status rlhf__lt_canary_time(struct rlhf__cuda *cu, struct rlhf__lt_plan *p,
                                 const rlhf__lt_algo *const *algos, int n, unsigned tall,
                                 float (*ms)[2]);

// Sets *same, for a shape that is not exact: the product has the same bits when it is repeated at
// once, and after other products of the plan. RLHF_E_NOMEM as above.
rlhf_status rlhf__lt_canary_sums(struct rlhf__cuda *cu, struct rlhf__lt_plan *p,
                                 const rlhf__lt_algo *algo, int *same);

// ---- RLHF_CUDA_LT_LOG (lt_log.cu) ----

// Appends a line: the shape, the algorithm (NULL: none), and the remark.
__attribute__((format(printf, 4, 5))) void rlhf__lt_log(struct rlhf__cuda_lt *lt,
                                                        const struct rlhf__lt_shape *s,
                                                        const rlhf__lt_algo *algo, const char *fmt,
                                                        ...);

#endif
