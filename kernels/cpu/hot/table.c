// hot/table.c: the table of one level; compiled once per level like every hot source.
#include "gemm_tile.h"
#include "hot.h"

#define RLHF__HOT_ENTRY(name, args) .name = RLHF__HOT(name),

const struct rlhf__hot RLHF__HOT(table) = {
    RLHF__HOT_ROWS(RLHF__HOT_ENTRY) RLHF__HOT_PRODUCTS(RLHF__HOT_ENTRY).gemm_rows = MR,
    .gemm_columns = NC};
