// product.h: the one matrix product behind linear, linear_add, linear_dx, linear_dw, the LM head
// and Muon.
//
// An output is one chain of sums over depth in ascending order, whatever the other rows, their
// number, the tile or the card: the own kernels give a row the same bits in any company.
#ifndef RLHF_CUDA_PRODUCT_H
#define RLHF_CUDA_PRODUCT_H

#include "context.h"
#include "product_spec.h"

// Runs it on the stream: a library product where cu->library takes it, else own kernels. The
// arguments are the caller's to check; outputs are the caller's to announce (rlhf__cuda_wrote).
// rows, cols or depth 0: nothing is launched for an empty result, an empty sum is 0. [step]
rlhf_status rlhf__cuda_product(struct rlhf__cuda *cu, const struct rlhf__cuda_product_spec *s);

// Own kernels only. tile: -1 the backend's choice, else 0 .. RLHF__CUDA_TILES - 1. All tiles give
// the same bits. [step]
#define RLHF__CUDA_TILES 3
rlhf_status rlhf__cuda_product_own(struct rlhf__cuda *cu, const struct rlhf__cuda_product_spec *s,
                                   int tile);

#endif
