// hot.h: the table of hot loops, and the choice of the instruction set. Every hot source is
// compiled once per level (see vec.h). When a table is opened, rlhf__isa_choose returns the best
// level that the CPU supports.
//
// The functions use no threads, check nothing and allocate nothing. Their callers (row_*.c,
// product/) divide the work, validate arguments and provide scratch memory. All functions are
// [any].
#ifndef RLHF_KERNELS_CPU_MACHINE_HOT_H
#define RLHF_KERNELS_CPU_MACHINE_HOT_H

#include <stddef.h>
#include <stdint.h>

// The levels. Each level includes the features of the previous levels. The last level of x86-64 has
// separate GEMMs, but shares all other loops with the level before it.
#ifdef __aarch64__
enum rlhf__isa { RLHF__ISA_NEON, RLHF__ISA_COUNT };
#define RLHF__ISA_NAMES "is neon"
#else
enum rlhf__isa {
    RLHF__ISA_BASELINE,
    RLHF__ISA_AVX2,
    RLHF__ISA_AVX512, // F, BW, DQ, VL: Skylake to Cascade Lake, Ice Lake
    RLHF__ISA_AVX512_BF16,
    RLHF__ISA_AMX,
    RLHF__ISA_COUNT
};
#define RLHF__ISA_NAMES "are baseline, avx2, avx512, avx512_bf16, amx"
#endif

// One row of an attention call, for `group` adjacent query heads that share one key head. q, out,
// dout and dq point to the row's first query, at the first of these heads. For the next query head,
// add head_dim to these pointers, and 1 to lse. k, v, dk and dv point to the row's first key after
// the prefix, at the shared head. Strides are in elements.
//
// The first np of the nk keys are the prefix. They are in pk and pv; the later keys are in k and v,
// which begin with key np. Query t sees keys 0 .. start + t if `causal` is set, with a window the
// last `window` of these, otherwise all nk keys. Keys before the first one that query 0 sees are
// not read in forward. lse has the stride lse_stride; it may be NULL in forward. dtype is enum
// rlhf_dtype. head_dim is a multiple of 8, at most 512. softcap is that of rlhf_attn.
//
// Backward with a shared prefix: one thread processes the prefix row and then the rows that share
// it, with the same scratch and the same `room`. The prefix row has sum_on set, so its packed keys
// and the sums of their dk and dv stay in scratch. Every further row adds to these sums. The last
// row has sum_out set and stores them.
struct rlhf__attn_item {
    const void *q, *k, *v;
    const void *pk, *pv; // not read if np is 0
    void *out;           // forward: written; backward: read
    float *lse;
    const void *dout;              // backward only, like out
    void *dq, *dk, *dv;            // backward only, laid out like q, k, v
    void *pdk, *pdv;               // backward with sum_out: laid out like pk and pv
    float *scratch;                // rlhf__attn_scratch(_bwd) floats, 64-byte aligned
    const void *ahead_k, *ahead_v; // forward with few queries: these are prefetched during the item
    size_t ahead_bytes;            // bytes of each; 0: nothing
    int64_t next_q, next_kv, next_out; // prefetch: bytes from this item's rows to those of the
                                       // probable next item; next_q 0: no prefetch
    int64_t q_stride, kv_stride, out_stride, lse_stride;
    uint32_t nq, nk, np, start;
    uint32_t room;   // backward: largest nk of the rows that share scratch
    uint32_t window; // 0: none
    int32_t head_dim, group, causal, dtype, sum_on, sum_out;
    float scale, softcap; // softcap 0: none
};

// A run: nq consecutive rows that have one query each and share a prefix. `it` selects the heads to
// compute; it.head_dim must be a multiple of 16. In `it`, q, out and lse point to the first row, k
// and v point to key 0 of the whole cache, and nk is the largest number of keys. The members start,
// causal, ahead_* and next_* of `it` are not read. Row t has start[t] + 1 keys, and all of them are
// in the window. Its keys after the prefix start at key base[t] of k and v.
struct rlhf__attn_run {
    struct rlhf__attn_item it;
    const int32_t *start, *base;
};

// Rows of queries and keys to rotate, `stride` elements apart. rlhf_rope describes the members. x,
// raw, pos and stats point to the data of the first row. If gamma_q is NULL, gamma_k is not read,
// and part, raw and stats must be NULL.
struct rlhf__rope_rows {
    void *x, *raw;
    const int32_t *pos;
    const float *turn, *gamma_q, *gamma_k;
    float *stats;
    float *part; // backward: += the sums of gamma_q, then of gamma_k; NULL: skip
    size_t rows, stride, heads, kv_heads;
    size_t half, rest; // half of a head's elements that are rotated, and of those that are not
    float eps, offset; // offset: added to the gammas
    int whole;
};

