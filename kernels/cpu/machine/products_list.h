// products_list.h: the list of the hot loops of the GEMM side (product.h). Only hot.h
// includes it.
#ifndef RLHF_CPU_MACHINE_PRODUCTS_LIST_H
#define RLHF_CPU_MACHINE_PRODUCTS_LIST_H

#include <stddef.h>
#include <stdint.h>

// The softmax of one row of logits z[n], scaled by it = 1 / temperature. A logit of -inf is outside
// of the kept set: its probability is 0, and it gets no gradient.
struct rlhf__head_stat {
    float max;                  // maximum of z, unscaled
    float log_sum;              // log sum exp((z - max) it)
    float entropy;              // if requested
    float kl;                   // if requested
    float kl_p;                 // sum p log(p/m), of Jensen-Shannon
    float ref_max, ref_log_sum; // the same for the reference's row, over the same kept set
};

// The number of elements that are summed in f32 before the sum continues in f64.
#define RLHF__HEAD_BLOCK 1024

static inline size_t rlhf__head_blocks(size_t n) {
    return (n + RLHF__HEAD_BLOCK - 1) / RLHF__HEAD_BLOCK;
}

// What follows the product with the matrix: z = x scale and, unless cap is 0, cap tanh(z / cap).
struct rlhf__head_map {
    float scale, cap;
};

// The derivatives of the loss by the values of one row, and what made its logits.
struct rlhf__head_grad {
    float d_logp, d_entropy, d_kl;
    int32_t target;
    struct rlhf__head_map map;
};

// Multiplies rows of A with one panel of B: C[m, columns] = A[m, k] B + bias. If `accumulate` or
// `goes_on` is set, the sum is added to an earlier result. Strides are in elements. B is stored as
// [k][panel width] floats or as bf16 pairs (bf16.h), with zeros past the right edge. Every output
// is one chain of multiply-adds over ascending k or, in f32, a sum of such chains. The chains are
// the same in every tile, so the bits of a row depend only on the row and on B. With `goes_on`, the
// chain of bf16 operands (and of operands with `pairs`) starts at C. f32 chains always start at 0;
// with `goes_on`, they are added to C.
struct rlhf__panel {
    const void *a; // [m, k] with row stride a_stride; or packed: tiles of rows, [k][rows of a tile]
    size_t a_stride, m, k;
    const uint32_t *b;   // the panel, from k = 0
    size_t b_next;       // words from b to the next panel, which will be prefetched
    const float *bias;   // bias of the panel's columns; may be NULL
    void *c;             // first column of the panel
    size_t ldc, columns; // columns <= panel width
    size_t chain; // f32 only: number of steps of k in a chain; each chain starts at 0, and the
                  // chains are added in order (with goes_on, to C); 0: one chain
    int pairs;    // f32 only: the operands are widened bf16, see struct rlhf__matmul; chain is 0
    int a_packed, c_bf16, accumulate; // accumulate: C + sum; c_bf16 and accumulate: see bf16.h
    int goes_on; // 1: k may be divided at multiples of the chain, or of 32 if chain is 0, without
                 // changing a bit. Not allowed with accumulate, bias or c_bf16
    const float *from;   // with accumulate: the addend, with rows as in C; NULL: C itself
    const float *addend; // c_bf16 only: C = addend[m, panel width] + sum; NULL allowed
};

// What unquantise writes: f32 numbers; rounded to bf16 and widened; the same in the order of pairs
// of struct rlhf__matmul.
enum { RLHF__UNQUANTISE_F32, RLHF__UNQUANTISE_BF16, RLHF__UNQUANTISE_PAIRS };

// The most rows of gemm_few.
#define RLHF__GEMM_FEW 4

// Constants of an AdamW step: w = w decay - step m / (sqrt(v) root_scale + eps).
struct rlhf__adam_step {
    float grad_scale, beta1, beta1_rest, beta2, beta2_rest, decay, step, root_scale, eps;
    int32_t zero_grad; // 1: set the gradient to 0 afterwards
};

