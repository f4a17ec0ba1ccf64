// lt_plan.h: what was decided about a shape, between the files that decide it.
#ifndef RLHF_CUDA_LT_PLAN_H
#define RLHF_CUDA_LT_PLAN_H

#include "lt.h"

enum { RLHF__LT_ALIGN = 16 }; // bytes, of every address and every column

// The row counts that algorithms are searched at: a large microbatch, and a decode step.
enum { RLHF__LT_ROWS_LARGE = 16384, RLHF__LT_ROWS_SMALL = 256 };

struct rlhf__lt_plan {
    struct rlhf__lt_plan *next;
    struct rlhf__lt_shape shape;
    int own; // made by the own product
    rlhf__lt_desc desc;
    rlhf__lt_layout a, b, d; // C lies as D does
    rlhf__lt_algo algo;
    uint64_t workspace; // it may take
    uint64_t rows;      // what the layouts say now
    uint64_t searched;  // the row count that algo was chosen for; 0: all, or none yet
};

#define LT_TRY(expr)                                                                               \
    do {                                                                                           \
        const rlhf__lt_status lt_st = (expr);                                                      \
        if (lt_st != RLHF__LT_SUCCESS) return lt_st;                                               \
    } while (0)

// The layouts say `rows` from here on.
rlhf__lt_status rlhf__lt_rows_set(struct rlhf__cuda_lt *lt, struct rlhf__lt_plan *p, uint64_t rows);

// Finds the algorithm of a plan whose descriptors are made; 0 when the library has none for it.
int rlhf__lt_search(struct rlhf__cuda_lt *lt, struct rlhf__lt_plan *p);

// With RLHF_CUDA_LT=free: the library's own choice for `rows`; 0 when it has none.
int rlhf__lt_search_at(struct rlhf__cuda_lt *lt, struct rlhf__lt_plan *p, uint64_t rows);

#endif