// Returns the number of floats of scratch memory that an item with at most nq queries and nk keys
// needs. The number is the same at all levels.
size_t rlhf__attn_scratch(uint32_t nq, uint32_t nk, int32_t head_dim);
size_t rlhf__attn_scratch_bwd(uint32_t nq, uint32_t nk, int32_t head_dim);

// X(name, args): one list defines the table's members and each level's prototypes.
//
// to_bf16, to_f32  convert n elements
// to_f32_pairs     converts n elements along k to the layout of struct rlhf__matmul's pairs; dst
//                  has an even number of elements
// add              dst[n] += src[n]
// add_all          x[n] += src[0][n], then src[1][n], and so on; then, unless `to` is NULL, moves x
//                  to `to`, which may be one of src, and zeroes x. If `stream` is set, `to` is
//                  aligned to 64 bytes, and its stores bypass the caches
// act, act_bwd     n elements of dtype; kind is enum rlhf_act; in place allowed
// gate             n elements of dtype: out = f(a) b; kind 0 is f(a) = a
// gate_bwd         da = dy b f'(a), db = dy f(a); may alias a and b
// embed            out[t] = scale wte[ids[t]] + wpe[pos[t]], in rows of d floats; pos NULL: without
//                  wpe
// embed_bwd        dw[idx[t]] += scale dout[t] for the rows t in order, only in columns c0 .. c1-1
// norm, rms_norm   rows of d elements: write `out` (in bf16 if `bf16` is set) and, unless it is
//                  NULL, `stats`
// norm_bwd         rows of d elements: writes dx or, if `accumulate` is set, adds to dx; unless
//                  part is NULL, part[0..d) += dgamma and part[d..2d) += dbeta
// rms_norm_bwd     like norm_bwd, but without dbeta; the norms' factor is offset + gamma
// rope, rope_bwd   rotate the rows of r
// sum_parts        dst[c] += part[0][c] + part[1][c] + ... for `count` parts, which are `stride`
//                  floats apart
// attn, attn_bwd   one item
// attn_run         like attn for every row of the run, but reads the prefix only once for all rows
#define RLHF__HOT_ROWS(X)                                                                          \
    X(to_bf16, (uint16_t * dst, const float *src, size_t n))                                       \
    X(to_f32, (float *dst, const uint16_t *src, size_t n))                                         \
    X(to_f32_pairs, (float *dst, const uint16_t *src, size_t n))                                   \
    X(add, (float *dst, const void *src, int bf16, size_t n))                                      \
    X(add_all, (float *x, const float *const *src, size_t n_src, float *to, int stream, size_t n)) \
    X(act, (void *out, const void *x, int kind, int bf16, size_t n))                               \
    X(act_bwd, (void *dx, const void *dy, const void *x, int kind, int bf16, size_t n))            \
    X(gate, (void *out, const void *a, const void *b, int kind, int bf16, size_t n))               \
    X(gate_bwd, (void *da, void *db, const void *dy, const void *a, const void *b, int kind,       \
                 int bf16, size_t n))                                                              \
    X(embed, (float *out, const int32_t *ids, const int32_t *pos, const float *wte,                \
              const float *wpe, float scale, size_t rows, size_t d))                               \
    X(embed_bwd, (float *dw, const float *dout, const int32_t *idx, float scale, size_t rows,      \
                  size_t d, size_t c0, size_t c1))                                                 \
    X(norm, (void *out, int bf16, float *stats, const float *x, const float *gamma,                \
             const float *beta, float eps, size_t rows, size_t d))                                 \
    X(norm_bwd, (float *dx, int accumulate, float *part, const void *dy, int bf16, const float *x, \
                 const float *stats, const float *gamma, size_t rows, size_t d))                   \
    X(rms_norm, (void *out, int bf16, float *stats, const float *x, const float *gamma,            \
                 float offset, float eps, size_t rows, size_t d))                                  \
    X(rms_norm_bwd,                                                                                \
      (float *dx, int accumulate, float *part, const void *dy, int bf16, const float *x,           \
       const float *stats, const float *gamma, float offset, size_t rows, size_t d))               \
    X(rope, (const struct rlhf__rope_rows *r, int bf16))                                           \
    X(rope_bwd, (const struct rlhf__rope_rows *r, int bf16))                                       \
    X(sum_parts, (float *dst, const float *part, size_t stride, size_t count, size_t n))           \
    X(attn, (const struct rlhf__attn_item *it))                                                    \
    X(attn_run, (const struct rlhf__attn_run *run))                                                \
    X(attn_bwd, (const struct rlhf__attn_item *it))

// RLHF__HOT_PRODUCTS(X): the loops of the GEMM side (softmax rows, adamw, ...), in the same form.
#include "products_list.h"
// RLHF__HOT_STATE(X): the loops of layers with a state.
#include "state_list.h"