// gemm_*       f32 GEMMs, see struct rlhf__panel. Packing is as in bf16.h. gemm_turn_a packs A from
//              its rows; gemm_turn_b is like rlhf__bf16_turn_b. If `stream` is set, stores
//              bypass the caches, and dst must be 64-byte aligned. If `pairs` is set, src and dst
//              of gemm_turn_b are in the order of struct rlhf__matmul's pairs
// unquantise   the steps k0 .. k0 + k - 1 of a quantised panel (unquantise.h), as [k][panel width];
//              k0 and k are multiples of 8
// gemm_few     like gemm_panel for at most RLHF__GEMM_FEW rows that are not packed, without
// goes_on;
//              the panel is the steps k0 .. k0 + k - 1 of a quantised panel, and b is not read
// column_sums  db[c] += sum over rows of dy[row][c]; rows of dy are `stride` elements apart. f32
//              rows are summed at three levels (hot_optim.c)
// weighted_sums  dw[c] += sum over rows of dy[row] x[row][c], a chain of vf_fma in row order
// head_map     turns n products with the matrix into logits, in place
// head_stat    sets max, log_sum and, if requested, entropy; sums (NULL allowed): see head_sums.
//              `it` is 1 / temperature, here and below
// head_kl      needs head_stat; sets kl, ref_max, ref_log_sum from the reference's row r
// head_grad    dz[n] (f32 or bf16) = derivative w.r.t. the products with the matrix; r NULL if d_kl
//              is 0; dz may alias z in f32
// head_divergence  needs head_kl; replaces kl by the forward divergence (beta 0) or Jensen-Shannon
// head_divergence_grad  like head_grad, if kl is from head_divergence
// head_sums    sums[i] = the sum of exp((z - max) it) over block i of RLHF__HEAD_BLOCK elements
// head_draw    *id = the first id whose running sum of exp((z - max) it) exceeds u times the total;
//              sums come from head_sums
// head_argmax  *id = the lowest id of the largest logit
// head_truncate    z outside top_k (0 = off) and top_p (1 = off) becomes -inf; work holds n floats
// adamw        n elements, in one pass
// sumsq        *out = the sum of the squares of n elements, in f64
// muon_momentum  mom = momentum mom + g grad_scale; u = direction; n elements
// scale        x[n] *= a
// blend        out[n] = a x + b y, f32
// apply_step   w[n] = w decay - step u
#define RLHF__HOT_PRODUCTS(X)                                                                      \
    X(gemm_pack_rows,                                                                              \
      (uint32_t * dst, const float *src, size_t k, size_t columns, size_t stride, int stream))     \
    X(gemm_pack_cols,                                                                              \
      (uint32_t * dst, const float *src, size_t k, size_t columns, size_t stride, int stream))     \
    X(gemm_pack_a, (uint32_t * dst, const float *src, size_t m, size_t k, size_t stride))          \
    X(gemm_turn_a, (uint32_t * dst, const float *src, size_t m, size_t k, size_t stride))          \
    X(gemm_turn_b,                                                                                 \
      (uint32_t * dst, const uint32_t *src, size_t rows, size_t columns, size_t next, int pairs))  \
    X(gemm_panel, (const struct rlhf__panel *p))                                                   \
    X(unquantise, (float *to, const uint8_t *panel, int format, size_t k0, size_t k, int form))    \
    X(gemm_few, (const struct rlhf__panel *p, const uint8_t *panel, int format, size_t k0))        \
    X(column_sums, (float *db, const void *dy, int bf16, size_t rows, size_t cols, size_t stride)) \
    X(weighted_sums,                                                                               \
      (float *dw, const float *x, const float *dy, size_t rows, size_t cols, size_t stride))       \
    X(head_map, (float *z, size_t n, struct rlhf__head_map map))                                   \
    X(head_stat,                                                                                   \
      (struct rlhf__head_stat * s, const float *z, size_t n, float it, int entropy, double *sums)) \
    X(head_kl, (struct rlhf__head_stat * s, const float *z, const float *r, size_t n, float it))   \
    X(head_divergence, (struct rlhf__head_stat * s, const float *z, const float *r, size_t n,      \
                        float it, float beta))                                                     \
    X(head_divergence_grad,                                                                        \
      (void *dz, int bf16, const float *z, const float *r, size_t n, float it, float beta,         \
       const struct rlhf__head_stat *s, const struct rlhf__head_grad *g))                          \
    X(head_grad, (void *dz, int bf16, const float *z, const float *r, size_t n, float it,          \
                  const struct rlhf__head_stat *s, const struct rlhf__head_grad *g))               \
    X(head_sums, (double *sums, const float *z, size_t n, float it, float max))                    \
    X(head_draw,                                                                                   \
      (int32_t * id, const float *z, size_t n, float it, float max, double u, const double *sums)) \
    X(head_argmax, (int32_t * id, const float *z, size_t n))                                       \
    X(head_truncate, (float *z, size_t n, float it, int32_t top_k, double top_p, float *work))     \
    X(adamw, (float *w, float *g, float *m, float *v, size_t n, const struct rlhf__adam_step *a))  \
    X(sumsq, (double *out, const float *x, size_t n))                                              \
    X(muon_momentum, (float *u, float *mom, const float *g, size_t n, float momentum,              \
                      float grad_scale, int nesterov))                                             \
    X(scale, (float *x, size_t n, float a))                                                        \
    X(blend, (float *out, const float *x, const float *y, size_t n, float a, float b))             \
    X(apply_step, (float *w, const float *u, size_t n, float decay, float step))

#endif
