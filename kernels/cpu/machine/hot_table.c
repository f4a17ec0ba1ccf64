// hot_table.c: the table of one level; compiled once per level like every hot source.

// The files with these functions compile to the same code for avx512 and
// avx512_bf16, so only the code for avx512 is built.
#define rlhf__hot_gemm_pack_rows_avx512_bf16 rlhf__hot_gemm_pack_rows_avx512
#define rlhf__hot_gemm_pack_cols_avx512_bf16 rlhf__hot_gemm_pack_cols_avx512
#define rlhf__hot_gemm_pack_a_avx512_bf16    rlhf__hot_gemm_pack_a_avx512
#define rlhf__hot_gemm_turn_a_avx512_bf16    rlhf__hot_gemm_turn_a_avx512
#define rlhf__hot_gemm_turn_b_avx512_bf16    rlhf__hot_gemm_turn_b_avx512
#define rlhf__hot_gemm_panel_avx512_bf16     rlhf__hot_gemm_panel_avx512
#define rlhf__hot_unquantise_avx512_bf16     rlhf__hot_unquantise_avx512
#define rlhf__hot_gemm_few_avx512_bf16       rlhf__hot_gemm_few_avx512

#include "hot.h"
#include "product/gemm_tile.h"

#define RLHF__HOT_ENTRY(name, args) .name = RLHF__HOT(name),

const struct rlhf__hot RLHF__HOT(table) = {RLHF__HOT_ROWS(RLHF__HOT_ENTRY)
                                               RLHF__HOT_PRODUCTS(RLHF__HOT_ENTRY)
                                                   RLHF__HOT_STATE(RLHF__HOT_ENTRY)
                                                       .gemm_rows = MR,
                                           .gemm_columns = NC};
