// fake_lt.h: a libcublasLt that needs no GPU. It checks every argument against the library's
// documented rules. Its GEMMs are queued in the fake runtime, and add their terms in f32, in
// ascending order of k.
//
// cublasLtGetVersion and cublasLtCreate read two environment variables. FAKE_LT is one of
//   honest    (or unset) every algorithm without split-k is row-exact
//   hostile   no algorithm is row-exact: the number of columns decides how k is summed. Also
//             rejects odd alignments
//   unlike    the algorithm for few columns sums in two pieces: row-exact, but with other bits
//   giant     if there are more than 2,000 columns, k is summed differently
//   restless  sums that may be split are split, each time differently
//   residue   such sums are split differently after each GEMM with a depth below 300
//   unasked   the first offers use split-k and TF32, although the search forbids them
//   none      offers no algorithms at all
//   old       version 11.6.0
//   newer     version 13.2.0
//   nodriver  cublasLtCreate fails as on a machine without a GPU
//
// On the emulated card's clock (emu_tick), the algorithm with 64 columns per tile is the fastest up
// to 256 columns. Above that, the algorithm with 128 columns per tile is the fastest. The algorithm
// for odd addresses is slow.
//
// The list of offers has a limited length. If the search allows TF32 or split-k, offers of these
// kinds displace others. If it allows a workspace, the first offer is an algorithm that is not
// row-exact.
//
// If the backend breaks a rule, the fake ends the process with a message. If FAKE_LT_ANSWER is set,
// the call returns a status instead, as in the library.
#ifndef RLHF_TESTS_CUDA_FAKE_LT_H
#define RLHF_TESTS_CUDA_FAKE_LT_H

#include "product/lt_api.h"

// Values of NVIDIA's headers that only the fake needs, so lt_api.h lacks them.
enum {
    FAKE_LT_TILE_64 = 15,
    FAKE_LT_TILE_128 = 20,
    FAKE_LT_IN_PLACE = 1, // reduction schemes
    FAKE_LT_COMPUTE_TYPE = 2
};

enum fake_lt_sum {
    FAKE_LT_CHAIN,   // k in one piece, ascending
    FAKE_LT_SPLIT,   // k in four pieces, summed at the end
    FAKE_LT_TF32,    // f32 inputs truncated to TF32
    FAKE_LT_HALVES,  // k in two pieces
    FAKE_LT_GIANT,   // k in two pieces if there are more than 2,000 columns
    FAKE_LT_BY_COLS, // splits k by the number of columns: not row-exact
    FAKE_LT_BY_TURN  // splits k by `turn`: not repeatable
};

struct fake_lt_matrix {
    const void *p;
    int64_t ld;
    int bf16, trans;
};

// D [m, n] = alpha op(A) op(B) + beta C + bias.
struct fake_lt_work {
    int64_t m, n, k;
    struct fake_lt_matrix a, b;
    const void *c;
    void *d;
    int64_t ldc, ldd;
    int d_bf16;
    const void *bias; // D's type, or NULL
    float alpha, beta;
    enum fake_lt_sum sum;
    uint64_t turn;
    void (*tick)(float ms); // NULL: no clock
    float ms;
};

void fake_lt_compute(const struct fake_lt_work *w);

// Exported in addition to the library's own functions.
#define FAKE_LT_EXTRAS(X)                                                                          \
    X(fake_lt_products, uint64_t, (void)) /* number of GEMMs since the start */                    \
    X(fake_lt_tile, int, (void))          /* columns per tile of the last GEMM: 64 or 128 */       \
    X(fake_lt_largest, uint64_t, (void))  /* columns of the widest GEMM since the last call */     \
    X(fake_lt_why, const char *, (void))  /* the last broken rule, or "" */

#endif
