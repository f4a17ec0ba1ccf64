// low_rank.h: makes the low-rank product that merging an adapter adds to a matrix.
#ifndef RLHF_FORMATS_TENSORS_LOW_RANK_H
#define RLHF_FORMATS_TENSORS_LOW_RANK_H

#include "tensors/tensor.h"

// Make a low-rank product for the matrix `w` from `a` [rank, inputs] and `b` [outputs, rank]. `w`
// is [outputs, inputs], or [inputs, outputs] if in_out is set. The scale is multiplied into `left`.
// Errors: RLHF_E_INVALID (shapes that do not fit; the message has all three), and those of
// rlhf__tensor_read_f32. [main]
rlhf_status rlhf__low_rank_open(const struct rlhf__tensor *w, const struct rlhf__tensor *a,
                                const struct rlhf__tensor *b, double scale, int in_out,
                                struct rlhf__low_rank **out, struct rlhf__error *err);
void rlhf__low_rank_close(struct rlhf__low_rank *); // NULL allowed [main]

#endif