#define RLHF__HOT_MEMBER(name, args) void(*name) args; // NOLINT(bugprone-macro-parentheses)
struct rlhf__hot {
    RLHF__HOT_ROWS(RLHF__HOT_MEMBER)
    RLHF__HOT_PRODUCTS(RLHF__HOT_MEMBER)
    RLHF__HOT_STATE(RLHF__HOT_MEMBER)
    size_t gemm_rows, gemm_columns; // size of an f32 tile; a panel has gemm_columns columns
};

// In a hot source, RLHF_HOT_LEVEL is baseline, avx2, avx512, avx512_bf16 or neon. RLHF__HOT(norm)
// is that level's function `norm`.
#ifdef RLHF_HOT_LEVEL
#define RLHF__HOT_PASTE2(name, level) rlhf__hot_##name##_##level
#define RLHF__HOT_PASTE(name, level)  RLHF__HOT_PASTE2(name, level)
#define RLHF__HOT(name)               RLHF__HOT_PASTE(name, RLHF_HOT_LEVEL)
#define RLHF__HOT_PROTO(name, args)   void RLHF__HOT(name) args; // NOLINT(bugprone-macro-parentheses)
RLHF__HOT_ROWS(RLHF__HOT_PROTO)
RLHF__HOT_PRODUCTS(RLHF__HOT_PROTO)
RLHF__HOT_STATE(RLHF__HOT_PROTO)
#endif

extern const struct rlhf__hot rlhf__hot_table_neon;
extern const struct rlhf__hot rlhf__hot_table_baseline;
extern const struct rlhf__hot rlhf__hot_table_avx2;
extern const struct rlhf__hot rlhf__hot_table_avx512;
extern const struct rlhf__hot rlhf__hot_table_avx512_bf16;

// The bf16 GEMMs of a level (bf16.h, amx.h). Rows that pack_a_rows packs are padded with zeros to a
// multiple of k_step.
struct rlhf__bf16_gemms {
    int64_t rows, columns, k_step;     // rows of a tile, columns of a panel
    void (*begin)(void), (*end)(void); // called around the panels of a thread; NULL: not needed
    void (*panel)(const struct rlhf__panel *p);
    // If pack_a_rows is NULL, gemm_turn_a is used, which treats each pair of A as one f32 number.
    void (*pack_a_rows)(uint32_t *dst, const uint16_t *src, size_t m, size_t k, size_t stride);
    void (*pack_a)(uint32_t *dst, const uint16_t *src, size_t m, size_t k, size_t stride);
    void (*pack_rows_f32)(uint32_t *dst, const float *src, size_t k, size_t columns, size_t stride,
                          int stream);
    void (*pack_cols_f32)(uint32_t *dst, const float *src, size_t k, size_t columns, size_t stride,
                          int stream);
    void (*pack_rows)(uint32_t *dst, const uint16_t *src, size_t k, size_t columns, size_t stride);
    void (*pack_cols)(uint32_t *dst, const uint16_t *src, size_t k, size_t columns, size_t stride);
    void (*turn_b)(uint32_t *dst, const uint32_t *src, size_t rows, size_t columns, size_t next);
    void (*unquantise)(uint32_t *to, const uint8_t *panel, int format, size_t k0, size_t k);
    void (*unquantise_f32)(float *to, const uint8_t *panel, int format, size_t k0, size_t k);
    // If NULL, few rows use unquantise and panel.
    void (*few)(const struct rlhf__panel *p, const uint8_t *panel, int format, size_t k0);
};

struct rlhf__level {
    const char *name;               // its name in RLHF_CPU_ISA
    const struct rlhf__hot *hot;    // NULL: the build does not have this level
    const char *loops, *f32, *bf16; // descriptions of the instructions for row operations and GEMMs
    const struct rlhf__bf16_gemms *bf16_gemms; // NULL: f32 GEMMs in the same order are used instead
};

// `isa` is an enum rlhf__isa.
const struct rlhf__level *rlhf__isa_level(int isa);

// Returns the name of a feature that the level needs but this CPU or its operating system lacks, or
// NULL if nothing is missing. AMX tiles are checked last, because the check asks the operating
// system to let the process use them.
const char *rlhf__isa_lacks(int isa);

// Returns 1 if this CPU computes bf16 products faster at a lower level, with the same bits.
int rlhf__isa_is_slow(int isa);

// Returns the best level that this CPU supports and that is not slow. If `cap`, the value of the
// environment variable RLHF_CPU_ISA, is the name of a level, returns the best level up to it, slow
// or not. NULL or "" sets no limit. Returns -1 if `cap` is anything else.
int rlhf__isa_choose(const char *cap);

#endif
