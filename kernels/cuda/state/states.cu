// states.cu: reads the rows and the states of conv and delta. See states.h.
#include "state/states.h"

rlhf_status rlhf__cuda_read_states(struct rlhf__cuda *cu, const char *op,
                                   struct rlhf__cuda_states *out, const rlhf_ragged *rows,
                                   const rlhf_states *states, uint64_t bytes) {
    rlhf_ragged r;
    RLHF_TRY(rlhf__cuda_copy_in(cu, op, &r, sizeof r, rows, RLHF_SIZE_TO(rlhf_ragged, prefix_len)));
    if (!r.prefix_base != !r.prefix_len)
        return rlhf__cuda_fail(cu, RLHF_E_INVALID,
                               "%s: prefix_base and prefix_len must both be NULL or none", op);
    *out = {};
    out->offset = rlhf__cuda_i32(r.offset);
    out->n = r.n;
    out->total = r.total;
    out->max_q = r.max_q;
    out->fault = cu->fault;
    if (!states) {
        out->prefix_base = rlhf__cuda_i32(r.prefix_base);
        out->prefix_len = rlhf__cuda_i32(r.prefix_len);
        return RLHF_OK;
    }
    rlhf_states s;
    RLHF_TRY(rlhf__cuda_copy_in(cu, op, &s, sizeof s, states, RLHF_SIZE_TO(rlhf_states, to)));
    if (s.stride <= 0 || s.stride % 64 || (uint64_t)s.stride < bytes)
        return rlhf__cuda_fail(cu, RLHF_E_INVALID,
                               "%s: states are %lld bytes apart, must be a multiple of 64 and at "
                               "least %llu",
                               op, (long long)s.stride, (unsigned long long)bytes);
    out->from = rlhf__cuda_i32(s.from);
    out->to = rlhf__cuda_i32(s.to);
    out->state = rlhf__cuda_mem<char>(s.state);
    out->stride = s.stride;
    const uint64_t room = rlhf__cuda_extent(cu, out->state);
    out->slots = room < bytes ? 0 : (int64_t)((room - bytes) / (uint64_t)s.stride + 1);
    if (room) rlhf__cuda_wrote(cu, out->state, room);
    return RLHF_OK;
}
