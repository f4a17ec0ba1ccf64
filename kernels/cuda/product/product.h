// product.h: the one GEMM function that linear, linear_add, linear_dx, linear_dw, the LM head and
// Muon use.
//
// Our own kernels sum each output over depth in an order that does not depend on the other rows,
// the number of rows, the tile or the card. So they give a row the same bits in any batch.
#ifndef RLHF_CUDA_PRODUCT_H
#define RLHF_CUDA_PRODUCT_H

#include "machine/context.h"
#include "machine/product_spec.h"

// Run a GEMM on the stream. If cu->library takes the GEMM, the library runs it. Otherwise our own
// kernels run it. The caller checks the arguments and announces the outputs (rlhf__cuda_wrote).
// `rows`, `cols` and `depth` may be 0: an empty result launches nothing, and an empty sum is 0.
// [step]
rlhf_status rlhf__cuda_product(struct rlhf__cuda *cu, const struct rlhf__cuda_product_spec *s);

// Add the workspaces of the GEMM `s` to `n`. If the library might compute the GEMM, also add the
// library's workspace. Copies of misaligned operands are not counted. The addresses in `s` are not
// accessed, only compared with NULL. [step]
void rlhf__cuda_product_needs(const struct rlhf__cuda *cu, const struct rlhf__cuda_product_spec *s,
                              struct rlhf__cuda_needs *n);

// Runs the GEMM with our own kernels only. `tile` is 0 .. RLHF__CUDA_TILES - 1, or -1 to let the
// backend choose. All tiles give the same bits. [step]
#define RLHF__CUDA_TILES 3
rlhf_status rlhf__cuda_product_own(struct rlhf__cuda *cu, const struct rlhf__cuda_product_spec *s,
                                   int tile);

#endif
