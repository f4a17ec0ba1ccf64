// ragged.cu: reads the rows of an attention call. See ragged.h.
#include "attention/ragged.h"

rlhf_status rlhf__cuda_read_ragged(struct rlhf__cuda *cu, const char *op,
                                   struct rlhf__cuda_rows *rows, const rlhf_ragged *from) {
    rlhf_ragged own;
    RLHF_TRY(
        rlhf__cuda_copy_in(cu, op, &own, sizeof own, from, RLHF_SIZE_TO(rlhf_ragged, prefix_len)));
    if (!own.prefix_base != !own.prefix_len)
        return rlhf__cuda_fail(cu, RLHF_E_INVALID,
                               "%s: prefix_base and prefix_len must both be NULL or none", op);
    rows->offset = rlhf__cuda_i32(own.offset);
    rows->start = rlhf__cuda_i32(own.start);
    rows->kv_base = rlhf__cuda_i32(own.kv_base);
    rows->prefix_base = rlhf__cuda_i32(own.prefix_base);
    rows->prefix_len = rlhf__cuda_i32(own.prefix_len);
    rows->n = own.n;
    rows->total = own.total;
    rows->max_q = own.max_q;
    rows->max_k = own.max_k;
    rows->tokens = INT64_MAX;
    rows->window = 0;
    rows->fault = cu->fault;
    return RLHF_OK;
}
