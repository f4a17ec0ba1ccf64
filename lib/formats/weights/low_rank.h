// low_rank.h: a base's tensor with its adapter in it, W + scale * B A, made a piece at a time while
// it is read: what merging writes.
#ifndef RLHF_HOST_WEIGHTS_LOW_RANK_H
#define RLHF_HOST_WEIGHTS_LOW_RANK_H

#include "weights/tensor.h"

// left [rows, rank] times right [rank, cols], f32, owned; what is added to a tensor [rows, cols].
struct rlhf__low_rank {
    int64_t rows, cols, rank;
    float *left, *right;
};

// From A [rank, inputs] and B [outputs, rank], for a matrix w [outputs, inputs], or [inputs,
// outputs] where in_out is set; left takes the scale. Errors: RLHF_E_INVALID, shapes that do not
// fit (all three are named), and those of rlhf__tensor_read_f32. [main]
rlhf_status rlhf__low_rank_create(const struct rlhf__tensor *w, const struct rlhf__tensor *a,
                                  const struct rlhf__tensor *b, double scale, int in_out,
                                  struct rlhf__low_rank **out, struct rlhf__error *err);
void rlhf__low_rank_destroy(struct rlhf__low_rank *); // NULL allowed [main]

// out[n] += elements [from, from + n) of the product. Sums run over the rank, in order. [any]
void rlhf__low_rank_add(const struct rlhf__low_rank *, int64_t from, int64_t n, float *out);

#endif
